//! `labelsieve evaluate`: accuracy of a classifier, and relevance against ground truth.

use anyhow::Result;
use clap::Args;
use labelsieve_files::counted;
use labelsieve_files::work::Monitor;
use labelsieve_jobs::inputs::classifier::{ReadClassifier, load_classifier};

use crate::arguments::JsonArguments;
use crate::given::Given;
use crate::hint::user_error;
use crate::options::EvaluateOptions;
use crate::printer::Printer;

/// Evaluate a classifier on labelled examples, or relevance against ground truth
#[derive(Args)]
#[command(override_usage = "labelsieve evaluate [OPTIONS] --model <FILE> --test <FILE>\n       \
                            labelsieve evaluate [OPTIONS] --model <FILE> --images <SOURCE>...\n       \
                            labelsieve evaluate [OPTIONS] --relevance <FILE> --truth <FILE>\n       \
                            labelsieve evaluate [OPTIONS] --relevance <FILE> --decisions <FILE>")]
pub struct Evaluate {
    #[command(flatten)]
    options: EvaluateOptions,

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
        match &self.options.test {
            None => {
                let of_test = ["test_labels", "embedding_column", "label_column", "id_column"];
                given.refuse(&of_test, "evaluate without --test", "give --model and --test")
            }
            Some(test) => {
                given.refuse_columns([test.as_path()])?;
                if self.options.truth().is_some() || self.options.baseline.is_some() {
                    return Ok(());
                }
                let hint = "give --truth, --decisions or --baseline with it";
                given.refuse(&["relevance"], "evaluate --model", hint)
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
        let report = self.options.job().run_with(read, printer)?;
        if self.json.json {
            return printer.json("evaluate", &report);
        }
        report.lines().iter().try_for_each(|line| printer.data(line))?;
        if let Some(n) = report.relevance.map(|relevance| relevance.n_unknown).filter(|&n| n > 0) {
            printer.note(&format!("skipped {} without ground truth", counted(n, "candidate")));
        }
        Ok(())
    }

    /// Two different things can be measured; what belongs to neither is answered with both.
    fn check_request(&self) -> Result<()> {
        let has_examples = self.options.test.is_some() || !self.options.images.images.is_empty();
        match (&self.options.model, &self.options.relevance) {
            (Some(_), _) if !has_examples => Err(user_error(
                "--model needs examples to be measured on",
                "give --test FEATURES for a classifier of `labelsieve train`, or --images SOURCE… for a network of \
                 `labelsieve finetune` or `labelsieve pretrain`",
            )),
            (None, Some(_)) if self.options.truth().is_none() => Err(user_error(
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
