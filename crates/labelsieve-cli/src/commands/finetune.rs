//! `labelsieve train --classifier finetune`: the whole network learns from weighted examples (eq. 6 and 8).

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueEnum};
use labelsieve_data::images::{ImageColumns, ImageSource, RowFilter};
use labelsieve_data::{NetworkFile, NetworkMetadata, Precision};
use labelsieve_vision::training::{Examples, LEAST_RELEVANCE, Rates, Recipe, Training};
use labelsieve_vision::{ScaleRule, weights};
use serde::Serialize;
use serde_json::json;

use super::novel_classes::{NovelClasses, Sources};
use crate::checkpoint;
use crate::curve;
use crate::device::DeviceArguments;
use crate::hint::user_error;
use crate::image_inputs::DamageArguments;
use crate::lock::OutputLock;
use crate::network::{OpenedNetwork, Wanted, open_network};
use crate::outputs::Files;
use crate::printer::Printer;
use crate::resume;

/// What `train --classifier finetune` needs besides the relevance.
#[derive(Args, Debug, Serialize)]
pub struct FineTuneArguments {
    /// Network to fine-tune, as `labelsieve pretrain` writes it
    #[arg(long, value_name = "FILE", help_heading = "Fine-tuning")]
    #[serde(serialize_with = "resume::debug")]
    pub network: Option<PathBuf>,

    /// Images of all examples, clean and noisy, found by their ids: folders, .parquet, .tar
    #[arg(long, value_name = "SOURCE", num_args = 1.., help_heading = "Fine-tuning")]
    #[serde(serialize_with = "resume::debug")]
    pub images: Vec<PathBuf>,

    /// Images of the network's base classes, which then go on learning too (eq. 8)
    #[arg(long, value_name = "SOURCE", num_args = 1.., help_heading = "Fine-tuning")]
    #[serde(serialize_with = "resume::debug")]
    pub base_images: Vec<PathBuf>,

    /// Only base images whose column has this value, e.g. role=base; may be repeated
    #[arg(long = "base-where", value_name = "COLUMN=VALUE", help_heading = "Fine-tuning")]
    #[serde(serialize_with = "resume::debug")]
    pub base_filters: Vec<RowFilter>,

    /// Column of the image bytes [default: image, img, jpg or bytes]
    #[arg(long, value_name = "NAME", help_heading = "Fine-tuning")]
    pub image_column: Option<String>,

    /// Column of the ids of images [default: id, key, uid, image_path or file_name]
    #[arg(long, value_name = "NAME", help_heading = "Fine-tuning")]
    pub image_id_column: Option<String>,

    /// Column of the classes of base images [default: class or label]
    #[arg(long, value_name = "NAME", help_heading = "Fine-tuning")]
    pub base_label_column: Option<String>,

    #[command(flatten)]
    pub damage: DamageArguments,

    /// Whether base and new classes compete with each other while they learn
    #[arg(long, value_enum, default_value = "joint", requires = "base_images", help_heading = "Fine-tuning")]
    pub softmax: Softmax,

    /// Learning rate
    #[arg(
        long,
        value_name = "RATE",
        default_value_t = 0.01,
        allow_negative_numbers = true,
        help_heading = "Fine-tuning"
    )]
    pub rate: f32,

    /// Learning rate of the last epoch, reached along half a cosine [default: that of the first]
    #[arg(long, value_name = "RATE", allow_negative_numbers = true, help_heading = "Fine-tuning")]
    pub final_rate: Option<f32>,
}

/// Which classes compete when base classes learn too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Softmax {
    /// All with all, so that their scores can be compared
    Joint,
    /// Base classes among themselves and new ones among themselves: eq. (8) as the paper prints it
    Separate,
}

/// Everything that decides the result.
#[derive(Serialize)]
pub struct FineTune<'a> {
    pub arguments: &'a FineTuneArguments,
    #[serde(serialize_with = "resume::debug")]
    pub relevance: &'a Path,
    pub epochs: Option<usize>,
    pub batch_size: Option<usize>,
    pub device: &'a DeviceArguments,
    pub seed: u64,
    #[serde(serialize_with = "resume::debug")]
    pub output: &'a Path,
}

impl FineTune<'_> {
    pub fn run(&self, printer: &Printer) -> Result<()> {
        let path = self
            .arguments
            .network
            .as_deref()
            .ok_or_else(|| user_error("fine-tuning needs a network", "give --network and --images"))?;
        if self.arguments.images.is_empty() {
            return Err(user_error(
                "fine-tuning needs images",
                "give --images, with the ids of the relevance file",
            ));
        }
        let sources = self.open()?;
        let images = [&sources.novel].into_iter().chain(&sources.base).flat_map(ImageSource::files);
        let inputs = Files::default().reads([path, self.relevance]).reads_images(images);
        let outputs = inputs.writes([self.output]).writes(curve::paths(self.output));
        outputs.writes_beside(self.output, &[".checkpoint", ".lock"]).check()?;
        curve::check(self.output)?;
        let _lock = OutputLock::beside(self.output)?;
        drop(labelsieve_data::AtomicFile::create(self.output)?);
        let with_base = !self.arguments.base_images.is_empty();
        let wanted = if with_base { Wanted::Classifier } else { Wanted::Features };
        let opened = open_network(path, wanted, None)?;
        let recipe = self.recipe(&opened);
        recipe.check()?;
        let networks = self.device.open_networks(printer)?;
        let novel = NovelClasses::load(self.relevance, &sources, &opened, printer)?;
        let (names, n_base) = match with_base {
            false => (novel.names.clone(), 0),
            true => (all_names(&opened, &novel.names)?, opened.metadata.classes.len()),
        };

        let mut learner = networks.learners().learner(&opened.network, &opened.snapshot)?;
        let mut start = novel.prototypes(learner.as_mut(), &opened, printer)?;
        drop(learner);
        if with_base {
            start = [opened.snapshot.class_weights(&opened.network)?, &start[..]].concat();
        }
        let start = opened.snapshot.with_classifier(&opened.network, &start, opened.scale)?;
        let split = match self.arguments.softmax {
            Softmax::Joint => 0,
            Softmax::Separate => n_base,
        };
        let examples = Examples { split, ..novel.with_base(n_base).without_irrelevant() };
        check_classes(&examples, &names)?;
        printer.note(&format!(
            "fine-tuning on {} examples of {} classes with relevance from {LEAST_RELEVANCE}, {} epochs, on {networks}",
            examples.rows.len(),
            names.len(),
            recipe.epochs,
        ));
        let training = Training {
            learners: networks.learners(),
            network: &opened.network,
            examples: &examples,
            validation: None,
            recipe: &recipe,
            scale: ScaleRule::Fixed,
            seed: self.seed,
        };
        let fingerprint = self.key(&recipe, &sources, path, networks.kind())?.text(printer);
        let done = checkpoint::train(&training, start, self.output, &fingerprint, printer)?;
        let metadata = NetworkMetadata {
            recipe: json!({
                "fine_tuned": {
                    "recipe": recipe, "seed": self.seed, "n_base": n_base, "softmax": self.arguments.softmax,
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
        NetworkFile { tensors, metadata: Some(metadata) }.save(self.output, Precision::F32)?;
        curve::write(self.output, "fine-tuning", &done.epochs)?;
        checkpoint::forget(self.output);
        printer.note(&format!(
            "network with {n_classes} classes in `{}`; `labelsieve predict --model … --images …` uses it",
            self.output.display()
        ));
        Ok(())
    }

    fn recipe(&self, opened: &OpenedNetwork) -> Recipe {
        let input = opened.network.input();
        let usual = Recipe::fine_tuning(input.height, input.width);
        Recipe {
            epochs: self.epochs.unwrap_or(usual.epochs),
            batch: self.batch_size.unwrap_or(usual.batch),
            rates: match self.arguments.final_rate {
                Some(last) => Rates::Cosine(self.arguments.rate, last),
                None => Rates::Steps(vec![(0, self.arguments.rate)]),
            },
            ..usual
        }
    }

    /// Looks at all images.
    fn open(&self) -> Result<Sources> {
        let open = |inputs: &[PathBuf], filters: &[RowFilter]| {
            let columns = ImageColumns {
                image: self.arguments.image_column.clone(),
                id: self.arguments.image_id_column.clone(),
                label: self.arguments.base_label_column.clone(),
                filters: filters.to_vec(),
            };
            ImageSource::open(inputs, &columns)
        };
        let base = match self.arguments.base_images.is_empty() {
            true => None,
            false => Some(open(&self.arguments.base_images, &self.arguments.base_filters)?),
        };
        Ok(Sources { novel: open(&self.arguments.images, &[])?, base, damage: self.arguments.damage })
    }

    fn key(&self, recipe: &Recipe, sources: &Sources, network: &Path, device: &str) -> Result<resume::Key> {
        let key = resume::Key::new("train --classifier finetune", self, &["device", "output"])?;
        let key = key.with(&json!({ "recipe": recipe })).on_device(device);
        let key = key.with_files(&[network, self.relevance])?.with_images(&sources.novel)?;
        sources.base.as_ref().map_or(Ok(key.clone()), |base| key.with_images(base))
    }
}

/// The base classes, then the novel ones.
fn all_names(opened: &OpenedNetwork, novel: &[String]) -> Result<Vec<String>> {
    let base = &opened.metadata.classes;
    match novel.iter().find(|name| base.contains(name)) {
        None => Ok(base.iter().chain(novel).cloned().collect()),
        Some(twice) => Err(user_error(
            format!("class `{twice}` is a base class of the network and a new one"),
            "give the new class another name, or leave out --base-images",
        )),
    }
}

/// Nothing can be learned of a class without images.
fn check_classes(examples: &Examples, names: &[String]) -> Result<()> {
    let found: HashSet<u32> = examples.classes.iter().copied().collect();
    match names.iter().zip(0..).find(|(_, class)| !found.contains(class)) {
        None => Ok(()),
        Some((name, _)) => Err(user_error(
            format!("class `{name}` has no image to learn from"),
            "--base-images, less what --base-where leaves out, must show every class of the network",
        )),
    }
}
