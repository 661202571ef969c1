//! `labelsieve train`: a classifier from clean examples and candidates weighted by relevance.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use labelsieve_data::counted;
use labelsieve_pipeline::Monitor;
use labelsieve_pipeline::inputs::decisions;
use labelsieve_pipeline::train::{Classifier, Train as Job};

use crate::arguments::{DeviceArguments, JsonArguments, PoolArguments, SeedArguments};
use crate::options::Given;
use crate::printer::Printer;

/// Train a classifier with every candidate weighted by its relevance
#[derive(Args)]
pub struct Train {
    #[command(flatten)]
    pools: PoolArguments,

    /// Relevance file from `labelsieve clean`
    #[arg(long, value_name = "FILE")]
    relevance: PathBuf,

    /// Decisions about candidates: accepted ones count as clean examples, rejected ones not at all [default: those that the
    /// relevance file was made with]
    #[arg(long, value_name = "FILE")]
    decisions: Option<PathBuf>,

    /// Kind of classifier; to train the whole network, use `labelsieve finetune`
    #[arg(long, value_enum, default_value = "prototype")]
    classifier: ClassifierName,

    /// Class weight generator from `labelsieve train-attention`
    #[arg(long, value_name = "FILE", required_if_eq("classifier", "attention"))]
    attention: Option<PathBuf>,

    /// Base classifier to extend: W_A = [W_B, W]
    #[arg(long, value_name = "FILE")]
    base: Option<PathBuf>,

    /// Batch size, for cosine [default: 512]
    #[arg(long, value_name = "N")]
    batch_size: Option<usize>,

    /// Epochs, for cosine [default: 30]
    #[arg(long, value_name = "N")]
    epochs: Option<usize>,

    /// Scale of the logits [default with --base: that of the base classifier]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    scale: Option<f32>,

    /// Name of the backbone, stored in the file
    #[arg(long, value_name = "NAME")]
    backbone: Option<String>,

    /// Output file (.safetensors)
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    #[command(flatten)]
    device: DeviceArguments,

    #[command(flatten)]
    seed: SeedArguments,

    #[command(flatten)]
    json: JsonArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ClassifierName {
    /// The weighted mean of each class
    Prototype,
    /// The weighted mean plus attention over similar base classes (--attention)
    Attention,
    /// A cosine classifier, starting from the prototypes
    Cosine,
}

impl Train {
    /// Options of other classifiers would be left aside without a word.
    pub fn check_options(&self, given: &Given) -> Result<()> {
        let name = self.classifier.to_possible_value();
        let name = format!("--classifier {}", name.as_ref().map_or("", |value| value.get_name()));
        if self.classifier != ClassifierName::Attention {
            given.refuse(&["attention"], &name, "it needs --classifier attention")?;
        }
        if self.classifier != ClassifierName::Cosine {
            given.refuse(&["batch_size", "epochs"], &name, "it needs --classifier cosine")?;
        }
        given.refuse_columns(self.pools.tables())
    }

    pub fn run(&self, printer: &Printer) -> Result<()> {
        let classifier = match self.classifier {
            ClassifierName::Prototype => Classifier::Prototype,
            ClassifierName::Attention => {
                Classifier::Attention(self.attention.clone().context("--attention is missing")?)
            }
            ClassifierName::Cosine => Classifier::Cosine { batch_size: self.batch_size, epochs: self.epochs },
        };
        let job = Job {
            files: self.pools.files(None),
            relevance: self.relevance.clone(),
            decisions: self.decisions.clone(),
            classifier,
            base: self.base.clone(),
            scale: self.scale,
            backbone: self.backbone.clone(),
            device: self.device.device,
            seed: self.seed.seed,
            output: self.output.clone(),
        };
        let trained = job.run(printer)?;
        if self.json.json {
            return printer.json("train", &trained);
        }
        if let Some(counts) = &trained.decisions {
            decisions::say(counts, printer);
        }
        let (classes, dim) = (counted(trained.n_classes, "class"), trained.dim);
        printer.note(&format!(
            "classifier of {classes} with {dim} features written to `{}`",
            self.output.display()
        ));
        Ok(())
    }
}
