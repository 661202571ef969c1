//! `labelsieve predict`: the classes of new examples.

use std::path::Path;

use anyhow::Result;
use clap::Args;
use labelsieve_files::counted;
use labelsieve_files::work::Monitor as _;
use labelsieve_jobs::inputs::classifier::{ReadClassifier, load_classifier};

use crate::arguments::JsonArguments;
use crate::given::Given;
use crate::options::PredictOptions;
use crate::printer::{Printer, refuse_json_beside};

/// Predict the classes of new examples
#[derive(Args)]
pub struct Predict {
    #[command(flatten)]
    options: PredictOptions,

    #[command(flatten)]
    json: JsonArguments,
}

impl Predict {
    /// Refuses options that would do nothing.
    pub fn check_options(&self, given: &Given) -> Result<()> {
        given.refuse(&["label_column"], "predict", "predict determines the classes itself")?;
        match &self.options.features {
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
        refuse_json_beside(self.json, self.options.output.as_deref().unwrap_or(Path::new("-")))?;
        let predicted = self.options.job().run_with(read, printer)?;
        if self.json.json {
            return printer.json("predict", &predicted);
        }
        if let Some(n_rejected) = predicted.n_rejected {
            let examples = counted(predicted.n_examples, "example");
            printer.note(&format!("{n_rejected} of {examples} rejected: too unlike every class"));
        }
        Ok(())
    }
}
