//! Options of `embed`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use labelsieve_files::Precision;
use labelsieve_networks::embed::{Embed, Reduction};
use labelsieve_networks::opening::built_in::BuiltIn;
use labelsieve_networks::opening::onnx::OnnxOptions;

use crate::arguments::{DeviceArguments, ImageArguments};

/// A network, the images it embeds, and how their features are stored.
#[derive(Args, Clone, Debug)]
pub struct EmbedOptions {
    /// Network: efficientnet-lite0 or tiny-resnet10, which are built in; a file (.safetensors) from `labelsieve pretrain` or
    /// with the tensor names of torchvision's ResNet-18 or -50; the folder of a vision transformer from the hub; or an
    /// .onnx file
    #[arg(long, value_name = "NAME|FILE|FOLDER", default_value = BuiltIn::usual().name)]
    pub model: PathBuf,

    #[command(flatten)]
    pub(crate) images: ImageArguments,

    /// Image size, e.g. 224 or 80x60 (height first) [default: the network's training size]
    #[arg(long, value_name = "HxW", value_parser = parse_size)]
    pub image_size: Option<(usize, usize)>,

    /// Mean of red, green and blue, of pixels from 0 to 1, for .onnx [default: by the file beside it, or
    /// 0.485,0.456,0.406]
    #[arg(long, value_name = "R,G,B", value_parser = parse_mean, allow_hyphen_values = true)]
    pub image_mean: Option<[f64; 3]>,

    /// Standard deviation of red, green and blue, for .onnx [default: by the file beside it, or 0.229,0.224,0.225]
    #[arg(long, value_name = "R,G,B", value_parser = parse_deviation)]
    pub image_std: Option<[f64; 3]>,

    /// Output that holds the features, for .onnx [default: the only one with a row per image]
    #[arg(long, value_name = "NAME")]
    pub onnx_output: Option<String>,

    /// PCA to apply, from --pca-output [default: the one in the network file, if any]
    #[arg(long, value_name = "FILE")]
    pub pca: Option<PathBuf>,

    /// Fit a PCA of this width on these images (which should be base classes) and apply it
    #[arg(long, value_name = "WIDTH", requires = "pca_output", conflicts_with = "pca")]
    pub fit_pca: Option<NonZeroUsize>,

    /// Output file for the fitted PCA (.safetensors)
    #[arg(long, value_name = "FILE", requires = "fit_pca")]
    pub pca_output: Option<PathBuf>,

    /// Precision of stored features
    #[arg(long, value_enum, default_value = "f32")]
    pub dtype: Precision,

    /// Batch size
    #[arg(long, value_name = "N", default_value = "64", value_parser = parse_batch)]
    pub batch: NonZeroUsize,

    /// Output file: .parquet (with ids and classes), .npz or .npy
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,

    #[command(flatten)]
    pub(crate) device: DeviceArguments,
}

impl EmbedOptions {
    /// The job that they describe.
    pub fn job(&self) -> Embed {
        let reduction = match (&self.pca, self.fit_pca, &self.pca_output) {
            (Some(path), ..) => Reduction::Pca(path.clone()),
            (None, Some(width), Some(output)) => Reduction::Fit { width, output: output.clone() },
            _ => Reduction::OfNetwork,
        };
        Embed {
            image_size: self.image_size,
            onnx: OnnxOptions {
                mean: self.image_mean,
                deviation: self.image_std,
                output: self.onnx_output.clone(),
            },
            reduction,
            precision: self.dtype,
            batch: self.batch,
            ..Embed::new(&self.model, self.images.files(), self.device.device, &self.output)
        }
    }
}

/// More do not fit any memory, and make nothing faster.
fn parse_batch(text: &str) -> Result<NonZeroUsize, String> {
    const MAX_BATCH: usize = 1 << 16;
    let number = text.parse().ok().filter(|n: &NonZeroUsize| n.get() <= MAX_BATCH);
    number.ok_or_else(|| format!("expected an integer from 1 to {MAX_BATCH}"))
}

/// `224` or `80x60`, height first.
fn parse_size(text: &str) -> Result<(usize, usize), String> {
    let number = |text: &str| text.parse().ok().filter(|n| (1..=4096).contains(n));
    let (height, width) = text.split_once('x').unwrap_or((text, text));
    number(height).zip(number(width)).ok_or_else(|| "expected HEIGHTxWIDTH, each from 1 to 4096".to_owned())
}

/// One number for all channels, or three.
fn parse_mean(text: &str) -> Result<[f64; 3], String> {
    let wrong = || "expected one number or three, e.g. 0.5 or 0.485,0.456,0.406".to_owned();
    let numbers: Option<Vec<f64>> = text
        .split(',')
        .map(|part| part.trim().parse().ok().filter(|number: &f64| number.is_finite()))
        .collect();
    match numbers.ok_or_else(wrong)?[..] {
        [all] => Ok([all; 3]),
        [red, green, blue] => Ok([red, green, blue]),
        _ => Err(wrong()),
    }
}

fn parse_deviation(text: &str) -> Result<[f64; 3], String> {
    let numbers = parse_mean(text)?;
    if numbers.iter().all(|&number| number > 0.0) {
        Ok(numbers)
    } else {
        Err("expected positive numbers".to_owned())
    }
}
