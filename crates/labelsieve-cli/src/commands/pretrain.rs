//! `labelsieve pretrain`: a backbone from the images of base classes (eq. 7).

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use labelsieve_data::images::RowFilter;
use labelsieve_data::{NetworkFile, NetworkMetadata, Precision};
use labelsieve_vision::images::{Crop, Dataset, View};
use labelsieve_vision::training::{Examples, Preset, Rates, Recipe, Training};
use labelsieve_vision::{Architecture, Network, ScaleRule, Snapshot, Stem, weights};
use serde::Serialize;
use serde_json::json;

use crate::checkpoint;
use crate::curve;
use crate::device::DeviceArguments;
use crate::hint::user_error;
use crate::image_inputs::{ImageArguments, decode_all};
use crate::lock::OutputLock;
use crate::options::Given;
use crate::outputs::{Files, OutputKind};
use crate::printer::Printer;
use crate::resume;
use crate::table::percent;

/// Learn a backbone on base classes with a cosine classifier
#[derive(Args, Serialize)]
pub struct Pretrain {
    #[command(flatten)]
    #[serde(flatten)]
    images: ImageArguments,

    /// After each epoch, measure accuracy on the rows with these values instead of --where, e.g. split=test
    #[arg(long = "validate-where", value_name = "COLUMN=VALUE")]
    #[serde(serialize_with = "resume::debug")]
    validation_filters: Vec<RowFilter>,

    /// After each epoch, measure accuracy on these images of the same classes
    #[arg(long, value_name = "SOURCE", num_args = 1..)]
    #[serde(serialize_with = "resume::debug")]
    validation: Vec<PathBuf>,

    /// The network: resnet10, resnet18, resnet50 or convnet128
    #[arg(long, default_value = "resnet10")]
    architecture: Architecture,

    /// How a residual network begins: photo (7×7, stride 2) or small (3×3) [default: small up to 96 pixels]
    #[arg(long)]
    stem: Option<Stem>,

    /// Height and width of the images that the network sees [default: 224; convnet128: 84]
    #[arg(long, value_name = "PIXELS")]
    size: Option<usize>,

    /// Recipe: lowshot-imagenet and mini-imagenet are the paper's, small is for some ten thousand images
    #[arg(long, default_value = "small", value_parser = parse_preset)]
    #[serde(serialize_with = "resume::debug")]
    preset: Preset,

    /// Epochs, instead of the preset's
    #[arg(long, value_name = "N")]
    epochs: Option<usize>,

    /// Batches per epoch, instead of the preset's
    #[arg(long, value_name = "N")]
    batches: Option<usize>,

    /// Images per batch, instead of the preset's
    #[arg(long, value_name = "N")]
    batch_size: Option<usize>,

    /// First learning rate of half a cosine to zero, instead of the preset's rates
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    rate: Option<f32>,

    /// Least share of an image's area that a random crop shows, instead of the preset's
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    least_crop: Option<f32>,

    /// Store weights in 16 bits: half the size
    #[arg(long)]
    f16: bool,

    #[command(flatten)]
    #[serde(flatten)]
    device: DeviceArguments,

    /// The same seed gives the same network on the same kind of device
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// File to write (.safetensors); curves of accuracy and loss go beside it (.svg)
    #[arg(short, long, value_name = "FILE")]
    #[serde(serialize_with = "resume::debug")]
    output: PathBuf,
}

fn parse_preset(text: &str) -> std::result::Result<Preset, String> {
    let names: Vec<&str> = Preset::ALL.iter().map(|(name, _)| *name).collect();
    let found = Preset::ALL.into_iter().find(|(name, _)| *name == text);
    found.map(|(_, preset)| preset).ok_or_else(|| format!("expected {}", names.join(", ")))
}

impl Pretrain {
    pub fn check_options(&self, given: &Given) -> Result<()> {
        match self.architecture {
            Architecture::ConvNet128 => given.refuse(
                &["stem"],
                "--architecture convnet128",
                "only residual networks begin with a stem",
            ),
            _ => Ok(()),
        }
    }

    pub fn run(&self, printer: &Printer) -> Result<()> {
        OutputKind::Weights.target(&self.output)?;
        let mut inputs = self.images.open()?.files();
        if let Some(validation) = self.validation_images() {
            inputs.extend(validation.open()?.files());
        }
        let files =
            Files::default().reads_images(inputs).writes([&self.output]).writes(curve::paths(&self.output));
        files.writes_beside(&self.output, &[".checkpoint", ".lock"]).check()?;
        curve::check(&self.output)?;
        let _lock = OutputLock::beside(&self.output)?;
        drop(labelsieve_data::AtomicFile::create(&self.output)?); // better now than after hours
        let side = self.size.unwrap_or(self.architecture.usual_size());
        let stem = self.stem.unwrap_or(Stem::for_images(side, side));
        let network = self.architecture.network(side, side, stem)?;
        let recipe = self.recipe(side);
        recipe.check()?;
        let networks = self.device.open_networks(printer)?;
        let (images, validation) = self.load(side, printer)?;
        let examples = Examples::all(Arc::new(images));
        printer.note(&format!(
            "{} on {} images of {} classes, {side}×{side}, {} epochs of {} batches of {}, on {networks}",
            self.architecture,
            examples.rows.len(),
            examples.n_classes,
            recipe.epochs,
            recipe.batches(examples.rows.len()),
            recipe.batch,
        ));
        let training = Training {
            learners: networks.learners(),
            network: &network,
            examples: &examples,
            validation: validation.as_ref(),
            recipe: &recipe,
            scale: ScaleRule::Learned,
            seed: self.seed,
        };
        let start = Snapshot::initial(&network, examples.n_classes, self.seed);
        let fingerprint = self.key(&recipe, stem, networks.kind())?.text(printer);
        let done = checkpoint::train(&training, start, &self.output, &fingerprint, printer)?;

        let accuracy = done.epochs.last().and_then(|epoch| epoch.validation);
        let metadata = NetworkMetadata {
            classes: examples.images.classes().to_vec(),
            recipe: json!({
                "recipe": recipe, "seed": self.seed, "images": examples.rows.len(), "epochs": done.epochs
            }),
            accuracy,
            ..self.describe(stem, &network)
        };
        let precision = if self.f16 { Precision::F16 } else { Precision::F32 };
        let tensors = weights::to_tensors(&network, &done.snapshot)?;
        NetworkFile { tensors, metadata: Some(metadata) }.save(&self.output, precision)?;
        let title = format!("{} on base classes", self.architecture);
        let [picture, _] = curve::write(&self.output, &title, &done.epochs)?;
        checkpoint::forget(&self.output);
        let right =
            accuracy.map_or(String::new(), |a| format!(", {} % of validation images right", percent(a)));
        printer.note(&format!(
            "network in `{}`{right}; its curve in `{}`",
            self.output.display(),
            picture.display()
        ));
        Ok(())
    }

    fn recipe(&self, side: usize) -> Recipe {
        let mut preset = self.preset.recipe(side, side);
        if let (Some(share), Crop::Random(crop)) = (self.least_crop, &mut preset.augmentation.crop) {
            crop.area.0 = share;
        }
        Recipe {
            epochs: self.epochs.unwrap_or(preset.epochs),
            batches_per_epoch: self.batches.or(preset.batches_per_epoch),
            batch: self.batch_size.unwrap_or(preset.batch),
            rates: self.rate.map_or(preset.rates, |rate| Rates::Cosine(rate, 0.0)),
            ..preset
        }
    }

    fn load(&self, side: usize, printer: &Printer) -> Result<(Dataset, Option<Dataset>)> {
        let images = decode_all(&self.images.open()?, None, side, self.images.damage, printer)?;
        if images.classes().len() < 2 {
            let (n, classes) = (images.len(), images.classes().len());
            return Err(user_error(
                format!("{n} images of {classes} classes are too few to learn from"),
                "classes come from folder names or from --label-column; --where may leave out too much",
            ));
        }
        let Some(arguments) = self.validation_images() else { return Ok((images, None)) };
        let (classes, damage) = (images.classes().to_vec(), self.images.damage);
        let validation = decode_all(&arguments.open()?, Some(classes), side, damage, printer)?;
        if validation.is_empty() {
            return Err(user_error(
                "there is no validation image of these classes",
                "check --validate-where and --validation",
            ));
        }
        Ok((images, Some(validation)))
    }

    /// Where validation images come from, if there are to be any.
    fn validation_images(&self) -> Option<ImageArguments> {
        if self.validation.is_empty() && self.validation_filters.is_empty() {
            return None;
        }
        let paths = if self.validation.is_empty() { &self.images.images } else { &self.validation };
        let filters = self.validation_filters.clone();
        Some(ImageArguments { images: paths.clone(), filters, ..self.images.clone() })
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

    /// The precision of the file is no part of it: weights are kept as they are.
    fn key(&self, recipe: &Recipe, stem: Stem, device: &str) -> Result<resume::Key> {
        let key = resume::Key::new("pretrain", self, &["f16", "device", "output"])?;
        let key = key.with(&json!({ "recipe": recipe, "stem": stem })).on_device(device);
        let key = key.with_images(&self.images.open()?)?;
        match self.validation_images() {
            Some(validation) => key.with_images(&validation.open()?),
            None => Ok(key),
        }
    }
}
