//! Networks that turn photos into features: reading images, embedding, training on base classes (eq. 7), and fine-tuning on
//! weighted examples (eq. 6 and 8).
//!
//! ```text
//! image_files/ ──► images/ ──────► opening/ ─────────────► embed/, image_scores.rs     features, scores
//! files, tars,     decoding,       models of every kind    pretrain.rs, finetune/      networks
//! Parquet          augmentation        │                       └─► training/ ──► checkpoint.rs
//!                                      ├─► network.rs, cpu/            convolutional networks
//!                                      ├─► transformer/                vision transformers, text towers (embed_text/)
//!                                      └─► onnx_runtime/               ONNX files
//! ```
//!
//! A [`Network`] is a list of layers, built by an [`Architecture`]; a [`Learner`] is such a network on a device.
//! Features may come from any [`Embedder`], which every learner is.
//! This crate has the learner for the CPU; the one for NVIDIA GPUs is in `labelsieve-cuda`.

mod architecture;
pub mod checkpoint;
mod cosine;
mod covariance;
mod cpu;
pub mod curve;
pub mod devices;
mod eigen;
pub mod embed;
pub mod embed_text;
mod embedder;
mod error;
pub mod finetune;
pub mod image_files;
pub mod image_scores;
pub mod images;
mod learner;
mod network;
#[cfg(feature = "onnx")]
pub mod onnx_runtime;
pub mod opening;
mod pca;
mod prepare;
pub mod pretrain;
mod prototypical;
pub mod training;
pub mod transformer;
pub mod weights;

pub use architecture::{Architecture, Stem};
pub use cosine::{CosineLoss, cosine_loss};
pub use covariance::Covariance;
pub use cpu::CpuLearners;
pub use embedder::Embedder;
pub use error::{Error, Result, Setting};
pub use learner::check_no_classifier;
pub use learner::{
    Batch, FeatureLoss, FeatureObjective, Learner, Learners, ScaleRule, Sgd, Snapshot, Tally, Targets,
};
pub use network::{Activation, Layer, Network, Node, Padding, Parameter, Role, Shape, Value};
pub use pca::{Pca, to_unit_length};
pub use prepare::{Preparation, PreparedBatch, centre_features, dataset_features, prepare, unit_features};
pub use prototypical::{Distance, Prototypical};
