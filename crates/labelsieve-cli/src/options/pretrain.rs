//! Options of `pretrain`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use labelsieve_files::Precision;
use labelsieve_networks::image_files::RowFilter;
use labelsieve_networks::opening::image_input::ImageFiles;
use labelsieve_networks::pretrain::Pretrain;
use labelsieve_networks::training::{Objective, Preset};
use labelsieve_networks::{Architecture, Distance, Prototypical, Stem};

use crate::arguments::{DeviceArguments, ImageArguments, SeedArguments};

/// The images of base classes, and the network that learns them.
#[derive(Args, Clone, Debug)]
pub struct PretrainOptions {
    #[command(flatten)]
    pub(crate) images: ImageArguments,

    /// Measure accuracy after each epoch on rows with these values (instead of --where), e.g. split=test
    #[arg(long, value_name = "COLUMN=VALUE")]
    pub validate_where: Vec<RowFilter>,

    /// Measure accuracy after each epoch on these images of the same classes
    #[arg(long, value_name = "SOURCE", num_args = 1..)]
    pub validation: Vec<PathBuf>,

    /// Architecture: resnet10, resnet18, resnet50, convnet128 or efficientnet-lite0
    #[arg(long, default_value = "resnet10")]
    pub architecture: Architecture,

    /// Stem of a residual network: photo (7×7, stride 2) or small (3×3) [default: small up to 96 pixels]
    #[arg(long)]
    pub stem: Option<Stem>,

    /// Input size of the network [default: 224; convnet128: 84]
    #[arg(long, value_name = "PIXELS")]
    pub size: Option<usize>,

    /// Training objective
    #[arg(long, value_enum, default_value = "cosine")]
    pub objective: ObjectiveName,

    /// Classes per episode, for prototypical [default: 20]
    #[arg(long, value_name = "N")]
    pub ways: Option<usize>,

    /// Examples per class that its prototype is made of, for prototypical [default: 5]
    #[arg(long, value_name = "K")]
    pub shots: Option<usize>,

    /// Examples per class that are classified, for prototypical [default: 15]
    #[arg(long, value_name = "N")]
    pub queries: Option<usize>,

    /// How examples are compared with prototypes, for prototypical [default: euclidean]
    #[arg(long, value_enum)]
    pub(crate) distance: Option<DistanceName>,

    /// Training recipe: lowshot-imagenet and mini-imagenet are the paper's, small is for about ten thousand images
    #[arg(long, default_value = "small", value_parser = parse_preset)]
    pub preset: Preset,

    /// Epochs [default: the preset's]
    #[arg(long, value_name = "N")]
    pub epochs: Option<usize>,

    /// Batches per epoch [default: the preset's]
    #[arg(long, value_name = "N")]
    pub batches: Option<usize>,

    /// Batch size [default: the preset's]
    #[arg(long, value_name = "N")]
    pub batch_size: Option<usize>,

    /// Initial learning rate of a cosine schedule to zero [default: the preset's rates]
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    pub rate: Option<f32>,

    /// Minimum area of a random crop, as a fraction of the image [default: the preset's]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub least_crop: Option<f32>,

    /// Store weights in 16 bits (half the size)
    #[arg(long)]
    pub f16: bool,

    /// Output file (.safetensors); accuracy and loss curves are written beside it (.svg)
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,

    #[command(flatten)]
    pub(crate) device: DeviceArguments,

    #[command(flatten)]
    pub(crate) seed: SeedArguments,
}

/// How a backbone learns its base classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ObjectiveName {
    /// A cosine classifier of all base classes (eq. 7)
    Cosine,
    /// Episodes of a few classes, each the mean of a few examples (prototypical networks)
    Prototypical,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DistanceName {
    /// Squared Euclidean distance
    Euclidean,
    /// Cosine, times 10
    Cosine,
}

fn parse_preset(text: &str) -> Result<Preset, String> {
    let names: Vec<&str> = Preset::ALL.iter().map(|(name, _)| *name).collect();
    let found = Preset::ALL.into_iter().find(|(name, _)| *name == text);
    found.map(|(_, preset)| preset).ok_or_else(|| format!("expected {}", names.join(", ")))
}

impl PretrainOptions {
    /// The job that they describe.
    pub fn job(&self) -> Pretrain {
        let images = self.images.files();
        Pretrain {
            validation: self.validation_images(&images),
            images,
            architecture: self.architecture,
            stem: self.stem,
            size: self.size,
            objective: self.objective(),
            preset: self.preset,
            epochs: self.epochs,
            batches: self.batches,
            batch_size: self.batch_size,
            rate: self.rate,
            least_crop: self.least_crop,
            precision: if self.f16 { Precision::F16 } else { Precision::F32 },
            device: self.device.device,
            seed: self.seed.seed,
            output: self.output.clone(),
        }
    }

    fn objective(&self) -> Objective {
        let usual = Prototypical::default();
        match self.objective {
            ObjectiveName::Cosine => Objective::Cosine,
            ObjectiveName::Prototypical => Objective::Prototypical(Prototypical {
                ways: self.ways.unwrap_or(usual.ways),
                shots: self.shots.unwrap_or(usual.shots),
                queries: self.queries.unwrap_or(usual.queries),
                distance: match self.distance {
                    Some(DistanceName::Cosine) => Distance::Cosine,
                    Some(DistanceName::Euclidean) | None => Distance::Euclidean,
                },
            }),
        }
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
