//! `labelsieve finetune`: the whole network learns from weighted examples (eq. 6 and 8).

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use labelsieve_files::counted;
use labelsieve_files::inputs::decisions;
use labelsieve_files::work::Monitor;
use labelsieve_jobs::device::Devices;
use labelsieve_networks::finetune::{FineTune as Job, Softmax};
use labelsieve_networks::image_files::{ImageColumns, RowFilter};
use labelsieve_networks::opening::image_input::ImageFiles;
use labelsieve_report::TrainingCurves;

use crate::arguments::{DeviceArguments, JsonArguments, SeedArguments, on_damage};
use crate::printer::Printer;

/// The heading of what belongs to `--base-images`.
const BASE: &str = "Base classes";

/// Fine-tune a whole network on images weighted by their relevance
#[derive(Args)]
pub struct FineTune {
    /// Network to fine-tune: a built-in one by name, e.g. efficientnet-lite0, or a file from `labelsieve pretrain`
    #[arg(long, value_name = "NAME|FILE")]
    network: PathBuf,

    /// Relevance file from `labelsieve score`, which includes the clean examples
    #[arg(long, value_name = "FILE")]
    relevance: PathBuf,

    /// Decisions about candidates: accepted ones count as clean examples, rejected ones not at all [default: those that the
    /// relevance file was made with]
    #[arg(long, value_name = "FILE")]
    decisions: Option<PathBuf>,

    /// Images of all clean examples and candidates, matched by id: folders, .parquet, .tar
    #[arg(long, value_name = "SOURCE", num_args = 1.., required = true)]
    images: Vec<PathBuf>,

    /// Image column [default: image, img, jpg or bytes]
    #[arg(long, value_name = "NAME")]
    image_column: Option<String>,

    /// Id column of images [default: id, key, uid, image_path or file_name]
    #[arg(long, value_name = "NAME")]
    image_id_column: Option<String>,

    /// Stop at the first unreadable image or damaged file instead of skipping it
    #[arg(long)]
    strict: bool,

    /// Epochs [default: 10]
    #[arg(long, value_name = "N")]
    epochs: Option<usize>,

    /// Batch size [default: 256]
    #[arg(long, value_name = "N")]
    batch_size: Option<usize>,

    /// Learning rate
    #[arg(long, value_name = "RATE", default_value_t = 0.01, allow_negative_numbers = true)]
    rate: f32,

    /// Final learning rate of a cosine schedule [default: constant rate]
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    final_rate: Option<f32>,

    /// Output file (.safetensors); accuracy and loss curves are written beside it (.svg)
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Images of the network's base classes, to train them further as well (eq. 8)
    #[arg(long, value_name = "SOURCE", num_args = 1.., help_heading = BASE)]
    base_images: Vec<PathBuf>,

    /// Use only base images with this value, e.g. role=base; repeatable
    #[arg(long = "base-where", value_name = "COLUMN=VALUE", requires = "base_images", help_heading = BASE)]
    base_filters: Vec<RowFilter>,

    /// Class column of base images [default: class or label]
    #[arg(long, value_name = "NAME", requires = "base_images", help_heading = BASE)]
    base_label_column: Option<String>,

    /// Softmax over base and new classes
    #[arg(long, value_enum, default_value = "joint", requires = "base_images", help_heading = BASE)]
    softmax: Softmax,

    #[command(flatten)]
    device: DeviceArguments,

    #[command(flatten)]
    seed: SeedArguments,

    #[command(flatten)]
    json: JsonArguments,
}

impl FineTune {
    pub fn run(&self, printer: &Printer) -> Result<()> {
        let files = |sources: &[PathBuf], label: Option<&String>, filters: &[RowFilter]| ImageFiles {
            sources: sources.to_vec(),
            columns: ImageColumns {
                image: self.image_column.clone(),
                id: self.image_id_column.clone(),
                label: label.cloned(),
                filters: filters.to_vec(),
            },
            on_damage: on_damage(self.strict),
        };
        let base = (!self.base_images.is_empty()).then_some(&self.base_images);
        let job = Job {
            network: self.network.clone(),
            relevance: self.relevance.clone(),
            decisions: self.decisions.clone(),
            images: files(&self.images, None, &[]),
            base_images: base.map(|base| files(base, self.base_label_column.as_ref(), &self.base_filters)),
            softmax: self.softmax,
            rate: self.rate,
            final_rate: self.final_rate,
            epochs: self.epochs,
            batch_size: self.batch_size,
            device: self.device.device,
            seed: self.seed.seed,
            output: self.output.clone(),
        };
        let tuned = job.run(&Devices, &TrainingCurves, printer)?;
        if self.json.json {
            return printer.json("finetune", &tuned);
        }
        if let Some(counts) = &tuned.decisions {
            decisions::say(counts, printer);
        }
        printer.note(&format!(
            "network with {} written to `{}`; use it with `labelsieve predict --model … --images …`",
            counted(tuned.n_classes, "class"),
            self.output.display()
        ));
        Ok(())
    }
}
