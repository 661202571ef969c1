//! Relevance of web-collected examples from a few verified ones.
//!
//! This crate is the method of *Graph convolutional networks for learning with few clean and many noisy labels* (Iscen,
//! Tolias, Avrithis, Chum and Schmid, ECCV 2020) on features in memory. It touches no files, clocks or output, and
//! every random number comes from a seed that the caller passes in.
//!
//! ```
//! use labelsieve::{ClassProblem, Features, Method, NoisyPool};
//!
//! let clean = Features::new(vec![1.0, 0.0], 2)?;
//! let noisy = NoisyPool::new(Features::new(vec![0.9, 0.1, 0.0, 1.0], 2)?);
//! let problem = ClassProblem::new(&clean, &noisy)?;
//! let relevance = Method::gcn().build()?.relevance(&problem, 0)?;
//! assert!(relevance.noisy()[0] > relevance.noisy()[1]);
//! # Ok::<(), labelsieve::Error>(())
//! ```
//!
//! The folders are the pipeline: [`graph`] connects the examples of a
//! class, [`relevance`] scores them, [`ordering`] chooses those to review first, [`classifier`] learns from the
//! weighted examples, [`evaluation`] measures the result. [`ClassProblem`], [`RelevanceModel`] and [`Classifier`] in `model.rs` are the centre.

#[cfg(test)]
extern crate self as labelsieve; // tests that `labelsieve-bench` shares name this crate

pub mod classifier;
mod decision;
pub mod engine;
mod error;
pub mod evaluation;
mod features;
#[cfg(test)]
mod golden;
pub mod graph;
#[cfg(test)]
mod in_memory;
mod model;
pub mod ordering;
pub mod relevance;
pub mod schedule;
pub mod synthetic;

pub use decision::Decision;
#[doc(hidden)] // for our own crates
pub use error::check;
pub use error::{Error, Result};
pub use features::{Features, SharedNumbers};
pub use graph::NoisyPool;
pub use model::{ClassProblem, Classifier, Relevance, RelevanceModel, Scores};
pub use relevance::Method;
