//! Options of `predict`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use labelsieve_jobs::predict::{NewExamples, Predict};

use crate::arguments::{ColumnArguments, DeviceArguments, ImageChoice, MixedArguments};

/// A classifier and the examples whose classes it predicts.
#[derive(Args, Clone, Debug)]
#[command(group = ArgGroup::new("examples").required(true).args(["features", "images"]))]
#[command(mut_arg("label_column", |column| column.hide(true)))] // refused by name, with the reason
pub struct PredictOptions {
    /// Classifier from `labelsieve train`; with --images, a network from `labelsieve finetune` or `pretrain`
    #[arg(long, value_name = "FILE")]
    pub model: PathBuf,

    /// Examples: .npz, .npy, .parquet or a clip-retrieval folder
    #[arg(long, value_name = "FILE")]
    pub features: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) images: ImageChoice,

    /// Predictions per example, best first
    #[arg(long, value_name = "N", default_value_t = NonZeroUsize::MIN)]
    pub top: NonZeroUsize,

    /// Give no class to examples less typical than all but this share of the clean ones, e.g. 0.05
    #[arg(long, value_name = "SHARE")]
    pub reject: Option<f64>,

    /// Output file, .parquet, .csv or .tsv; - for CSV on stdout [default: TSV on stdout, with control characters escaped]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) mixed: MixedArguments,

    #[command(flatten)]
    pub(crate) columns: ColumnArguments,

    #[command(flatten)]
    pub(crate) device: DeviceArguments,
}

impl PredictOptions {
    /// The job that they describe.
    pub fn job(&self) -> Predict {
        let examples = match &self.features {
            Some(features) => NewExamples::Features(self.columns.table(features, None)),
            None => NewExamples::Images(self.images.files(self.columns.id_column.as_ref(), None)),
        };
        Predict {
            model: self.model.clone(),
            examples,
            mixed: self.mixed.mixed(),
            device: self.device.device,
            top: self.top,
            reject: self.reject,
            output: self.output.clone(),
        }
    }
}
