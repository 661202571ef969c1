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
//! The folders are the pipeline: [`matching`] finds candidates by their texts, [`graph`] connects the examples of a
//! class, [`relevance`] scores them, [`ordering`] says which of them a person should look at, [`classifier`] learns from the
//! weighted examples, [`evaluation`] measures the result. [`ClassProblem`], [`RelevanceModel`] and [`Classifier`] in `model.rs` are the centre.

#[cfg(test)]
extern crate self as labelsieve; // tests that `labelsieve-bench` shares name this crate

pub mod classifier;
mod decision;
pub mod engine;
mod error;
pub mod evaluation;
mod features;
mod fnv;
#[cfg(test)]
mod golden;
pub mod graph;
#[doc(hidden)] // for our own crates
pub mod kernels;
pub mod level;
pub mod matching;
mod model;
pub mod ordering;
pub mod random;
pub mod relevance;
pub mod schedule;
mod scratch;
pub mod synthetic;
mod watch;

pub use decision::Decision;
#[doc(hidden)] // for our own crates
pub use error::check;
pub use error::{Error, Result};
#[doc(hidden)] // for our own crates
pub use features::unit_rows;
pub use features::{Features, SharedNumbers};
#[doc(hidden)] // for our own crates
pub use fnv::Fnv1a;
#[doc(hidden)] // for our own crates
pub use kernels::matrix;
pub use model::{ClassProblem, Classifier, NoisyPool, Relevance, RelevanceModel, Scores};
pub use relevance::Method;
pub use scratch::{Access, Lent, Pages, Scratch};
pub use watch::Watch;
