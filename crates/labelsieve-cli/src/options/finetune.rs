//! Options of `finetune`.

use std::path::PathBuf;

use clap::Args;
use labelsieve_networks::finetune::{FineTune, Softmax};
use labelsieve_networks::image_files::{ImageColumns, RowFilter};
use labelsieve_networks::opening::image_input::ImageFiles;

use crate::arguments::{DeviceArguments, SeedArguments, on_damage};

/// The heading of the options of `--base-images`.
const BASE: &str = "Base classes";

/// A network, the weighted images it learns from, and its training.
#[derive(Args, Clone, Debug)]
pub struct FineTuneOptions {
    /// Network to fine-tune: a built-in one by name, e.g. efficientnet-lite0, or a file from `labelsieve pretrain`
    #[arg(long, value_name = "NAME|FILE")]
    pub network: PathBuf,

    /// Relevance file from `labelsieve score`, which includes the clean examples
    #[arg(long, value_name = "FILE")]
    pub relevance: PathBuf,

    /// Decisions about candidates: accepted ones count as clean examples, rejected ones not at all [default: those that the
    /// relevance file was made with]
    #[arg(long, value_name = "FILE")]
    pub decisions: Option<PathBuf>,

    /// Images of all clean examples and candidates, matched by id: folders, .parquet, .tar
    #[arg(long, value_name = "SOURCE", num_args = 1.., required = true)]
    pub images: Vec<PathBuf>,

    /// Image column [default: image, img, jpg or bytes]
    #[arg(long, value_name = "NAME")]
    pub image_column: Option<String>,

    /// Id column of images [default: id, key, uid, image_path or file_name]
    #[arg(long, value_name = "NAME")]
    pub image_id_column: Option<String>,

    /// Stop at the first unreadable image or damaged file instead of skipping it
    #[arg(long)]
    pub strict: bool,

    /// Epochs [default: 10]
    #[arg(long, value_name = "N")]
    pub epochs: Option<usize>,

    /// Batch size [default: 256]
    #[arg(long, value_name = "N")]
    pub batch_size: Option<usize>,

    /// Learning rate
    #[arg(long, value_name = "RATE", default_value_t = 0.01, allow_negative_numbers = true)]
    pub rate: f32,

    /// Final learning rate of a cosine schedule [default: constant rate]
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    pub final_rate: Option<f32>,

    /// Output file (.safetensors); accuracy and loss curves are written beside it (.svg)
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,

    /// Images of the network's base classes, to train them further as well (eq. 8)
    #[arg(long, value_name = "SOURCE", num_args = 1.., help_heading = BASE)]
    pub base_images: Vec<PathBuf>,

    /// Use only base images with this value, e.g. role=base; repeatable
    #[arg(long, value_name = "COLUMN=VALUE", requires = "base_images", help_heading = BASE)]
    pub base_where: Vec<RowFilter>,

    /// Class column of base images [default: class or label]
    #[arg(long, value_name = "NAME", requires = "base_images", help_heading = BASE)]
    pub base_label_column: Option<String>,

    /// Softmax over base and new classes
    #[arg(long, value_enum, default_value = "joint", requires = "base_images", help_heading = BASE)]
    pub softmax: Softmax,

    #[command(flatten)]
    pub(crate) device: DeviceArguments,

    #[command(flatten)]
    pub(crate) seed: SeedArguments,
}

impl FineTuneOptions {
    /// The job that they describe.
    pub fn job(&self) -> FineTune {
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
        FineTune {
            network: self.network.clone(),
            relevance: self.relevance.clone(),
            decisions: self.decisions.clone(),
            images: files(&self.images, None, &[]),
            base_images: base.map(|base| files(base, self.base_label_column.as_ref(), &self.base_where)),
            softmax: self.softmax,
            rate: self.rate,
            final_rate: self.final_rate,
            epochs: self.epochs,
            batch_size: self.batch_size,
            device: self.device.device,
            seed: self.seed.seed,
            output: self.output.clone(),
        }
    }
}
