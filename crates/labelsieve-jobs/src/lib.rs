//! Jobs from files to files: tables of examples become classes, classes are scored, classifiers are trained and measured. The command
//! line, Python and the benchmarks are front ends: they turn their arguments into a job, run it with a
//! [`Monitor`](labelsieve_files::work::Monitor), and show what it returns.
//!
//! This is the one crate that opens devices ([`device`]).

pub mod clean;
pub mod cost;
pub mod device;
pub mod estimate;
pub mod evaluate;
pub mod inputs;
pub mod memory;
pub mod merge;
pub mod plan;
pub mod predict;
pub mod run;
pub mod scoring;
pub mod train;
pub mod train_attention;
pub mod train_episodes;
