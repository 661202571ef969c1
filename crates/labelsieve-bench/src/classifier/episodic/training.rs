//! Episodes of base classes, and learning from them.

use labelsieve::{Features, Result, check};
use labelsieve_numerics::Watch;
use labelsieve_numerics::kernels::add;
use labelsieve_numerics::random::Stream;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::network::{Learning, Network};
use super::tape::Tape;
use super::{EpisodicKind, EpisodicModel, EpisodicSizes};

/// The training of a system: SGD with momentum on the mean loss of a few episodes at a time, the learning rate annealed by half a cosine.
///
/// In an episode some base classes pose as novel ones with a few examples each, and other examples of theirs are classified.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EpisodicTraining {
    /// Steps of gradient descent.
    pub steps: usize,
    /// Episodes per step.
    pub episodes: usize,
    /// Classes of an episode.
    pub ways: usize,
    /// Largest number of examples of a class; each episode draws a number from 1 to this.
    pub most_shots: usize,
    /// Examples classified per class.
    pub queries: usize,
    /// Learning rate of the first step.
    pub learning_rate: f32,
    /// Learning rate of the last step.
    pub final_learning_rate: f32,
    /// Momentum of SGD.
    pub momentum: f32,
    /// L2 penalty on everything learned but the scale.
    pub decay: f32,
}

/// Upper limit of all counts.
const MAX_COUNT: usize = 1_000_000;

impl Default for EpisodicTraining {
    fn default() -> EpisodicTraining {
        EpisodicTraining {
            steps: 500,
            episodes: 4,
            ways: 20,
            most_shots: 5,
            queries: 5,
            learning_rate: 0.02,
            final_learning_rate: 0.001,
            momentum: 0.9,
            decay: 5e-4,
        }
    }
}

/// Classes with their examples, queries and noise. Examples are rows of their classes' sets.
pub(super) struct Episode {
    pub(super) classes: Vec<EpisodeClass>,
    /// m numbers for each hallucination, class by class.
    pub(super) noise: Vec<f32>,
}

/// A base class in an episode.
pub(super) struct EpisodeClass {
    pub(super) class: usize,
    pub(super) examples: Vec<usize>,
    pub(super) queries: Vec<usize>,
}

impl EpisodicTraining {
    /// Rejects settings outside their range.
    pub fn checked(&self) -> Result<()> {
        for (name, min, count) in [
            ("steps", 1, self.steps),
            ("episodes", 1, self.episodes),
            ("ways", 2, self.ways),
            ("most_shots", 1, self.most_shots),
            ("queries", 1, self.queries),
        ] {
            check(
                (min..=MAX_COUNT).contains(&count),
                name,
                "at least 1, 2 for ways, and at most 1000000",
                count,
            )?;
        }
        let falling = self.learning_rate >= self.final_learning_rate && self.final_learning_rate > 0.0;
        check(falling, "final_learning_rate", "above 0 and at most learning_rate", self.final_learning_rate)?;
        check(self.learning_rate.is_finite(), "learning_rate", "a finite number", self.learning_rate)?;
        check((0.0..1.0).contains(&self.momentum), "momentum", "a number in [0, 1)", self.momentum)?;
        check(self.decay >= 0.0 && self.decay.is_finite(), "decay", "a non-negative number", self.decay)
    }

    /// Learns from the examples of each base class. `on_step` receives the number of each step, from 1, and its loss; `watch` can
    /// stop the training.
    pub fn train(
        &self,
        kind: EpisodicKind,
        sizes: EpisodicSizes,
        sets: &[Features],
        seed: u64,
        watch: &Watch,
        mut on_step: impl FnMut(usize, f64),
    ) -> Result<EpisodicModel> {
        self.checked()?;
        check(sets.len() >= 2, "base classes", "at least 2", sets.len())?;
        for set in sets {
            check(
                set.dim() == sizes.dim,
                "columns of a set of base examples",
                "the width of the network",
                set.dim(),
            )?;
            check(set.len() >= 2, "examples of a base class", "at least 2", set.len())?;
        }
        let mut descent = Descent::new(EpisodicModel::initial(kind, sizes, seed)?);
        let counts: Vec<usize> = sets.iter().map(Features::len).collect();
        for step in 0..self.steps {
            watch.check()?;
            let stream = Stream::new(seed).branch(u64::MAX).branch(step as u64);
            let episodes: Vec<Episode> =
                (0..self.episodes).map(|e| self.episode(&sizes, &counts, stream.branch(e as u64))).collect();
            let progress = step as f32 / (self.steps - 1).max(1) as f32;
            let half_cosine = 0.5 + 0.5 * (std::f32::consts::PI * progress).cos();
            let rate =
                self.final_learning_rate + (self.learning_rate - self.final_learning_rate) * half_cosine;
            on_step(step + 1, descent.take(sets, &episodes, rate, self));
        }
        EpisodicModel::new(kind, sizes, descent.model.tensors) // rejects parameters that diverged
    }

    /// Draws an episode. The examples and queries of a class never overlap, even in a small class.
    pub(super) fn episode(&self, sizes: &EpisodicSizes, counts: &[usize], stream: Stream) -> Episode {
        let shots = 1 + stream.branch(1).below(0, self.most_shots);
        let posing = stream.branch(0).choose(counts.len(), self.ways);
        let n_noise = posing.len() * sizes.generated * sizes.noise;
        let class = |class: usize| {
            let n_examples = shots.min(counts[class] / 2);
            let drawn =
                stream.branch(2).branch(class as u64).choose(counts[class], n_examples + self.queries);
            let (examples, queries) = drawn.split_at(n_examples);
            EpisodeClass { class, examples: examples.to_vec(), queries: queries.to_vec() }
        };
        Episode {
            classes: posing.into_iter().map(class).collect(),
            noise: (0..n_noise).map(|i| stream.branch(3).normal(i as u64)).collect(),
        }
    }
}

/// The state of SGD.
pub(super) struct Descent {
    pub(super) model: EpisodicModel,
    velocity: Vec<Vec<f32>>,
}

impl Descent {
    pub(super) fn new(model: EpisodicModel) -> Descent {
        let velocity = model.tensors.iter().map(|tensor| vec![0.0; tensor.values.len()]).collect();
        Descent { model, velocity }
    }

    /// Takes a step on the mean loss of some episodes, and returns the loss.
    pub(super) fn take(
        &mut self,
        sets: &[Features],
        episodes: &[Episode],
        rate: f32,
        settings: &EpisodicTraining,
    ) -> f64 {
        let (loss, gradients) = mean_gradient(&self.model, sets, episodes);
        let all = self.model.tensors.par_iter_mut().zip(&mut self.velocity).zip(gradients);
        all.for_each(|((tensor, velocity), gradient)| {
            let decay = if tensor.name == "scale" { 0.0 } else { settings.decay };
            for ((value, velocity), gradient) in tensor.values.iter_mut().zip(velocity).zip(gradient) {
                *velocity = settings.momentum * *velocity + gradient + decay * *value;
                *value -= rate * *velocity;
            }
        });
        loss
    }
}

/// The mean loss of some episodes and its gradient by tensor, computed in parallel and summed in order.
pub(super) fn mean_gradient(
    model: &EpisodicModel,
    sets: &[Features],
    episodes: &[Episode],
) -> (f64, Vec<Vec<f32>>) {
    let share = 1.0 / episodes.len() as f32;
    let parts: Vec<(f64, Vec<Vec<f32>>)> =
        episodes.par_iter().map(|episode| episode_gradient(model, sets, episode)).collect();
    let mut parts = parts.into_iter();
    let Some((mut loss, mut sum)) = parts.next() else { return (0.0, Vec::new()) };
    for (part, gradients) in parts {
        loss += part;
        sum.iter_mut().zip(&gradients).for_each(|(sum, gradient)| add(sum, gradient));
    }
    sum.iter_mut().flatten().for_each(|value| *value *= share);
    (loss * f64::from(share), sum)
}

/// The loss of an episode, −1/n Σ_x ln softmax(scores of x)_c over its n queries, and its gradient.
fn episode_gradient(model: &EpisodicModel, sets: &[Features], episode: &Episode) -> (f64, Vec<Vec<f32>>) {
    let EpisodicSizes { dim, noise, generated, .. } = model.sizes;
    let generated = if model.kind.hallucinates() { generated } else { 0 };
    let rows = |of: fn(&EpisodeClass) -> &[usize]| -> Vec<f32> {
        let of_class = |class: &EpisodeClass| {
            of(class).iter().flat_map(|&row| sets[class.class].row(row)).copied().collect::<Vec<f32>>()
        };
        episode.classes.iter().flat_map(of_class).collect()
    };
    let mut tape = Tape::default();
    let network = Network::new(&mut tape, model, Learning::Yes);
    let examples = tape.constant(rows(|class| &class.examples), dim);
    let mut support = examples;
    if generated > 0 {
        let seed = |class: &EpisodeClass| {
            let rows = class.examples.iter().cycle().take(generated);
            rows.flat_map(|&row| sets[class.class].row(row)).copied().collect::<Vec<f32>>()
        };
        let seeds = tape.constant(episode.classes.iter().flat_map(seed).collect::<Vec<f32>>(), dim);
        let noise = tape.constant(&episode.noise[..], noise);
        let hallucinated = network.hallucinate(&mut tape, seeds, noise);
        support = tape.stacked(vec![examples, hallucinated]);
    }
    let embedded = network.embed(&mut tape, support);
    let mean = tape.mixed(class_means(episode, generated), embedded);
    let prototypes = tape.unit(mean);
    let classes = network.in_context(&mut tape, prototypes);
    let queries = tape.constant(rows(|class| &class.queries), dim);
    let scores = network.scores(&mut tape, queries, classes);
    let targets = episode.classes.iter().enumerate();
    let targets = targets.flat_map(|(c, class)| std::iter::repeat_n(c, class.queries.len())).collect();
    let loss = tape.cross_entropy(scores, targets);
    (f64::from(tape.values(loss)[0]), tape.gradients(loss))
}

/// K×n: the mean over each class's examples, which come first, and its hallucinations, which come after all examples.
fn class_means(episode: &Episode, generated: usize) -> Vec<f32> {
    let n_examples: usize = episode.classes.iter().map(|class| class.examples.len()).sum();
    let n = n_examples + generated * episode.classes.len();
    let mut means = vec![0f32; episode.classes.len() * n];
    let mut start = 0;
    for (c, (class, row)) in episode.classes.iter().zip(means.chunks_exact_mut(n)).enumerate() {
        let end = start + class.examples.len();
        let share = 1.0 / (class.examples.len() + generated) as f32;
        row[start..end].fill(share);
        row[n_examples + c * generated..n_examples + (c + 1) * generated].fill(share);
        start = end;
    }
    means
}
