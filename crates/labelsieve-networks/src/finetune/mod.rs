//! Fine-tunes the whole network on weighted examples (eq. 6 and 8).
//!
//! ```text
//! relevance file + images ──NovelClasses──► prototypes (eq. 5) ──► classifier to start from
//!                                      └──► weighted examples [+ base classes] ──Training──► network
//! ```

mod novel_classes;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use labelsieve_files::inputs::decisions::{DecisionCounts, Decisions};
use labelsieve_files::work::outputs::{Files, OutputKind};
use labelsieve_files::work::resume::lock::OutputLock;
use labelsieve_files::work::resume::{self, Key};
use labelsieve_files::work::{Error, Monitor, Result, option, path_text, words};
use labelsieve_files::{AtomicFile, NetworkFile, NetworkMetadata, Precision, counted};
use labelsieve_numerics::Device;
use serde::Serialize;
use serde_json::json;

use self::novel_classes::{NovelClasses, TrainingSources};
use crate::curve::{self, Curves};
use crate::devices::Devices;
use crate::image_files::ImageSource;
use crate::opening::embedder::model_files;
use crate::opening::image_input::ImageFiles;
use crate::opening::network::{NetworkPart, OpenedNetwork, open_network};
use crate::training::{Examples, MIN_RELEVANCE, Objective, Rates, Recipe, Training};
use crate::{ScaleRule, checkpoint, weights};

/// Fine-tunes a network on the images of novel classes, each weighted by its relevance.
#[derive(Clone, Debug, Serialize)]
pub struct FineTune {
    /// The network.
    #[serde(serialize_with = "resume::debug")]
    pub network: PathBuf,
    /// Relevance of the candidates, with the clean examples in it.
    #[serde(serialize_with = "resume::debug")]
    pub relevance: PathBuf,
    /// Decisions about candidates, if not those in the relevance file.
    #[serde(serialize_with = "resume::debug")]
    pub decisions: Option<PathBuf>,
    /// Images of all examples, clean and noisy, found by their ids.
    pub images: ImageFiles,
    /// Images of the network's base classes, to train them further as well (eq. 8).
    pub base_images: Option<ImageFiles>,
    /// Softmax over base and new classes.
    pub softmax: Softmax,
    /// Learning rate.
    pub rate: f32,
    /// Learning rate of the last epoch, reached along half a cosine; else that of the first.
    pub final_rate: Option<f32>,
    /// Passes over all examples, if not the usual number.
    pub epochs: Option<usize>,
    /// Examples per step, if not the usual number.
    pub batch_size: Option<usize>,
    /// The device to train on.
    #[serde(serialize_with = "resume::debug")]
    pub device: Device,
    /// The same seed gives the same network on the same kind of device.
    pub seed: u64,
    /// The file to write (`.safetensors`); curves of accuracy and loss go beside it.
    #[serde(serialize_with = "resume::debug")]
    pub output: PathBuf,
}

/// The classes of a softmax when base classes are trained too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Softmax {
    /// One softmax over all classes, so that scores are comparable
    #[default]
    Joint,
    /// One softmax over base classes and one over new classes, as printed in eq. (8)
    Separate,
}

/// A summary of the training.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FineTuneSummary {
    /// All classes, base classes included.
    pub n_classes: usize,
    /// Base classes among them.
    pub n_base: usize,
    /// Training examples.
    pub n_examples: usize,
    /// Candidates with a decision, if decisions were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decisions: Option<DecisionCounts>,
    /// The curves of accuracy and of loss.
    #[serde(serialize_with = "path_text::each")]
    pub curves: [PathBuf; 2],
}

impl FineTune {
    /// Trains, or resumes after the last epoch that an earlier run of the same job finished, and writes the network.
    pub fn run(
        &self,
        devices: &dyn Devices,
        curves: &dyn Curves,
        monitor: &dyn Monitor,
    ) -> Result<FineTuneSummary> {
        OutputKind::Weights.target(&self.output)?;
        let sources = self.open()?;
        self.check_files(&sources)?;
        curves.check(&self.output)?;
        let _lock = OutputLock::beside(&self.output)?;
        drop(AtomicFile::create(&self.output)?);
        let wanted = if sources.base.is_some() { NetworkPart::Classifier } else { NetworkPart::Features };
        let opened = open_network(&self.network, wanted, None)?;
        let recipe = self.recipe(&opened);
        recipe.check()?;
        let networks = devices.learners(self.device, monitor)?;
        // Read once: a review may add decisions meanwhile, and the key must match those used for training.
        let given = self.decisions.as_deref().map(Decisions::open).transpose()?;
        let novel = NovelClasses::load(&self.relevance, given.as_ref(), &sources, &opened, monitor)?;
        let decisions = novel.decisions;
        let (names, n_base) = match sources.base {
            None => (novel.names.clone(), 0),
            Some(_) => (all_names(&opened, &novel.names)?, opened.metadata.classes.len()),
        };

        let mut learner = networks.learners().learner(&opened.network, &opened.snapshot)?;
        let prototypes = novel.prototypes(learner.as_mut(), &opened, monitor)?;
        drop(learner);
        let class_weights = match sources.base {
            None => prototypes,
            Some(_) => [opened.snapshot.class_weights(&opened.network)?, &prototypes[..]].concat(),
        };
        let start = opened.snapshot.with_classifier(&opened.network, &class_weights, opened.scale)?;
        let split = match self.softmax {
            Softmax::Joint => 0,
            Softmax::Separate => n_base,
        };
        let examples = Examples { split, ..novel.with_base(n_base).without_irrelevant() };
        check_classes(&examples, &names)?;
        let n_examples = examples.rows.len();
        monitor.note(&format!(
            "fine-tuning on {} of {} with relevance >= {MIN_RELEVANCE}, {}, on {networks}",
            counted(n_examples, "example"),
            counted(names.len(), "class"),
            counted(recipe.epochs, "epoch"),
        ));
        let training = Training {
            learners: networks.learners(),
            network: &opened.network,
            examples: &examples,
            validation: None,
            objective: Objective::Cosine,
            recipe: &recipe,
            scale: ScaleRule::Fixed,
            seed: self.seed,
        };
        let fingerprint = self.key(&recipe, given.as_ref(), &sources, networks.kind())?.text(monitor);
        let done = checkpoint::train(&training, start, &self.output, &fingerprint, monitor)?;
        let metadata = NetworkMetadata {
            recipe: json!({
                "fine_tuned": {
                    "recipe": recipe, "seed": self.seed, "n_base": n_base, "softmax": self.softmax,
                    "epochs": done.epochs,
                },
                "from": opened.metadata.recipe,
            }),
            classes: names,
            accuracy: None,
            ..opened.metadata.clone()
        };
        let n_classes = metadata.classes.len();
        let tensors = weights::to_tensors(&opened.network, &done.snapshot)?;
        NetworkFile { tensors, metadata: Some(metadata) }.save(&self.output, Precision::F32)?;
        let curves = curves.draw(&self.output, "fine-tuning", &done.epochs)?;
        checkpoint::forget(&self.output);
        Ok(FineTuneSummary { n_classes, n_base, n_examples, decisions, curves })
    }

    fn recipe(&self, opened: &OpenedNetwork) -> Recipe {
        let input = opened.network.input();
        let usual = Recipe::fine_tuning(input.height, input.width);
        Recipe {
            epochs: self.epochs.unwrap_or(usual.epochs),
            batch: self.batch_size.unwrap_or(usual.batch),
            rates: match self.final_rate {
                Some(last) => Rates::Cosine(self.rate, last),
                None => Rates::Steps(vec![(0, self.rate)]),
            },
            ..usual
        }
    }

    /// Fails if an output would replace an input.
    fn check_files(&self, sources: &TrainingSources) -> Result<()> {
        let images = [&sources.novel].into_iter().chain(&sources.base).flat_map(ImageSource::files);
        let decisions = self.decisions.as_deref().map(Decisions::files);
        let inputs = Files::default().reads(model_files(&self.network)?).reads([&self.relevance]);
        let inputs = inputs.reads_images(images);
        let inputs = inputs.reads(decisions.into_iter().flatten());
        let outputs = inputs.writes([&self.output]).writes(curve::paths(&self.output));
        outputs.writes_beside(&self.output, &[".checkpoint", ".lock"]).check()
    }

    /// Looks at all images.
    fn open(&self) -> Result<TrainingSources> {
        let base = self.base_images.as_ref().map(ImageFiles::open).transpose()?;
        Ok(TrainingSources { novel: self.images.open()?, base, on_damage: self.images.on_damage })
    }

    fn key(
        &self,
        recipe: &Recipe,
        decisions: Option<&Decisions>,
        sources: &TrainingSources,
        device: &str,
    ) -> Result<Key> {
        let mut key = Key::new("finetune", self, &["device", "output", "decisions"])?;
        if let Some(decisions) = decisions {
            key = key.with(&json!({ "decisions": decisions.digest() }));
        }
        let key = key.with(&json!({ "recipe": recipe })).on_device(device);
        let mut files = model_files(&self.network)?;
        files.push(self.relevance.clone());
        let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
        let key = key.with_files(&files)?.with_fingerprint(sources.novel.fingerprint()?);
        Ok(match &sources.base {
            Some(base) => key.with_fingerprint(base.fingerprint()?),
            None => key,
        })
    }
}

/// The base classes, then the novel ones.
fn all_names(opened: &OpenedNetwork, novel: &[String]) -> Result<Vec<String>> {
    let base = &opened.metadata.classes;
    match novel.iter().find(|name| base.contains(name)) {
        None => Ok(base.iter().chain(novel).cloned().collect()),
        Some(twice) => Err(Error::input(
            format!("class `{twice}` is both a base class and a new class"),
            words!["rename the new class, or drop ", option("base_images")],
        )),
    }
}

/// Every class needs training images.
fn check_classes(examples: &Examples, names: &[String]) -> Result<()> {
    let found: HashSet<u32> = examples.classes.iter().copied().collect();
    match names.iter().zip(0..).find(|(_, class)| !found.contains(class)) {
        None => Ok(()),
        Some((name, _)) => Err(Error::input(
            format!("class `{name}` has no training images"),
            words![
                option("base_images"),
                " must contain every class of the network, also after ",
                option("base_where"),
            ],
        )),
    }
}
