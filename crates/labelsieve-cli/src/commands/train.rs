//! `labelsieve train`: a classifier from clean examples and candidates weighted by relevance.

use anyhow::Result;
use clap::{Args, ValueEnum};
use labelsieve_files::counted;
use labelsieve_files::inputs::decisions;
use labelsieve_files::work::Monitor;

use crate::arguments::JsonArguments;
use crate::given::Given;
use crate::options::ClassifierName;
use crate::options::TrainOptions;
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
    /// Options of other classifiers would be left aside without a word.
    pub fn check_options(&self, given: &Given) -> Result<()> {
        let name = self.options.classifier.to_possible_value();
        let name = format!("--classifier {}", name.as_ref().map_or("", |value| value.get_name()));
        if self.options.classifier != ClassifierName::Attention {
            given.refuse(&["attention"], &name, "it needs --classifier attention")?;
        }
        if self.options.classifier != ClassifierName::Cosine {
            given.refuse(&["batch_size", "epochs"], &name, "it needs --classifier cosine")?;
        }
        if !matches!(self.options.classifier, ClassifierName::Hallucination | ClassifierName::Pmn) {
            given.refuse(&["episodes"], &name, "it needs --classifier hallucination or pmn")?;
        }
        if self.options.classifier != ClassifierName::Diffusion {
            let options = ["iterations", "background", "labels", "logistic"];
            given.refuse(&options, &name, "it needs --classifier diffusion")?;
        }
        given.refuse_columns(self.options.pools.tables())
    }

    pub fn run(&self, printer: &Printer) -> Result<()> {
        let trained = self.options.job()?.run(printer)?;
        if self.json.json {
            return printer.json("train", &trained);
        }
        if let Some(counts) = &trained.decisions {
            decisions::say(counts, printer);
        }
        let classes = counted(trained.n_classes, "class");
        let dim = trained.dim;
        printer.note(&format!(
            "classifier of {classes} with {dim} features written to `{}`",
            self.options.output.display()
        ));
        Ok(())
    }
}
