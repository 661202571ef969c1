//! Between the files of a user and the method: tables and images become classes, classes are scored, and what comes out is
//! written whole. The command line, Python and benchmarks are front ends of this crate: they turn their arguments into one
//! of its jobs, run it with a [`Monitor`], and show what it returns.
//!
//! It neither prints nor parses arguments.

pub mod byte_size;
pub mod clean;
pub mod cost;
mod curve;
pub mod device;
mod digest;
pub mod embed;
pub mod embed_text;
mod error;
pub mod estimate;
pub mod evaluate;
pub mod finetune;
mod image_scores;
pub mod import_decisions;
pub mod inputs;
mod json_answer;
pub mod matching;
pub mod memory;
pub mod merge;
pub mod monitor;
pub mod near_name;
pub mod outputs;
pub mod parts;
mod path_text;
pub mod plan;
pub mod predict;
pub mod pretrain;
pub mod resume;
pub mod review;
pub mod scoring;
pub mod shell_word;
pub mod table;
pub mod train;

pub use error::{Context, Error, Result};
pub use json_answer::json_answer;
pub use monitor::{Kept, Meter, Monitor, Progress, Silent};
