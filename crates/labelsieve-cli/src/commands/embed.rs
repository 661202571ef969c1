//! `labelsieve embed`: images to features.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use labelsieve_files::work::Monitor;
use labelsieve_files::{Precision, counted};
use labelsieve_jobs::device::Devices;
use labelsieve_networks::embed::{Embed as Job, EmbedSummary, Reduction};
use labelsieve_networks::opening::built_in::BuiltIn;
use labelsieve_networks::opening::onnx::OnnxOptions;

use crate::arguments::{DeviceArguments, ImageArguments, JsonArguments};
use crate::printer::Printer;

/// Compute features of images (unit length)
#[derive(Args)]
pub struct Embed {
    /// Network: efficientnet-lite0, which is built in; a file (.safetensors) from `labelsieve pretrain` or with the tensor names of torchvision's ResNet-18 or -50; the folder of a vision transformer from the hub; or an
    /// .onnx file
    #[arg(long, value_name = "NAME|FILE|FOLDER", default_value = BuiltIn::usual().name)]
    model: PathBuf,

    #[command(flatten)]
    images: ImageArguments,

    /// Image size, e.g. 224 or 80x60 (height first) [default: the network's training size]
    #[arg(long, value_name = "HxW", value_parser = parse_size)]
    image_size: Option<(usize, usize)>,

    /// Mean of red, green and blue, of pixels from 0 to 1, for .onnx [default: by the file beside it, or
    /// 0.485,0.456,0.406]
    #[arg(long, value_name = "R,G,B", value_parser = parse_mean, allow_hyphen_values = true)]
    image_mean: Option<[f64; 3]>,

    /// Standard deviation of red, green and blue, for .onnx [default: by the file beside it, or 0.229,0.224,0.225]
    #[arg(long, value_name = "R,G,B", value_parser = parse_deviation)]
    image_std: Option<[f64; 3]>,

    /// Output that holds the features, for .onnx [default: the only one with a row per image]
    #[arg(long, value_name = "NAME")]
    onnx_output: Option<String>,

    /// PCA to apply, from --pca-output [default: the one in the network file, if any]
    #[arg(long, value_name = "FILE")]
    pca: Option<PathBuf>,

    /// Fit a PCA of this width on these images (which should be base classes) and apply it
    #[arg(long, value_name = "WIDTH", requires = "pca_output", conflicts_with = "pca")]
    fit_pca: Option<NonZeroUsize>,

    /// Output file for the fitted PCA (.safetensors)
    #[arg(long, value_name = "FILE", requires = "fit_pca")]
    pca_output: Option<PathBuf>,

    /// Precision of stored features
    #[arg(long, value_enum, default_value = "f32")]
    dtype: Precision,

    /// Batch size
    #[arg(long, value_name = "N", default_value = "64", value_parser = parse_batch)]
    batch: NonZeroUsize,

    /// Output file: .parquet (with ids and classes), .npz or .npy
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    #[command(flatten)]
    device: DeviceArguments,

    #[command(flatten)]
    json: JsonArguments,
}

impl Embed {
    pub fn run(&self, printer: &Printer) -> Result<()> {
        let reduction = match (&self.pca, self.fit_pca, &self.pca_output) {
            (Some(path), ..) => Reduction::Pca(path.clone()),
            (None, Some(width), Some(output)) => Reduction::Fit { width, output: output.clone() },
            _ => Reduction::OfNetwork,
        };
        let job = Job {
            image_size: self.image_size,
            onnx: OnnxOptions {
                mean: self.image_mean,
                deviation: self.image_std,
                output: self.onnx_output.clone(),
            },
            reduction,
            precision: self.dtype,
            batch: self.batch,
            ..Job::new(&self.model, self.images.files(), self.device.device, &self.output)
        };
        let summary = job.run(&Devices, printer)?;
        if self.json.json {
            return printer.json("embed", &summary);
        }
        self.tell(&summary, printer);
        Ok(())
    }

    fn tell(&self, summary: &EmbedSummary, printer: &Printer) {
        let EmbedSummary { n_images, dim, n_skipped, n_damaged_files, n_with_class, .. } = *summary;
        if let (Some(kept), Some(pca)) = (summary.variance_kept, &self.pca_output) {
            let (share, pca) = (100.0 * kept, pca.display());
            printer
                .note(&format!("PCA of width {dim} keeps {share:.1} % of the variance; written to `{pca}`"));
        }
        let images = counted(n_images, "image");
        printer.note(&format!("{images}, {dim} features each, written to `{}`", self.output.display()));
        if let Some(table) = &summary.ids_table {
            let table = table.display();
            printer
                .note(&format!("ids and classes written to `{table}` (a .parquet output would hold both)"));
        }
        if n_with_class > 0 && n_with_class < n_images {
            printer.warning(&format!("only {n_with_class} of {n_images} images have a class"));
        }
        printer.detail(&format!("{:.0} images per second", summary.images_per_second));
        let Some(list) = summary.skipped_list.as_ref().map(|list| list.display()) else { return };
        if n_skipped > 0 {
            let n_read = n_images + n_skipped;
            printer.warning(&format!("{n_skipped} of {n_read} images were skipped; `{list}` says why"));
        }
        if n_damaged_files > 0 {
            let files = if n_damaged_files == 1 { "file was" } else { "files were" };
            printer.warning(&format!("{n_damaged_files} damaged {files} not read completely; see `{list}`"));
        }
    }
}

/// More do not fit any memory, and make nothing faster.
fn parse_batch(text: &str) -> std::result::Result<NonZeroUsize, String> {
    const MOST: usize = 1 << 16;
    let number = text.parse().ok().filter(|n: &NonZeroUsize| n.get() <= MOST);
    number.ok_or_else(|| format!("expected an integer from 1 to {MOST}"))
}

/// `224` or `80x60`, height first.
fn parse_size(text: &str) -> std::result::Result<(usize, usize), String> {
    let number = |text: &str| text.parse().ok().filter(|n| (1..=4096).contains(n));
    let (height, width) = text.split_once('x').unwrap_or((text, text));
    number(height).zip(number(width)).ok_or_else(|| "expected HEIGHTxWIDTH, each from 1 to 4096".to_owned())
}

/// One number for all channels, or three.
fn parse_mean(text: &str) -> std::result::Result<[f64; 3], String> {
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

fn parse_deviation(text: &str) -> std::result::Result<[f64; 3], String> {
    let numbers = parse_mean(text)?;
    match numbers.iter().all(|&number| number > 0.0) {
        true => Ok(numbers),
        false => Err("expected positive numbers".to_owned()),
    }
}
