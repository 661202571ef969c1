//! `labelsieve train`: a classifier from clean examples and candidates weighted by relevance.

use anyhow::Result;
use clap::Args;

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
        if self.options.classifier == ClassifierName::Prototype {
            let names = ["batch_size", "epochs"];
            given.refuse(&names, "--classifier prototype", "it needs --classifier cosine")?;
        }
        self.options.training.check_options(given)
    }

    pub fn run(&self, printer: &Printer) -> Result<()> {
        self.options.training.train(self.options.kind(), self.json, printer)
    }
}
