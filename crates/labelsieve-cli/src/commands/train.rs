//! `labelsieve train`: a classifier from clean examples and candidates weighted by relevance.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use labelsieve::classifier::{Diffusion, TextRule};
use labelsieve_files::counted;
use labelsieve_files::inputs::decisions;
use labelsieve_files::work::Monitor;
use labelsieve_jobs::train::{Classifier, Train as Job};

use crate::arguments::{DeviceArguments, JsonArguments, PoolArguments, SeedArguments};
use crate::options::Given;
use crate::printer::Printer;

/// Train a classifier with every candidate weighted by its relevance
#[derive(Args)]
pub struct Train {
    #[command(flatten)]
    pools: PoolArguments,

    /// Relevance file from `labelsieve score`
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

    /// System from `labelsieve train-episodes`, for hallucination and pmn
    #[arg(long, value_name = "FILE", required_if_eq_any([("classifier", "hallucination"), ("classifier", "pmn")]))]
    episodes: Option<PathBuf>,

    /// Steps of the diffusion [default: 3]
    #[arg(long, value_name = "N")]
    iterations: Option<usize>,

    /// Further rows of features that the diffusion spreads over, without classes
    #[arg(long, value_name = "FILE")]
    background: Option<PathBuf>,

    /// Which labels a candidate may take in the diffusion [default: any]
    #[arg(long, value_enum)]
    labels: Option<LabelsName>,

    /// Share of a logistic regression on the clean examples that joins the diffusion, in [0, 1] [default: none joins]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    logistic: Option<f32>,

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
    /// Labels of the clean examples that spread over one graph of all candidates; relevance is not used
    Diffusion,
    /// Logistic regression on examples and on hallucinated ones (--episodes)
    Hallucination,
    /// A prototype matching network (--episodes)
    Pmn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LabelsName {
    /// Those of any class
    Any,
    /// Those of the classes that it is a candidate of
    Own,
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
        if !matches!(self.classifier, ClassifierName::Hallucination | ClassifierName::Pmn) {
            given.refuse(&["episodes"], &name, "it needs --classifier hallucination or pmn")?;
        }
        if self.classifier != ClassifierName::Diffusion {
            let options = ["iterations", "background", "labels", "logistic"];
            given.refuse(&options, &name, "it needs --classifier diffusion")?;
        }
        given.refuse_columns(self.pools.tables())
    }

    fn diffusion(&self) -> Diffusion {
        let usual = Diffusion::default();
        Diffusion {
            iterations: self.iterations.unwrap_or(usual.iterations),
            text: match self.labels {
                Some(LabelsName::Own) => TextRule::Kept,
                Some(LabelsName::Any) | None => TextRule::Ignored,
            },
            ..usual
        }
    }

    pub fn run(&self, printer: &Printer) -> Result<()> {
        let classifier = match self.classifier {
            ClassifierName::Prototype => Classifier::Prototype,
            ClassifierName::Attention => {
                Classifier::Attention(self.attention.clone().context("--attention is missing")?)
            }
            ClassifierName::Cosine => Classifier::Cosine { batch_size: self.batch_size, epochs: self.epochs },
            ClassifierName::Diffusion => Classifier::Diffusion {
                settings: self.diffusion(),
                background: self.background.as_deref().map(|path| self.pools.table(path)),
                logistic: self.logistic,
            },
            ClassifierName::Hallucination => {
                Classifier::Hallucination(self.episodes.clone().context("--episodes is missing")?)
            }
            ClassifierName::Pmn => {
                Classifier::Matching(self.episodes.clone().context("--episodes is missing")?)
            }
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
