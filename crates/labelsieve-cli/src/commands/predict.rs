//! `labelsieve predict`: the classes of new examples.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{ArgGroup, Args};
use labelsieve_jobs::inputs::classifier::{ReadClassifier, load_classifier};
use labelsieve_jobs::predict::{NewExamples, Predict as Job};

use crate::arguments::{ColumnArguments, DeviceArguments, ImageChoice, JsonArguments, MixedArguments};
use crate::options::Given;
use crate::printer::{Printer, refuse_json_beside};

/// Predict the classes of new examples
#[derive(Args)]
#[command(group = ArgGroup::new("examples").required(true).args(["features", "images"]))]
#[command(mut_arg("label_column", |column| column.hide(true)))] // refused below, with the reason
pub struct Predict {
    /// Classifier from `labelsieve train`; with --images, a network from `labelsieve finetune` or `pretrain`
    #[arg(long, value_name = "FILE")]
    model: PathBuf,

    /// Examples: .npz, .npy, .parquet or a clip-retrieval folder
    #[arg(long, value_name = "FILE")]
    features: Option<PathBuf>,

    #[command(flatten)]
    images: ImageChoice,

    /// Predictions per example, best first
    #[arg(long, value_name = "N", default_value_t = NonZeroUsize::MIN)]
    top: NonZeroUsize,

    /// Output file, .parquet, .csv or .tsv; - for CSV on stdout [default: TSV on stdout, with control characters escaped]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    mixed: MixedArguments,

    #[command(flatten)]
    columns: ColumnArguments,

    #[command(flatten)]
    device: DeviceArguments,

    #[command(flatten)]
    json: JsonArguments,
}

impl Predict {
    /// Refuses options that would do nothing.
    pub fn check_options(&self, given: &Given) -> Result<()> {
        given.refuse(&["label_column"], "predict", "predict determines the classes itself")?;
        match &self.features {
            None => given.refuse(&["embedding_column"], "predict --images", "it needs --features"),
            Some(features) => given.refuse_columns([features.as_path()]),
        }
    }

    /// Runs the command.
    pub fn run(&self, printer: &Printer) -> Result<()> {
        self.run_with(load_classifier, printer)
    }

    /// For classifiers of features that `read` knows.
    pub fn run_with(&self, read: ReadClassifier, printer: &Printer) -> Result<()> {
        refuse_json_beside(self.json, self.output.as_deref().unwrap_or(Path::new("-")))?;
        let examples = match &self.features {
            Some(features) => NewExamples::Features(self.columns.table(features, None)),
            None => NewExamples::Images(self.images.files(self.columns.id_column.as_ref(), None)),
        };
        let job = Job {
            model: self.model.clone(),
            examples,
            mixed: self.mixed.mixed(),
            device: self.device.device,
            top: self.top,
            output: self.output.clone(),
        };
        let predicted = job.run_with(read, printer)?;
        if self.json.json { printer.json("predict", &predicted) } else { Ok(()) }
    }
}
