//! `labelsieve evaluate`: accuracy of a classifier, and relevance against ground truth.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use labelsieve_files::counted;
use labelsieve_files::work::Monitor;
use labelsieve_jobs::evaluate::{Evaluate as Job, LabelledExamples, MeasuredModel, Truth};
use labelsieve_jobs::inputs::classifier::{ReadClassifier, load_classifier};

use crate::arguments::{ColumnArguments, DeviceArguments, ImageChoice, JsonArguments, MixedArguments};
use crate::hint::user_error;
use crate::options::Given;
use crate::printer::Printer;

/// Evaluate a classifier on labelled examples, or relevance against ground truth
#[derive(Args)]
#[command(override_usage = "labelsieve evaluate [OPTIONS] --model <FILE> --test <FILE>\n       \
                            labelsieve evaluate [OPTIONS] --model <FILE> --images <SOURCE>...\n       \
                            labelsieve evaluate [OPTIONS] --relevance <FILE> --truth <FILE>\n       \
                            labelsieve evaluate [OPTIONS] --relevance <FILE> --decisions <FILE>")]
pub struct Evaluate {
    /// Classifier from `labelsieve train`; with --images, a network from `labelsieve finetune` or `pretrain`
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,

    /// Test examples with their true classes
    #[arg(long, value_name = "FILE", requires = "model", conflicts_with = "images")]
    test: Option<PathBuf>,

    /// Classes of the test examples, for .npy
    #[arg(long, value_name = "FILE")]
    test_labels: Option<PathBuf>,

    #[command(flatten)]
    images: ImageChoice,

    /// Another classifier to compare with, class by class; with --relevance, grouped by number of candidates
    #[arg(long, value_name = "FILE", requires = "model")]
    baseline: Option<PathBuf>,

    /// Relevance file from `labelsieve score`
    #[arg(long, value_name = "FILE")]
    relevance: Option<PathBuf>,

    /// Ground truth: Parquet or CSV with `id`, `class` and `relevant`
    #[arg(long, value_name = "FILE", requires = "relevance")]
    truth: Option<PathBuf>,

    /// Decisions as ground truth: accepted candidates are relevant, rejected ones are not
    #[arg(long, value_name = "FILE", requires = "relevance", conflicts_with = "truth")]
    decisions: Option<PathBuf>,

    #[command(flatten)]
    mixed: MixedArguments,

    #[command(flatten)]
    columns: ColumnArguments,

    #[command(flatten)]
    device: DeviceArguments,

    #[command(flatten)]
    json: JsonArguments,
}

impl Evaluate {
    /// Refuses options that would do nothing.
    pub fn check_options(&self, given: &Given) -> Result<()> {
        if given.has("images") {
            let of_test = ["test_labels", "embedding_column"]; // the other columns are of the images then
            return given.refuse(&of_test, "evaluate --images", "it needs --test");
        }
        match &self.test {
            None => {
                let of_test = ["test_labels", "embedding_column", "label_column", "id_column"];
                given.refuse(&of_test, "evaluate without --test", "give --model and --test")
            }
            Some(test) => {
                given.refuse_columns([test.as_path()])?;
                match self.truth().is_none() && self.baseline.is_none() {
                    true => given.refuse(
                        &["relevance"],
                        "evaluate --model",
                        "give --truth, --decisions or --baseline with it",
                    ),
                    false => Ok(()),
                }
            }
        }
    }

    /// Runs the command.
    pub fn run(&self, printer: &Printer) -> Result<()> {
        self.run_with(load_classifier, printer)
    }

    /// For classifiers of features that `read` knows.
    pub fn run_with(&self, read: ReadClassifier, printer: &Printer) -> Result<()> {
        self.check_request()?;
        let examples = || match &self.test {
            Some(test) => LabelledExamples::Features(self.columns.table(test, self.test_labels.as_deref())),
            None => {
                let (id, label) = (self.columns.id_column.as_ref(), self.columns.label_column.as_ref());
                LabelledExamples::Images(self.images.files(id, label))
            }
        };
        let model = self.model.as_ref().map(|model| MeasuredModel {
            path: model.clone(),
            baseline: self.baseline.clone(),
            examples: examples(),
        });
        let job = Job {
            model,
            relevance: self.relevance.clone(),
            truth: self.truth(),
            mixed: self.mixed.mixed(),
            device: self.device.device,
        };
        let report = job.run_with(read, printer)?;
        if self.json.json {
            return printer.json("evaluate", &report);
        }
        report.lines().iter().try_for_each(|line| printer.data(line))?;
        if let Some(n) = report.relevance.map(|relevance| relevance.n_unknown).filter(|&n| n > 0) {
            printer.note(&format!("skipped {} without ground truth", counted(n, "candidate")));
        }
        Ok(())
    }

    fn truth(&self) -> Option<Truth> {
        let decisions = self.decisions.clone().map(Truth::Decisions);
        self.truth.clone().map(Truth::File).or(decisions)
    }

    /// Two different things can be measured; what belongs to neither is answered with both.
    fn check_request(&self) -> Result<()> {
        let has_examples = self.test.is_some() || !self.images.images.is_empty();
        match (&self.model, &self.relevance) {
            (Some(_), _) if !has_examples => Err(user_error(
                "--model needs examples to be measured on",
                "give --test FEATURES for a classifier of `labelsieve train`, or --images SOURCE… for a network of \
                 `labelsieve finetune` or `labelsieve pretrain`",
            )),
            (None, Some(_)) if self.truth().is_none() => Err(user_error(
                "--relevance needs ground truth to compare with",
                "pass --truth FILE: Parquet or CSV with `id`, `class` and `relevant`; or --decisions FILE",
            )),
            (None, None) => Err(user_error(
                "nothing to evaluate: give a classifier, or relevance",
                "for accuracy, `--model CLASSIFIER --test FEATURES` or `--model NETWORK --images SOURCE…`; for relevance, \
                 `--relevance FILE --truth FILE`",
            )),
            _ => Ok(()),
        }
    }
}
