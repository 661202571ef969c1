//! `labelsieve train`: a classifier from clean examples and candidates weighted by relevance.

use anyhow::Result;
use clap::{Args, ValueEnum};
use labelsieve_jobs::train::Classifier;

use crate::arguments::TrainingArguments;
use crate::options::Given;
use crate::printer::Printer;

/// Train a classifier with every candidate weighted by its relevance
#[derive(Args)]
pub struct Train {
    /// Kind of classifier; to train the whole network, use `labelsieve finetune`
    #[arg(long, value_enum, default_value = "prototype")]
    classifier: ClassifierName,

    /// Batch size, for cosine [default: 512]
    #[arg(long, value_name = "N")]
    batch_size: Option<usize>,

    /// Epochs, for cosine [default: 30]
    #[arg(long, value_name = "N")]
    epochs: Option<usize>,

    #[command(flatten)]
    training: TrainingArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ClassifierName {
    /// The weighted mean of each class
    Prototype,
    /// A cosine classifier, starting from the prototypes
    Cosine,
}

impl Train {
    /// Options of other classifiers would be left aside without a word.
    pub fn check_options(&self, given: &Given) -> Result<()> {
        if self.classifier == ClassifierName::Prototype {
            let options = ["batch_size", "epochs"];
            given.refuse(&options, "--classifier prototype", "it needs --classifier cosine")?;
        }
        self.training.check_options(given)
    }

    pub fn run(&self, printer: &Printer) -> Result<()> {
        let classifier = match self.classifier {
            ClassifierName::Prototype => Classifier::Prototype,
            ClassifierName::Cosine => Classifier::Cosine { batch_size: self.batch_size, epochs: self.epochs },
        };
        self.training.train(classifier, printer)
    }
}
