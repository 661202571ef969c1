//! Between the files of a user and the method: tables and images become classes, classes are scored, and what comes out is
//! written whole. The command line, Python and benchmarks are front ends of this crate: they turn their arguments into one
//! of its jobs, run it with a [`Monitor`], and show what it returns.
//!
//! It neither prints nor parses arguments.

pub mod candidates;
pub mod device;
pub mod embedded;
mod error;
pub mod estimate;
pub mod image_scores;
pub mod inputs;
pub mod leaks;
pub mod monitor;
pub mod near_name;
pub mod novel_classes;
pub mod outputs;
pub mod resume;
pub mod scored;
pub mod table;

pub use error::{Context, Error, Result};
pub use monitor::{Kept, Meter, Monitor, Progress, Silent};
