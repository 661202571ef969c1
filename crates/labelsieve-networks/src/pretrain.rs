//! Trains a backbone on the images of base classes: with a cosine classifier (eq. 7), or by episodes.

use std::path::PathBuf;
use std::sync::Arc;

use labelsieve_files::work::outputs::{Files, OutputKind};
use labelsieve_files::work::resume::lock::OutputLock;
use labelsieve_files::work::{Error, Monitor, Result, option, path_text, resume, words};
use labelsieve_files::{AtomicFile, NetworkFile, NetworkMetadata, Precision, counted};
use labelsieve_numerics::Device;
use serde::Serialize;
use serde_json::json;

use crate::curve::{self, Curves};
use crate::devices::Devices;
use crate::images::{Crop, Dataset, View};
use crate::opening::image_input::{ImageFiles, decode_all};
use crate::training::{Examples, MAX_BATCH, Objective, Preset, Rates, Recipe, Training};
use crate::{Architecture, Network, ScaleRule, Snapshot, Stem, checkpoint, weights};

/// Trains a backbone on base classes.
#[derive(Clone, Debug, Serialize)]
pub struct Pretrain {
    /// Images of the base classes.
    #[serde(flatten)]
    pub images: ImageFiles,
    /// Images of the same classes to measure accuracy on after each epoch.
    pub validation: Option<ImageFiles>,
    /// The network.
    pub architecture: Architecture,
    /// The first layers of a residual network, if not the default for the size.
    pub stem: Option<Stem>,
    /// Input size of the network, if not the default.
    pub size: Option<usize>,
    /// The objective.
    pub objective: Objective,
    /// The recipe.
    #[serde(serialize_with = "resume::debug")]
    pub preset: Preset,
    /// Epochs, if not the preset's.
    pub epochs: Option<usize>,
    /// Batches per epoch, if not the preset's.
    pub batches: Option<usize>,
    /// Batch size, if not the preset's.
    pub batch_size: Option<usize>,
    /// Initial learning rate of a cosine schedule to zero, if not the preset's rates.
    pub rate: Option<f32>,
    /// Minimum area of a random crop, as a fraction of the image, if not the preset's.
    pub least_crop: Option<f32>,
    /// Precision of stored weights.
    #[serde(serialize_with = "resume::debug")]
    pub precision: Precision,
    /// The device to train on.
    #[serde(serialize_with = "resume::debug")]
    pub device: Device,
    /// The same seed gives the same network on the same kind of device.
    pub seed: u64,
    /// The file to write (`.safetensors`); curves of accuracy and loss go beside it.
    #[serde(serialize_with = "resume::debug")]
    pub output: PathBuf,
}

/// A summary of the training.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PretrainSummary {
    /// Training images.
    pub n_images: usize,
    /// Base classes.
    pub n_classes: usize,
    /// Top-1 accuracy on the validation images.
    pub accuracy: Option<f64>,
    /// The curves of accuracy and of loss.
    #[serde(serialize_with = "path_text::each")]
    pub curves: [PathBuf; 2],
}

impl Pretrain {
    /// Trains, or resumes after the last epoch that an earlier run of the same job finished, and writes the network.
    pub fn run(
        &self,
        devices: &dyn Devices,
        curves: &dyn Curves,
        monitor: &dyn Monitor,
    ) -> Result<PretrainSummary> {
        OutputKind::Weights.target(&self.output)?;
        self.check_files()?;
        curves.check(&self.output)?;
        let _lock = OutputLock::beside(&self.output)?;
        drop(AtomicFile::create(&self.output)?); // fail early if the output is not writable
        let side = self.size.unwrap_or(self.architecture.usual_size());
        let stem = self.stem.unwrap_or(Stem::for_images(side, side));
        let network = self.architecture.network(side, side, stem)?;
        let recipe = self.recipe(side);
        recipe.check()?;
        if let Objective::Prototypical(rule) = &self.objective {
            rule.check(MAX_BATCH)?;
        }
        let networks = devices.learners(self.device, monitor)?;
        let (images, validation) = self.load(side, monitor)?;
        let examples = Examples::all(Arc::new(images));
        self.check_episodes(&examples)?;
        monitor.note(&format!(
            "{} on {} of {}, {side}×{side}, {} of {} of {}, on {networks}",
            self.architecture,
            counted(examples.rows.len(), "image"),
            counted(examples.n_classes, "class"),
            counted(recipe.epochs, "epoch"),
            counted(recipe.batches(examples.rows.len()), "batch"),
            recipe.batch,
        ));
        let training = Training {
            learners: networks.learners(),
            network: &network,
            examples: &examples,
            validation: validation.as_ref(),
            objective: self.objective,
            recipe: &recipe,
            scale: ScaleRule::Learned,
            seed: self.seed,
        };
        let n_top = self.objective.classifier_classes(examples.n_classes);
        let start = Snapshot::initial(&network, n_top, self.seed);
        let fingerprint = self.key(&recipe, stem, networks.kind())?.text(monitor);
        let done = checkpoint::train(&training, start, &self.output, &fingerprint, monitor)?;

        let accuracy = done.epochs.last().and_then(|epoch| epoch.validation);
        let has_classifier = n_top > 0;
        let metadata = NetworkMetadata {
            classes: if has_classifier { examples.images.classes().to_vec() } else { Vec::new() },
            recipe: json!({
                "recipe": recipe, "objective": self.objective, "seed": self.seed, "images": examples.rows.len(),
                "epochs": done.epochs
            }),
            accuracy,
            ..self.describe(stem, &network)
        };
        let tensors = weights::to_tensors(&network, &done.snapshot)?;
        NetworkFile { tensors, metadata: Some(metadata) }.save(&self.output, self.precision)?;
        let title = format!("{} on base classes", self.architecture);
        let curves = curves.draw(&self.output, &title, &done.epochs)?;
        checkpoint::forget(&self.output);
        let n_images = examples.rows.len();
        let n_classes = examples.n_classes;
        Ok(PretrainSummary { n_images, n_classes, accuracy, curves })
    }

    /// Fails if an output would replace an input.
    fn check_files(&self) -> Result<()> {
        let mut inputs = self.images.open()?.files();
        if let Some(validation) = &self.validation {
            inputs.extend(validation.open()?.files());
        }
        let files = Files::default().reads_images(inputs);
        let files = files.writes([&self.output]).writes(curve::paths(&self.output));
        files.writes_beside(&self.output, &[".checkpoint", ".lock"]).check()
    }

    fn recipe(&self, side: usize) -> Recipe {
        let mut preset = self.preset.recipe(side, side);
        if let (Some(share), Crop::Random(crop)) = (self.least_crop, &mut preset.augmentation.crop) {
            crop.area.0 = share;
        }
        Recipe {
            epochs: self.epochs.unwrap_or(preset.epochs),
            batches_per_epoch: self.batches.or(preset.batches_per_epoch),
            batch: match &self.objective {
                Objective::Cosine => self.batch_size.unwrap_or(preset.batch),
                Objective::Prototypical(rule) => rule.batch(),
            },
            rates: self.rate.map_or(preset.rates, |rate| Rates::Cosine(rate, 0.0)),
            ..preset
        }
    }

    /// Checks that there are enough classes, and enough images of each, for the episodes.
    fn check_episodes(&self, examples: &Examples) -> Result<()> {
        let Objective::Prototypical(rule) = &self.objective else { return Ok(()) };
        if rule.ways > examples.n_classes {
            return Err(Error::input(
                format!(
                    "an episode takes {}, but there are {}",
                    counted(rule.ways, "class"),
                    examples.n_classes
                ),
                words!["lower ", option("ways")],
            ));
        }
        let mut counts = vec![0; examples.n_classes];
        examples.classes.iter().for_each(|&class| counts[class as usize] += 1);
        match counts.iter().position(|&count| count < rule.per_class()) {
            None => Ok(()),
            Some(small) => Err(Error::input(
                format!(
                    "class `{}` has {}, but an episode takes {} of a class",
                    examples.images.classes()[small],
                    counted(counts[small], "image"),
                    rule.per_class()
                ),
                words!["lower ", option("shots"), " or ", option("queries"), ", or leave the class out"],
            )),
        }
    }

    fn load(&self, side: usize, monitor: &dyn Monitor) -> Result<(Dataset, Option<Dataset>)> {
        let images = decode_all(&self.images.open()?, None, side, self.images.on_damage, monitor)?;
        if images.classes().len() < 2 {
            let n = counted(images.len(), "image");
            let classes = counted(images.classes().len(), "class");
            return Err(Error::input(
                format!("{n} of {classes} are too few to train on"),
                words![
                    "classes come from folder names or from ",
                    option("label_column"),
                    "; ",
                    option("where"),
                    " may exclude too much",
                ],
            ));
        }
        let Some(files) = &self.validation else { return Ok((images, None)) };
        let classes = images.classes().to_vec();
        let on_damage = self.images.on_damage;
        let validation = decode_all(&files.open()?, Some(classes), side, on_damage, monitor)?;
        if validation.is_empty() {
            return Err(Error::input(
                "no validation images of these classes",
                words!["check ", option("validate_where"), " and ", option("validation")],
            ));
        }
        Ok((images, Some(validation)))
    }

    fn describe(&self, stem: Stem, network: &Network) -> NetworkMetadata {
        let input = network.input();
        NetworkMetadata {
            architecture: self.architecture.to_string(),
            stem: stem.to_string(),
            image_size: (input.height, input.width),
            channel_mean: network.mean,
            channel_deviation: network.deviation,
            view: View::for_images(input.height, input.width).to_string(),
            ..NetworkMetadata::default()
        }
    }

    /// Precision is left out: checkpoints hold full-precision weights.
    fn key(&self, recipe: &Recipe, stem: Stem, device: &str) -> Result<resume::Key> {
        let key = resume::Key::new("pretrain", self, &["precision", "device", "output"])?;
        let key = key.with(&json!({ "recipe": recipe, "stem": stem })).on_device(device);
        let key = key.with_fingerprint(self.images.open()?.fingerprint()?);
        Ok(match &self.validation {
            Some(validation) => key.with_fingerprint(validation.open()?.fingerprint()?),
            None => key,
        })
    }
}
