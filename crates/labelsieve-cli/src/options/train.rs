//! Options of `train`.

use clap::{Args, ValueEnum};
use labelsieve::classifier::Shrinkage;
use labelsieve_jobs::train::{Classifier, Train};

use crate::arguments::TrainingArguments;

/// Weighted examples, and the classifier that learns from them.
#[derive(Args, Clone, Debug)]
pub struct TrainOptions {
    /// Kind of classifier; to train the whole network, use `labelsieve finetune`
    #[arg(long, value_enum, default_value = "auto")]
    pub classifier: ClassifierName,

    /// Batch size, for cosine [default: 512]
    #[arg(long, value_name = "N")]
    pub batch_size: Option<usize>,

    /// Epochs, for cosine [default: 30]
    #[arg(long, value_name = "N")]
    pub epochs: Option<usize>,

    /// Shrinkage of the discriminant's covariance, a number above 0 and at most 1, or how it is chosen: auto, ledoit-wolf, oas or left-out
    #[arg(long, value_name = "SHRINKAGE", default_value = "auto")]
    pub shrinkage: Shrinkage,

    #[command(flatten)]
    pub(crate) training: TrainingArguments,
}

/// The kinds of classifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ClassifierName {
    /// The one that does best on left-out clean examples
    Auto,
    /// The weighted mean of each class
    Prototype,
    /// A cosine classifier, starting from the prototypes
    Cosine,
    /// Gaussian classes that share one covariance, in closed form
    Discriminant,
}

impl TrainOptions {
    /// The job that they describe.
    pub fn job(&self) -> Train<Classifier> {
        self.training.job(self.kind())
    }

    /// The classifier to learn.
    pub(crate) fn kind(&self) -> Classifier {
        match self.classifier {
            ClassifierName::Auto => Classifier::Auto { shrinkage: self.shrinkage },
            ClassifierName::Discriminant => Classifier::Discriminant { shrinkage: self.shrinkage },
            ClassifierName::Prototype => Classifier::Prototype,
            ClassifierName::Cosine => Classifier::Cosine { batch_size: self.batch_size, epochs: self.epochs },
        }
    }
}
