//! `labelsieve-bench train`: the classifiers that the paper compares with, from the same inputs as `labelsieve train`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use labelsieve_cli::arguments::{JsonArguments, TrainingArguments};
use labelsieve_cli::{Given, Printer};

use crate::classifier::{Diffusion, TextRule};
use crate::jobs::ComparedClassifier;

/// Train a classifier that the paper compares with
#[derive(Args)]
pub struct Train {
    /// Kind of classifier; `labelsieve train` has the others
    #[arg(long, value_enum)]
    classifier: ClassifierName,

    /// Class weight generator from `labelsieve-bench train-attention`
    #[arg(long, value_name = "FILE", required_if_eq("classifier", "attention"))]
    attention: Option<PathBuf>,

    /// System from `labelsieve-bench train-episodes`, for hallucination and pmn
    #[arg(long, value_name = "FILE", required_if_eq_any([("classifier", "hallucination"), ("classifier", "pmn")]))]
    episodes: Option<PathBuf>,

    /// Steps of the diffusion [default: 3]
    #[arg(long, value_name = "N")]
    iterations: Option<usize>,

    /// Unlabelled features to include in the graph of the diffusion
    #[arg(long, value_name = "FILE")]
    background: Option<PathBuf>,

    /// Labels that a candidate may take in the diffusion [default: any]
    #[arg(long, value_enum)]
    labels: Option<LabelsName>,

    /// Weight in [0, 1] of a logistic regression on the clean examples, combined with the diffusion [default: none]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    logistic: Option<f32>,

    #[command(flatten)]
    training: TrainingArguments,

    #[command(flatten)]
    json: JsonArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ClassifierName {
    /// The weighted mean plus attention over similar base classes (--attention)
    Attention,
    /// Labels of the clean examples diffused over one graph of all candidates; relevance is not used
    Diffusion,
    /// Logistic regression on real and hallucinated examples (--episodes)
    Hallucination,
    /// A prototype matching network (--episodes)
    Pmn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LabelsName {
    /// Labels of any class
    Any,
    /// Only labels of the classes that it is a candidate of
    Own,
}

impl Train {
    /// Rejects options of other classifiers, which would be silently ignored.
    pub fn check_options(&self, given: &Given) -> Result<()> {
        let name = self.classifier.to_possible_value();
        let name = format!("--classifier {}", name.as_ref().map_or("", |value| value.get_name()));
        if self.classifier != ClassifierName::Attention {
            given.refuse(&["attention"], &name, "it needs --classifier attention")?;
        }
        if !matches!(self.classifier, ClassifierName::Hallucination | ClassifierName::Pmn) {
            given.refuse(&["episodes"], &name, "it needs --classifier hallucination or pmn")?;
        }
        if self.classifier != ClassifierName::Diffusion {
            let options = ["iterations", "background", "labels", "logistic"];
            given.refuse(&options, &name, "it needs --classifier diffusion")?;
        }
        self.training.check_options(given)
    }

    pub fn run(&self, printer: &Printer) -> Result<()> {
        let episodes = || self.episodes.clone().context("--episodes is missing");
        let classifier = match self.classifier {
            ClassifierName::Attention => {
                ComparedClassifier::Attention(self.attention.clone().context("--attention is missing")?)
            }
            ClassifierName::Diffusion => ComparedClassifier::Diffusion {
                settings: self.diffusion(),
                background: self.background.as_deref().map(|path| self.training.table(path)),
                logistic: self.logistic,
            },
            ClassifierName::Hallucination => ComparedClassifier::Hallucination(episodes()?),
            ClassifierName::Pmn => ComparedClassifier::Matching(episodes()?),
        };
        self.training.train(classifier, self.json, printer)
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
}
