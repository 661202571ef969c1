//! The options of every training of a backbone.

use std::path::PathBuf;

use anyhow::Result;
use labelsieve_files::Precision;
use labelsieve_files::work::Monitor;
use labelsieve_files::work::table::percent;
use labelsieve_jobs::device::Devices;
use labelsieve_networks::image_files::RowFilter;
use labelsieve_networks::opening::image_input::ImageFiles;
use labelsieve_networks::pretrain::Pretrain;
use labelsieve_networks::training::{Objective, Preset};
use labelsieve_networks::{Architecture, Stem};
use labelsieve_report::TrainingCurves;

use super::{DeviceArguments, ImageArguments, JsonArguments, SeedArguments};
use crate::given::Given;
use crate::printer::Printer;

/// The options of a training but for those of what the network learns by.
#[derive(clap::Args, Clone, Debug)]
pub struct BackboneArguments {
    #[command(flatten)]
    images: ImageArguments,

    /// Measure accuracy after each epoch on rows with these values (instead of --where), e.g. split=test
    #[arg(long, value_name = "COLUMN=VALUE")]
    validate_where: Vec<RowFilter>,

    /// Measure accuracy after each epoch on these images of the same classes
    #[arg(long, value_name = "SOURCE", num_args = 1..)]
    validation: Vec<PathBuf>,

    /// Architecture: resnet10, resnet18, resnet50, convnet128 or efficientnet-lite0
    #[arg(long, default_value = "resnet10")]
    architecture: Architecture,

    /// Stem of a residual network: photo (7×7, stride 2) or small (3×3) [default: small up to 96 pixels]
    #[arg(long)]
    stem: Option<Stem>,

    /// Input size of the network [default: 224; convnet128: 84]
    #[arg(long, value_name = "PIXELS")]
    size: Option<usize>,

    /// Training recipe: lowshot-imagenet and mini-imagenet are the paper's, small is for about ten thousand images
    #[arg(long, default_value = "small", value_parser = parse_preset)]
    preset: Preset,

    /// Epochs [default: the preset's]
    #[arg(long, value_name = "N")]
    epochs: Option<usize>,

    /// Batches per epoch [default: the preset's]
    #[arg(long, value_name = "N")]
    batches: Option<usize>,

    /// Initial learning rate of a cosine schedule to zero [default: the preset's rates]
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    rate: Option<f32>,

    /// Minimum area of a random crop, as a fraction of the image [default: the preset's]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    least_crop: Option<f32>,

    /// Store weights in 16 bits (half the size)
    #[arg(long)]
    f16: bool,

    /// Output file (.safetensors); accuracy and loss curves are written beside it (.svg)
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    #[command(flatten)]
    device: DeviceArguments,

    #[command(flatten)]
    seed: SeedArguments,
}

fn parse_preset(text: &str) -> std::result::Result<Preset, String> {
    let names: Vec<&str> = Preset::ALL.iter().map(|(name, _)| *name).collect();
    let found = Preset::ALL.into_iter().find(|(name, _)| *name == text);
    found.map(|(_, preset)| preset).ok_or_else(|| format!("expected {}", names.join(", ")))
}

impl BackboneArguments {
    /// Refuses options that other architectures have.
    pub fn check_options(&self, given: &Given) -> Result<()> {
        match self.architecture {
            Architecture::ConvNet128 => {
                given.refuse(&["stem"], "--architecture convnet128", "only residual networks have a stem")
            }
            Architecture::EfficientNetLite0 => {
                let chosen = "--architecture efficientnet-lite0";
                given.refuse(&["stem"], chosen, "only residual networks have a stem")
            }
            Architecture::ResNet10 | Architecture::ResNet18 | Architecture::ResNet50 => Ok(()),
        }
    }

    /// The job that trains this backbone.
    pub fn job(&self, objective: Objective, batch_size: Option<usize>) -> Pretrain {
        let images = self.images.files();
        Pretrain {
            validation: self.validation_images(&images),
            images,
            architecture: self.architecture,
            stem: self.stem,
            size: self.size,
            objective,
            preset: self.preset,
            epochs: self.epochs,
            batches: self.batches,
            batch_size,
            rate: self.rate,
            least_crop: self.least_crop,
            precision: if self.f16 { Precision::F16 } else { Precision::F32 },
            device: self.device.device,
            seed: self.seed.seed,
            output: self.output.clone(),
        }
    }

    /// Trains the backbone and prints a summary.
    pub fn train(&self, job: &Pretrain, json: JsonArguments, printer: &Printer) -> Result<()> {
        let trained = job.run(&Devices, &TrainingCurves, printer)?;
        if json.json {
            return printer.json("pretrain", &trained);
        }
        let right = match trained.accuracy {
            Some(accuracy) => format!(", {} % validation accuracy", percent(accuracy)),
            None => String::new(),
        };
        printer.note(&format!(
            "network written to `{}`{right}; curves in `{}`",
            self.output.display(),
            trained.curves.each_ref().map(|curve| curve.display().to_string()).join("` and `")
        ));
        Ok(())
    }

    /// Where validation images come from, if there are to be any.
    fn validation_images(&self, images: &ImageFiles) -> Option<ImageFiles> {
        if self.validation.is_empty() && self.validate_where.is_empty() {
            return None;
        }
        let mut validation = images.clone();
        if !self.validation.is_empty() {
            validation.sources = self.validation.clone();
        }
        validation.columns.filters = self.validate_where.clone();
        Some(validation)
    }
}
