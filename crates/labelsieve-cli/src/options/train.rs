//! Options of `train`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use labelsieve::classifier::{Diffusion, TextRule};
use labelsieve_files::work::{Error, Result, option, words};
use labelsieve_jobs::train::{Classifier, Train};

use crate::arguments::{DeviceArguments, PoolArguments, SeedArguments};

/// Weighted examples, and the classifier that learns from them.
#[derive(Args, Clone, Debug)]
pub struct TrainOptions {
    #[command(flatten)]
    pub(crate) pools: PoolArguments,

    /// Relevance file from `labelsieve score`
    #[arg(long, value_name = "FILE")]
    pub relevance: PathBuf,

    /// Decisions about candidates: accepted ones count as clean examples, rejected ones not at all [default: those that the
    /// relevance file was made with]
    #[arg(long, value_name = "FILE")]
    pub decisions: Option<PathBuf>,

    /// Kind of classifier; to train the whole network, use `labelsieve finetune`
    #[arg(long, value_enum, default_value = "prototype")]
    pub classifier: ClassifierName,

    /// Class weight generator from `labelsieve train-attention`
    #[arg(long, value_name = "FILE", required_if_eq("classifier", "attention"))]
    pub attention: Option<PathBuf>,

    /// System from `labelsieve train-episodes`, for hallucination and pmn
    #[arg(long, value_name = "FILE", required_if_eq_any([("classifier", "hallucination"), ("classifier", "pmn")]))]
    pub episodes: Option<PathBuf>,

    /// Steps of the diffusion [default: 3]
    #[arg(long, value_name = "N")]
    pub iterations: Option<usize>,

    /// Further rows of features that the diffusion spreads over, without classes
    #[arg(long, value_name = "FILE")]
    pub background: Option<PathBuf>,

    /// Which labels a candidate may take in the diffusion [default: any]
    #[arg(long, value_enum)]
    pub(crate) labels: Option<LabelsName>,

    /// Share of a logistic regression on the clean examples that joins the diffusion, in [0, 1] [default: none joins]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub logistic: Option<f32>,

    /// Base classifier to extend: W_A = [W_B, W]
    #[arg(long, value_name = "FILE")]
    pub base: Option<PathBuf>,

    /// Batch size, for cosine [default: 512]
    #[arg(long, value_name = "N")]
    pub batch_size: Option<usize>,

    /// Epochs, for cosine [default: 30]
    #[arg(long, value_name = "N")]
    pub epochs: Option<usize>,

    /// Scale of the logits [default with --base: that of the base classifier]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub scale: Option<f32>,

    /// Name of the backbone, stored in the file
    #[arg(long, value_name = "NAME")]
    pub backbone: Option<String>,

    /// Output file (.safetensors)
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,

    #[command(flatten)]
    pub(crate) device: DeviceArguments,

    #[command(flatten)]
    pub(crate) seed: SeedArguments,
}

/// The kinds of classifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ClassifierName {
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
pub(crate) enum LabelsName {
    /// Those of any class
    Any,
    /// Those of the classes that it is a candidate of
    Own,
}

impl TrainOptions {
    /// The job that they describe.
    pub fn job(&self) -> Result<Train> {
        let classifier = match self.classifier {
            ClassifierName::Prototype => Classifier::Prototype,
            ClassifierName::Attention => Classifier::Attention(needed("attention", self.attention.as_ref())?),
            ClassifierName::Cosine => Classifier::Cosine { batch_size: self.batch_size, epochs: self.epochs },
            ClassifierName::Diffusion => Classifier::Diffusion {
                settings: self.diffusion(),
                background: self.background.as_deref().map(|path| self.pools.table(path)),
                logistic: self.logistic,
            },
            ClassifierName::Hallucination => {
                Classifier::Hallucination(needed("episodes", self.episodes.as_ref())?)
            }
            ClassifierName::Pmn => Classifier::Matching(needed("episodes", self.episodes.as_ref())?),
        };
        Ok(Train {
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
        })
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

/// A file that the classifier cannot do without.
fn needed(name: &'static str, file: Option<&PathBuf>) -> Result<PathBuf> {
    file.cloned().ok_or_else(|| Error::input(words![option(name), " is missing"], "give the file"))
}
