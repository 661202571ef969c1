//! Errors of networks.

use std::fmt;

use thiserror::Error;

/// Errors of networks.
#[derive(Debug, Error, Clone, PartialEq)]
pub enum Error {
    /// A shape that does not match.
    #[error("{what}: expected {expected}, found {found}")]
    Shape {
        /// The thing with this shape.
        what: String,
        /// The size it should have.
        expected: String,
        /// The size it has.
        found: String,
    },
    /// A setting out of range.
    #[error("{name}: expected {expected}, found {found}")]
    Setting {
        /// The setting.
        name: Setting,
        /// The allowed values.
        expected: String,
        /// The given value.
        found: String,
    },
    /// The loss became NaN or infinite.
    #[error("training diverged in epoch {epoch}: the loss is not a finite number")]
    Diverged {
        /// The epoch, from 1.
        epoch: usize,
    },
    /// A class with too few examples for an episode.
    #[error("class {class} has {found} images, but an episode takes {expected} of a class")]
    SmallClass {
        /// Its number.
        class: usize,
        /// Images that an episode takes of a class.
        expected: usize,
        /// Images that it has.
        found: usize,
    },
    /// A class without examples.
    #[error("class {class} has no examples")]
    EmptyClass {
        /// Its number.
        class: usize,
    },
    /// The device failed.
    #[error("{0}")]
    Device(String),
}

/// A setting that can be out of range, displayed as in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// The architecture of the network.
    Architecture,
    /// The first layers of a residual network.
    Stem,
    /// The part of an image that a network sees.
    View,
    /// Height and width of the network's input.
    ImageSize,
    /// Images per batch.
    BatchSize,
    /// Batches per epoch.
    BatchesPerEpoch,
    /// Epochs.
    Epochs,
    /// Learning rate.
    LearningRate,
    /// The share of an image that a random crop keeps.
    CropShare,
    /// Momentum.
    Momentum,
    /// Weight decay.
    WeightDecay,
    /// Components of a PCA.
    PcaWidth,
    /// Classes of an episode.
    Ways,
    /// Examples that a class of an episode is made of.
    Shots,
    /// Examples of a class of an episode that are classified.
    Queries,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Setting::Architecture => "architecture",
            Setting::Stem => "stem",
            Setting::View => "view",
            Setting::ImageSize => "image size",
            Setting::BatchSize => "batch size",
            Setting::BatchesPerEpoch => "batches per epoch",
            Setting::Epochs => "epochs",
            Setting::LearningRate => "learning rate",
            Setting::CropShare => "share of an image in a crop",
            Setting::Momentum => "momentum",
            Setting::WeightDecay => "weight decay",
            Setting::PcaWidth => "width of the PCA",
            Setting::Ways => "ways",
            Setting::Shots => "shots",
            Setting::Queries => "queries",
        })
    }
}

/// A result of this module.
pub type Result<T> = std::result::Result<T, Error>;

impl From<Error> for labelsieve_files::work::Error {
    fn from(error: Error) -> labelsieve_files::work::Error {
        labelsieve_files::work::Error::stage(error)
    }
}
