//! Trains networks: on base classes (eq. 7), or on examples weighted by relevance (eq. 6 and 8).
//!
//! ```text
//! Examples ──Sampler──► rows of a batch ──augment, prefetch──► Batch ──Learner::step──► Epoch, Checkpoint ──► Watcher
//! ```
//!
//! [`Recipe`] has the settings. A training is resumed from a [`Checkpoint`] as if it had not been interrupted.

mod recipe;
mod sampler;

use std::sync::Arc;

use labelsieve_numerics::random::Stream;
use labelsieve_numerics::unit_rows;
use serde::{Deserialize, Serialize};

pub use recipe::{MAX_BATCH, Preset, Rates, Recipe};
pub use sampler::Sampler;

use crate::cosine::length;
use crate::error::{Error, Result};
use crate::images::{Dataset, Prefetch, View};
use crate::learner::{Batch, Learner, Learners, ScaleRule, Sgd, Snapshot, Targets};
use crate::network::{Network, Role};
use crate::prototypical::Prototypical;

/// Batches that are prepared ahead of the network.
const AHEAD: usize = 3;

/// Images per batch when accuracy is measured.
const EVALUATION_BATCH: usize = 64;

/// Training examples: an image each, its class and its weight.
#[derive(Clone)]
pub struct Examples {
    /// The images.
    pub images: Arc<Dataset>,
    /// Rows of `images`, one per example.
    pub rows: Vec<usize>,
    /// The class of each example.
    pub classes: Vec<u32>,
    /// The relevance r of each example; 1 for clean ones.
    pub relevance: Vec<f32>,
    /// Number of classes.
    pub n_classes: usize,
    /// Classes below it have a softmax of their own (eq. 8); 0 when all compete with all.
    pub split: usize,
}

impl Examples {
    /// All images of a dataset with equal weights: the examples of eq. (7).
    pub fn all(images: Arc<Dataset>) -> Examples {
        let examples: Vec<_> = images.labels().iter().enumerate().map(|(row, &c)| (row, c, 1.0)).collect();
        Examples::weighted(images.clone(), images.classes().len(), examples)
    }

    /// Examples of `n_classes` classes in one softmax: a row of `images`, its class and its relevance.
    pub fn weighted(
        images: Arc<Dataset>,
        n_classes: usize,
        examples: impl IntoIterator<Item = (usize, u32, f32)>,
    ) -> Examples {
        let mut rows = Vec::new();
        let mut classes = Vec::new();
        let mut relevance = Vec::new();
        for (row, class, r) in examples {
            rows.push(row);
            classes.push(class);
            relevance.push(r);
        }
        Examples { images, rows, classes, relevance, n_classes, split: 0 }
    }

    /// Without the examples whose relevance is below [`MIN_RELEVANCE`].
    pub fn without_irrelevant(self) -> Examples {
        let kept: Vec<usize> = (0..self.rows.len()).filter(|&i| self.relevance[i] >= MIN_RELEVANCE).collect();
        Examples {
            rows: kept.iter().map(|&i| self.rows[i]).collect(),
            classes: kept.iter().map(|&i| self.classes[i]).collect(),
            relevance: kept.iter().map(|&i| self.relevance[i]).collect(),
            ..self
        }
    }
}

/// Examples below this relevance are left out of fine-tuning: they cost as much as the others and contribute little.
pub const MIN_RELEVANCE: f32 = 0.1;

/// The results of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Epoch {
    /// Its number, from 1.
    pub epoch: usize,
    /// The learning rate.
    pub rate: f32,
    /// Mean loss of its steps.
    pub loss: f64,
    /// Share of its (augmented) images whose class had the largest score.
    pub accuracy: f64,
    /// Top-1 accuracy on the validation images, if there are any.
    pub validation: Option<f64>,
}

/// Everything needed to resume after an epoch as if uninterrupted: random numbers are drawn by position, so they need no
/// state.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// The network.
    pub snapshot: Snapshot,
    /// The epochs so far.
    pub epochs: Vec<Epoch>,
}

impl Checkpoint {
    /// Before the first epoch.
    pub fn start(snapshot: Snapshot) -> Checkpoint {
        Checkpoint { snapshot, epochs: Vec::new() }
    }
}

/// Follows a training.
pub trait Watcher {
    /// An epoch begins: its number from 1, and how many batches it has.
    fn epoch_starts(&mut self, epoch: usize, batches: usize);
    /// A batch of this many images is done; an error ends the training.
    fn batch_done(&mut self, images: usize) -> Result<()>;
    /// An epoch is done; an error ends the training.
    fn epoch_done(&mut self, checkpoint: &Checkpoint) -> Result<()>;
}

/// The objective of a training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// The cosine classifier on top of it (eq. 6 to 8).
    Cosine,
    /// Prototypical episodes, without a classifier.
    Prototypical(Prototypical),
}

impl Objective {
    /// Classes of the classifier on top of the network.
    pub fn classifier_classes(&self, n_classes: usize) -> usize {
        match self {
            Objective::Cosine => n_classes,
            Objective::Prototypical(_) => 0,
        }
    }
}

/// A training: the network, the examples, the recipe and the device.
pub struct Training<'a> {
    /// Makes the learner on the device.
    pub learners: &'a dyn Learners,
    /// The network.
    pub network: &'a Network,
    /// The training examples.
    pub examples: &'a Examples,
    /// Images to measure accuracy on after each epoch; classes as in `examples`.
    pub validation: Option<&'a Dataset>,
    /// The objective.
    pub objective: Objective,
    /// The recipe.
    pub recipe: &'a Recipe,
    /// Whether the scale of the classifier is trained.
    pub scale: ScaleRule,
    /// The seed of all random numbers.
    pub seed: u64,
}

impl Training<'_> {
    /// Trains from `start` to the last epoch of the recipe.
    pub fn run(&self, start: Checkpoint, watcher: &mut dyn Watcher) -> Result<Checkpoint> {
        self.recipe.check()?;
        let sampler = Sampler::new(&self.examples.classes, self.examples.n_classes)?;
        if let Objective::Prototypical(rule) = &self.objective {
            rule.check(MAX_BATCH)?;
            sampler.check_episodes(rule)?;
        }
        let weights = self.weights();
        let mut checkpoint = start;
        let mut learner = self.learners.learner(self.network, &checkpoint.snapshot)?;
        let first = checkpoint.epochs.len();
        let batches_per_epoch = self.recipe.batches(self.examples.rows.len());
        let mut batches = self.batches(&sampler, first)?;
        for epoch in first..self.recipe.epochs {
            watcher.epoch_starts(epoch + 1, batches_per_epoch);
            let rate = self.recipe.rates.at(epoch, self.recipe.epochs);
            let sgd =
                Sgd { rate, momentum: self.recipe.momentum, decay: self.recipe.decay, scale: self.scale };
            for _ in 0..batches_per_epoch {
                let Some(next) = batches.next() else {
                    return Err(Error::Device("internal error: the batches ended early".to_owned()));
                };
                let (batch, rows) = next?;
                match &self.objective {
                    Objective::Cosine => self.step(learner.as_mut(), &batch, &rows, &weights, &sgd)?,
                    Objective::Prototypical(rule) => learner.step_on_features(&batch, rule, &sgd)?,
                }
                watcher.batch_done(rows.len())?;
            }
            let tally = learner.tally()?;
            if !tally.loss.is_finite() {
                return Err(Error::Diverged { epoch: epoch + 1 });
            }
            checkpoint.snapshot = learner.snapshot()?;
            let validation = match self.validation {
                Some(images) => Some(self.validate(learner.as_mut(), &checkpoint.snapshot, images)?),
                None => None,
            };
            checkpoint.epochs.push(Epoch {
                epoch: epoch + 1,
                rate,
                loss: tally.loss / tally.steps.max(1) as f64,
                accuracy: tally.correct as f64 / tally.images.max(1) as f64,
                validation,
            });
            watcher.epoch_done(&checkpoint)?;
        }
        Ok(checkpoint)
    }

    /// A step of the cosine classifier on the examples `rows`.
    fn step(
        &self,
        learner: &mut dyn Learner,
        batch: &Batch,
        rows: &[usize],
        weights: &[f32],
        sgd: &Sgd,
    ) -> Result<()> {
        let classes: Vec<u32> = rows.iter().map(|&row| self.examples.classes[row]).collect();
        let weights: Vec<f32> = rows.iter().map(|&row| weights[row] / rows.len() as f32).collect();
        let targets = Targets { classes: &classes, weights: &weights, split: self.examples.split };
        learner.step(batch, targets, sgd)
    }

    fn validate(&self, learner: &mut dyn Learner, snapshot: &Snapshot, images: &Dataset) -> Result<f64> {
        match &self.objective {
            Objective::Cosine => accuracy(learner, self.network, snapshot, images),
            Objective::Prototypical(rule) => {
                prototype_accuracy(learner, self.network, self.examples, rule, images)
            }
        }
    }

    /// How much each example counts when every class is drawn equally often: r(x) over the mean of its class, so that the
    /// mean over a batch estimates 1/K of eq. (6), and of eq. (7) where all r are 1.
    fn weights(&self) -> Vec<f32> {
        let Examples { classes, relevance, n_classes, .. } = self.examples;
        let mut sums = vec![(0.0f64, 0usize); *n_classes];
        for (&class, &r) in classes.iter().zip(relevance) {
            let (sum, count) = &mut sums[class as usize];
            *sum += f64::from(r);
            *count += 1;
        }
        let mean = |class: u32| sums[class as usize].0 / sums[class as usize].1 as f64;
        classes.iter().zip(relevance).map(|(&class, &r)| (f64::from(r) / mean(class)) as f32).collect()
    }

    /// All batches from epoch `first` on, with the examples in them, prepared ahead.
    fn batches(&self, sampler: &Sampler, first: usize) -> Result<Prefetch<Result<NextBatch>>> {
        let images = self.examples.images.clone();
        let rows = self.examples.rows.clone();
        let recipe = self.recipe.clone();
        let seed = Stream::new(self.seed);
        let sampler = sampler.clone();
        let batch = recipe.batch;
        let count = recipe.batches(rows.len());
        let augmentation = recipe.augmentation;
        let objective = self.objective;
        let batch = match objective {
            Objective::Cosine => batch,
            Objective::Prototypical(rule) => rule.batch(),
        };
        let batches = (first..recipe.epochs).flat_map(move |epoch| {
            let order = match objective {
                Objective::Cosine => sampler.epoch(epoch, batch * count, seed.branch(ORDER)),
                Objective::Prototypical(rule) => sampler.episodes(epoch, count, &rule, seed.branch(ORDER)),
            };
            let look = seed.branch(LOOK).branch(epoch as u64);
            let images = images.clone();
            let rows = rows.clone();
            (0..count).map(move |i| {
                let examples = &order[i * batch..(i + 1) * batch];
                let chosen: Vec<usize> = examples.iter().map(|&example| rows[example]).collect();
                let pixels = images.batch(&chosen, &augmentation, look.branch(i as u64))?;
                Ok((pixels, examples.to_vec()))
            })
        });
        Prefetch::new(batches, AHEAD)
    }
}

/// A batch, and the examples in it.
type NextBatch = (Batch, Vec<usize>);

/// Branches of the seed: the order of examples, and their augmentation.
const ORDER: u64 = 1;
const LOOK: u64 = 2;

/// Share of `images` whose class has the largest cosine, among all classes of the snapshot's classifier.
pub fn accuracy(
    learner: &mut dyn Learner,
    network: &Network,
    snapshot: &Snapshot,
    images: &Dataset,
) -> Result<f64> {
    let weights = snapshot.class_weights(network)?;
    let dim = network.dim();
    let (unit, _) = unit_rows(weights, dim, length);
    let rows: Vec<usize> = (0..images.len()).collect();
    let mut correct = 0;
    for rows in rows.chunks(EVALUATION_BATCH) {
        let features = evaluation_features(learner, network, images, rows)?;
        for (feature, &row) in features.chunks_exact(dim).zip(rows) {
            let scores =
                unit.chunks_exact(dim).map(|w| w.iter().zip(feature).map(|(a, b)| a * b).sum::<f32>());
            correct += usize::from(place_of_largest(scores) == images.labels()[row] as usize);
        }
    }
    Ok(correct as f64 / images.len().max(1) as f64)
}

/// Training images per prototype when accuracy is measured.
const PROTOTYPE_IMAGES: usize = 20;

/// Share of `images` whose class has the nearest prototype, the mean of up to [`PROTOTYPE_IMAGES`] training images without
/// augmentation.
fn prototype_accuracy(
    learner: &mut dyn Learner,
    network: &Network,
    examples: &Examples,
    rule: &Prototypical,
    images: &Dataset,
) -> Result<f64> {
    let dim = network.dim();
    let n_classes = examples.n_classes;
    let mut counts = vec![0usize; n_classes];
    let mut chosen = Vec::new();
    for (&row, &class) in examples.rows.iter().zip(&examples.classes) {
        let count = &mut counts[class as usize];
        if *count < PROTOTYPE_IMAGES {
            *count += 1;
            chosen.push((row, class as usize));
        }
    }
    let mut prototypes = vec![0f32; n_classes * dim];
    for some in chosen.chunks(EVALUATION_BATCH) {
        let rows: Vec<usize> = some.iter().map(|&(row, _)| row).collect();
        let features = evaluation_features(learner, network, &examples.images, &rows)?;
        for (feature, &(_, class)) in features.chunks_exact(dim).zip(some) {
            let prototype = prototypes[class * dim..(class + 1) * dim].iter_mut();
            prototype.zip(feature).for_each(|(sum, value)| *sum += value / counts[class] as f32);
        }
    }
    let rows: Vec<usize> = (0..images.len()).collect();
    let mut correct = 0;
    for rows in rows.chunks(EVALUATION_BATCH) {
        let features = evaluation_features(learner, network, images, rows)?;
        for (scores, &row) in rule.scores(&features, &prototypes, dim).chunks_exact(n_classes).zip(rows) {
            correct += usize::from(place_of_largest(scores.iter().copied()) == images.labels()[row] as usize);
        }
    }
    Ok(correct as f64 / images.len().max(1) as f64)
}

/// Features of the evaluation views of images.
fn evaluation_features(
    learner: &mut dyn Learner,
    network: &Network,
    images: &Dataset,
    rows: &[usize],
) -> Result<Vec<f32>> {
    let input = network.input();
    let size = (input.height, input.width);
    learner.features(&images.evaluation_batch(rows, size, View::for_images(size.0, size.1))?)
}

fn place_of_largest(scores: impl Iterator<Item = f32>) -> usize {
    scores.enumerate().fold((0, f32::NEG_INFINITY), |a, b| if b.1 > a.1 { b } else { a }).0
}

impl Snapshot {
    /// The class weights, K×d.
    pub fn class_weights(&self, network: &Network) -> Result<&[f32]> {
        Ok(&self.values[self.range_of(network, Role::ClassWeights)?])
    }

    /// The scale s of the classifier.
    pub fn scale(&self, network: &Network) -> Result<f32> {
        Ok(self.values[self.range_of(network, Role::ClassScale)?.start])
    }

    fn range_of(&self, network: &Network, role: Role) -> Result<std::ops::Range<usize>> {
        let tensors = self.tensors(network)?;
        let found = tensors.into_iter().find(|(parameter, _)| parameter.role == role);
        found.map(|(_, range)| range).ok_or_else(|| Error::Shape {
            what: "classifier".to_owned(),
            expected: "at least one class".to_owned(),
            found: "a network alone".to_owned(),
        })
    }

    /// The same network with another classifier: `weights` (K×d) and its scale. Momentum starts at zero.
    pub fn with_classifier(&self, network: &Network, weights: &[f32], scale: f32) -> Result<Snapshot> {
        let dim = network.dim();
        if !weights.len().is_multiple_of(dim) {
            return Err(Error::Shape {
                what: "class weights".to_owned(),
                expected: format!("rows of {dim} numbers"),
                found: format!("{} numbers", weights.len()),
            });
        }
        let backbone: usize = network.parameters(0).iter().map(crate::network::Parameter::len).sum();
        self.tensors(network)?;
        let values = [&self.values[..backbone], weights, &[scale]].concat();
        Ok(Snapshot { n_classes: weights.len() / dim, momentum: vec![0.0; values.len()], values })
    }
}

#[cfg(test)]
mod tests;
