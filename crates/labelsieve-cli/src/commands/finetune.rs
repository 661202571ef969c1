//! `labelsieve train --classifier finetune`: the whole network learns from weighted examples (eq. 6 and 8).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use labelsieve::Features;
use labelsieve::classifier::{WeightedClass, prototypes};
use labelsieve_data::images::{ImageColumns, ImageSource, RowFilter};
use labelsieve_data::{NetworkFile, NetworkMetadata, Precision, RelevanceTable, read_relevance};
use labelsieve_vision::images::{Dataset, DatasetOptions, Encoded, Storage};
use labelsieve_vision::training::{Examples, LEAST_RELEVANCE, Rates, Recipe, Training};
use labelsieve_vision::{Learner, ScaleRule, unit_features, weights};
use serde_json::json;

use crate::checkpoint;
use crate::curve;
use crate::device::DeviceArguments;
use crate::hint::user_error;
use crate::image_inputs::encoded;
use crate::inputs::check_output;
use crate::network::{OpenedNetwork, Wanted, open_network};
use crate::printer::Printer;
use crate::resume;

/// What `train --classifier finetune` needs besides the relevance.
#[derive(Args)]
pub struct FineTuneArguments {
    /// Network to fine-tune, as `labelsieve pretrain` writes it
    #[arg(long, value_name = "FILE", help_heading = "Fine-tuning")]
    pub network: Option<PathBuf>,

    /// Images of all examples, clean and noisy, found by their ids: folders, .parquet, .tar
    #[arg(long, value_name = "SOURCE", num_args = 1.., help_heading = "Fine-tuning")]
    pub images: Vec<PathBuf>,

    /// Images of the network's base classes, which then go on learning too (eq. 8)
    #[arg(long, value_name = "SOURCE", num_args = 1.., help_heading = "Fine-tuning")]
    pub base_images: Vec<PathBuf>,

    /// Only base images whose column has this value, e.g. role=base; may be repeated
    #[arg(long = "base-where", value_name = "COLUMN=VALUE", help_heading = "Fine-tuning")]
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

    /// Learning rate
    #[arg(long, value_name = "RATE", default_value_t = 0.01, help_heading = "Fine-tuning")]
    pub rate: f32,
}

/// Everything that decides the result.
pub struct FineTune<'a> {
    pub arguments: &'a FineTuneArguments,
    pub relevance: &'a Path,
    pub epochs: Option<usize>,
    pub batch_size: Option<usize>,
    pub device: &'a DeviceArguments,
    pub seed: u64,
    pub output: &'a Path,
}

/// One example of the relevance file that has an image.
struct Example {
    row: usize,
    class: u32,
    relevance: f32,
    is_clean: bool,
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
        check_output(self.output, &[path, self.relevance])?;
        drop(labelsieve_data::AtomicFile::create(self.output)?);
        let base = !self.arguments.base_images.is_empty();
        let opened = open_network(path, if base { Wanted::Classifier } else { Wanted::Features }, None)?;
        let networks = self.device.open_networks(printer)?;
        let relevance = read_relevance(self.relevance)?;
        let (images, examples, classes) = self.load(&opened, &relevance, printer)?;

        let mut learner = networks.networks().learner(&opened.network, &opened.snapshot)?;
        let novel = novel_weights(learner.as_mut(), &opened, &images, &examples, classes.len(), printer)?;
        drop(learner);
        let (start, names, n_base) = match base {
            false => (novel, classes, 0),
            true => {
                let base = opened.snapshot.class_weights(&opened.network)?;
                let names: Vec<String> = opened.metadata.classes.iter().cloned().chain(classes).collect();
                ([base, &novel[..]].concat(), names, opened.metadata.classes.len())
            }
        };
        let scale = opened.scale;
        let start = opened.snapshot.with_classifier(&opened.network, &start, scale)?;
        let examples = with_base(images, examples, &names, n_base).without_irrelevant();
        let recipe = self.recipe(&opened);
        printer.note(&format!(
            "fine-tuning on {} examples of {} classes with relevance from {LEAST_RELEVANCE}, {} epochs, on {networks}",
            examples.rows.len(),
            names.len(),
            recipe.epochs,
        ));
        let training = Training {
            networks: networks.networks(),
            network: &opened.network,
            examples: &examples,
            validation: None,
            recipe: &recipe,
            scale: ScaleRule::Fixed,
            seed: self.seed,
        };
        let fingerprint = self.fingerprint(&recipe, path, networks.kind())?;
        let done = checkpoint::train(&training, start, self.output, &fingerprint, printer)?;
        let metadata = NetworkMetadata {
            recipe: json!({
                "fine_tuned": { "recipe": recipe, "seed": self.seed, "n_base": n_base, "epochs": done.epochs },
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
            rates: Rates::Steps(vec![(0, self.arguments.rate)]),
            ..usual
        }
    }

    /// The images of all examples and of the base classes; which rows are which examples; the names of the classes.
    fn load(
        &self,
        opened: &OpenedNetwork,
        relevance: &RelevanceTable,
        printer: &Printer,
    ) -> Result<(Arc<Dataset>, Vec<Example>, Vec<String>)> {
        let wanted: HashMap<&str, ()> = relevance.ids.iter().map(|id| (id.as_str(), ())).collect();
        let source = self.open(&self.arguments.images, &[])?;
        let progress = printer.progress(source.len_hint().unwrap_or(0) as u64, "images");
        progress.set_message("decoding");
        let novel = source
            .images()?
            .map(encoded)
            .inspect(|_| progress.inc(1))
            .filter(|image| wanted.contains_key(image.id.as_str()))
            // Their classes are the relevance file's matter; a dataset wants one label all the same.
            .map(|image| Encoded { label: Some(NOVEL.to_owned()), ..image });
        let base = match self.arguments.base_images.is_empty() {
            true => None,
            false => Some(self.open(&self.arguments.base_images, &self.arguments.base_filters)?.images()?),
        };
        let base = base.into_iter().flatten().map(encoded).inspect(|_| progress.inc(1));
        let input = opened.network.input();
        let options = DatasetOptions {
            storage: Storage::ShorterSide(input.height.max(input.width) * 8 / 7),
            classes: Some(opened.metadata.classes.iter().cloned().chain([NOVEL.to_owned()]).collect()),
            ..DatasetOptions::default()
        };
        let images = Dataset::decode(novel.chain(base), &options);
        progress.finish_and_clear();
        let novel_label = opened.metadata.classes.len() as u32;
        let by_id: HashMap<&str, usize> = (0..images.len())
            .filter(|&row| images.labels()[row] == novel_label)
            .map(|row| (images.ids()[row].as_str(), row))
            .collect();
        let mut names: Vec<String> = (0..relevance.ids.len())
            .filter(|&i| relevance.is_clean[i])
            .map(|i| relevance.classes.get(i).to_owned())
            .collect();
        names.sort();
        names.dedup();
        let number: HashMap<&str, u32> = names.iter().map(String::as_str).zip(0..).collect();
        let (mut examples, mut missing) = (Vec::new(), 0);
        for i in 0..relevance.ids.len() {
            let (id, class) = (&relevance.ids[i], relevance.classes.get(i));
            match (by_id.get(id.as_str()), number.get(class), relevance.is_clean[i]) {
                (Some(&row), Some(&class), is_clean) => {
                    examples.push(Example { row, class, relevance: relevance.relevance[i], is_clean });
                }
                (None, _, true) => {
                    return Err(user_error(
                        format!("the clean example `{id}` of class `{class}` is not among the images"),
                        "the ids of --images must be those of the features, as `labelsieve embed` keeps them",
                    ));
                }
                _ => missing += 1,
            }
        }
        if missing > 0 {
            printer.warning(&format!("{missing} candidates have no image that can be read, or no class"));
        }
        Ok((Arc::new(images), examples, names))
    }

    fn open(&self, inputs: &[PathBuf], filters: &[RowFilter]) -> Result<ImageSource> {
        let columns = ImageColumns {
            image: self.arguments.image_column.clone(),
            id: self.arguments.image_id_column.clone(),
            label: self.arguments.base_label_column.clone(),
            filters: filters.to_vec(),
        };
        Ok(ImageSource::open(inputs, &columns)?)
    }

    fn fingerprint(&self, recipe: &Recipe, network: &Path, device: &str) -> Result<String> {
        let sources = [&self.arguments.images, &self.arguments.base_images];
        let settings = json!({
            "recipe": recipe, "seed": self.seed, "device": device, "images": sources,
            "base": format!("{:?}", self.arguments.base_filters),
        });
        resume::fingerprint(&settings, &[network, self.relevance])
    }
}

/// The label of images whose class stands in the relevance file.
const NOVEL: &str = "";

/// The prototypes (eq. 5) of the novel classes in the network's own features: where W starts.
fn novel_weights(
    learner: &mut dyn Learner,
    opened: &OpenedNetwork,
    images: &Dataset,
    examples: &[Example],
    n_classes: usize,
    printer: &Printer,
) -> Result<Vec<f32>> {
    let dim = opened.network.dim();
    let size = opened.metadata.image_size;
    let progress = printer.progress(examples.len() as u64, "images");
    progress.set_message("prototypes");
    let mut features = Vec::with_capacity(examples.len() * dim);
    for block in examples.chunks(64) {
        let rows: Vec<usize> = block.iter().map(|example| example.row).collect();
        let batch = images.evaluation_batch(&rows, size, opened.view)?;
        features.extend(unit_features(learner, &batch)?);
        progress.inc(rows.len() as u64);
    }
    progress.finish_and_clear();
    let of = |class: u32, is_clean: bool| -> Result<(Features, Vec<f32>)> {
        let chosen: Vec<usize> = (0..examples.len())
            .filter(|&i| examples[i].class == class && examples[i].is_clean == is_clean)
            .collect();
        let rows = chosen.iter().flat_map(|&i| &features[i * dim..(i + 1) * dim]).copied().collect();
        Ok((Features::new(rows, dim)?, chosen.iter().map(|&i| examples[i].relevance).collect()))
    };
    let sets = (0..n_classes as u32)
        .map(|class| Ok((of(class, true)?.0, of(class, false)?)))
        .collect::<Result<Vec<_>>>()?;
    let weighted = sets
        .iter()
        .map(|(clean, (noisy, relevance))| WeightedClass::new(clean, noisy, relevance))
        .collect::<labelsieve::Result<Vec<_>>>()?;
    let weights = prototypes(&weighted, dim, opened.scale).context("cannot make prototypes")?;
    Ok(weights.weights().block(0..n_classes).to_vec())
}

/// All examples: those of the base classes, each counting 1, and the novel ones behind them.
fn with_base(images: Arc<Dataset>, novel: Vec<Example>, names: &[String], n_base: usize) -> Examples {
    let base = (0..images.len()).filter(|&row| (images.labels()[row] as usize) < n_base);
    let base: Vec<(usize, u32, f32)> = base.map(|row| (row, images.labels()[row], 1.0)).collect();
    let novel =
        novel.into_iter().map(|example| (example.row, example.class + n_base as u32, example.relevance));
    let all: Vec<(usize, u32, f32)> = base.into_iter().chain(novel).collect();
    Examples {
        rows: all.iter().map(|(row, _, _)| *row).collect(),
        classes: all.iter().map(|(_, class, _)| *class).collect(),
        relevance: all.iter().map(|(_, _, relevance)| *relevance).collect(),
        n_classes: names.len(),
        split: n_base,
        images,
    }
}
