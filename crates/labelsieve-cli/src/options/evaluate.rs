//! Options of `evaluate`.

use std::path::PathBuf;

use clap::Args;
use labelsieve_jobs::evaluate::{Evaluate, LabelledExamples, MeasuredModel, Truth};

use crate::arguments::{ColumnArguments, DeviceArguments, ImageChoice, MixedArguments};

/// A classifier or a relevance file, and the truth that it is compared with.
#[derive(Args, Clone, Debug)]
pub struct EvaluateOptions {
    /// Classifier from `labelsieve train`; with --images, a network from `labelsieve finetune` or `pretrain`
    #[arg(long, value_name = "FILE")]
    pub model: Option<PathBuf>,

    /// Test examples with their true classes
    #[arg(long, value_name = "FILE", requires = "model", conflicts_with = "images")]
    pub test: Option<PathBuf>,

    /// Classes of the test examples, for .npy
    #[arg(long, value_name = "FILE")]
    pub test_labels: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) images: ImageChoice,

    /// Another classifier to compare with, class by class; with --relevance, grouped by number of candidates
    #[arg(long, value_name = "FILE", requires = "model")]
    pub baseline: Option<PathBuf>,

    /// Relevance file from `labelsieve score`
    #[arg(long, value_name = "FILE")]
    pub relevance: Option<PathBuf>,

    /// Ground truth: Parquet or CSV with `id`, `class` and `relevant`
    #[arg(long, value_name = "FILE", requires = "relevance")]
    pub truth: Option<PathBuf>,

    /// Decisions as ground truth: accepted candidates are relevant, rejected ones are not
    #[arg(long, value_name = "FILE", requires = "relevance", conflicts_with = "truth")]
    pub decisions: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) mixed: MixedArguments,

    #[command(flatten)]
    pub(crate) columns: ColumnArguments,

    #[command(flatten)]
    pub(crate) device: DeviceArguments,
}

impl EvaluateOptions {
    /// The job that they describe.
    pub fn job(&self) -> Evaluate {
        let examples = || match &self.test {
            Some(test) => LabelledExamples::Features(self.columns.table(test, self.test_labels.as_deref())),
            None => {
                let id = self.columns.id_column.as_ref();
                let label = self.columns.label_column.as_ref();
                LabelledExamples::Images(self.images.files(id, label))
            }
        };
        let model = self.model.as_ref().map(|model| MeasuredModel {
            path: model.clone(),
            baseline: self.baseline.clone(),
            examples: examples(),
        });
        Evaluate {
            model,
            relevance: self.relevance.clone(),
            truth: self.truth(),
            mixed: self.mixed.mixed(),
            device: self.device.device,
        }
    }

    /// The truth about the candidates.
    pub fn truth(&self) -> Option<Truth> {
        let decisions = self.decisions.clone().map(Truth::Decisions);
        self.truth.clone().map(Truth::File).or(decisions)
    }
}
