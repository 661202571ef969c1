//! `labelsieve finetune`: the whole network learns from weighted examples (eq. 6 and 8).

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use labelsieve_data::images::{ImageColumns, RowFilter};
use labelsieve_pipeline::Monitor;
use labelsieve_pipeline::finetune::{FineTune as Job, Softmax};
use labelsieve_pipeline::inputs::images::ImageFiles;

use crate::arguments::{DeviceArguments, JsonArguments, SeedArguments, on_damage};
use crate::printer::Printer;

/// The heading of what belongs to `--base-images`.
const BASE: &str = "Base classes";

/// Train a whole network on images that count by their relevance
#[derive(Args)]
pub struct FineTune {
    /// Network to fine-tune, as `labelsieve pretrain` writes it
    #[arg(long, value_name = "FILE")]
    network: PathBuf,

    /// Relevance of the candidates, with the clean examples in it, as `labelsieve clean` writes it
    #[arg(long, value_name = "FILE")]
    relevance: PathBuf,

    /// Images of all examples, clean and noisy, found by their ids: folders, .parquet, .tar
    #[arg(long, value_name = "SOURCE", num_args = 1.., required = true)]
    images: Vec<PathBuf>,

    /// Column of the image bytes [default: image, img, jpg or bytes]
    #[arg(long, value_name = "NAME")]
    image_column: Option<String>,

    /// Column of the ids of images [default: id, key, uid, image_path or file_name]
    #[arg(long, value_name = "NAME")]
    image_id_column: Option<String>,

    /// Stop at the first image that cannot be read or decoded, and at the first damaged .parquet or .tar file
    #[arg(long)]
    strict: bool,

    /// Passes over all examples [default: 10]
    #[arg(long, value_name = "N")]
    epochs: Option<usize>,

    /// Images per step [default: 256]
    #[arg(long, value_name = "N")]
    batch_size: Option<usize>,

    /// Learning rate
    #[arg(long, value_name = "RATE", default_value_t = 0.01, allow_negative_numbers = true)]
    rate: f32,

    /// Learning rate of the last epoch, reached along half a cosine [default: that of the first]
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    final_rate: Option<f32>,

    /// File to write (.safetensors); curves of accuracy and loss go beside it (.svg)
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Images of the network's base classes, which then keep learning too (eq. 8)
    #[arg(long, value_name = "SOURCE", num_args = 1.., help_heading = BASE)]
    base_images: Vec<PathBuf>,

    /// Only base images whose column has this value, e.g. role=base; may be repeated
    #[arg(long = "base-where", value_name = "COLUMN=VALUE", requires = "base_images", help_heading = BASE)]
    base_filters: Vec<RowFilter>,

    /// Column of the classes of base images [default: class or label]
    #[arg(long, value_name = "NAME", requires = "base_images", help_heading = BASE)]
    base_label_column: Option<String>,

    /// Whether base and new classes compete with each other while they learn
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
        let tuned = job.run(printer)?;
        if self.json.json {
            return printer.json("finetune", &tuned);
        }
        printer.note(&format!(
            "network with {} classes in `{}`; `labelsieve predict --model … --images …` uses it",
            tuned.n_classes,
            self.output.display()
        ));
        Ok(())
    }
}
