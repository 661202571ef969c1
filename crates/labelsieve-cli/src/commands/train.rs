//! `labelsieve train`: a classifier from clean examples and candidates weighted by relevance.

use anyhow::Result;
use clap::{Args, ValueEnum as _};

use crate::arguments::JsonArguments;
use crate::given::Given;
use crate::options::{ClassifierName, TrainOptions};
use crate::printer::Printer;

/// Train a classifier with every candidate weighted by its relevance
#[derive(Args)]
pub struct Train {
    #[command(flatten)]
    options: TrainOptions,

    #[command(flatten)]
    json: JsonArguments,
}

impl Train {
    /// Options of other classifiers would be ignored.
    pub fn check_options(&self, given: &Given) -> Result<()> {
        let name = self.options.classifier.to_possible_value();
        let chosen = format!("--classifier {}", name.as_ref().map_or("", |value| value.get_name()));
        if self.options.classifier != ClassifierName::Cosine {
            given.refuse(&["batch_size", "epochs"], &chosen, "it needs --classifier cosine")?;
        }
        if matches!(self.options.classifier, ClassifierName::Prototype | ClassifierName::Cosine) {
            given.refuse(&["shrinkage"], &chosen, "it needs --classifier discriminant or auto")?;
        }
        self.options.training.check_options(given)
    }

    pub fn run(&self, printer: &Printer) -> Result<()> {
        self.options.training.train(self.options.kind(), self.json, printer)
    }
}
