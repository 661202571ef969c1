//! Jobs from files to files: tables of examples become classes ([`inputs`]), classes are scored ([`mod@score`], by [`scoring`] within
//! [`memory`]), classifiers are trained ([`train`](mod@train)), used ([`predict`](mod@predict)) and measured
//! ([`evaluate`](mod@evaluate)). Large runs are cut by [`plan`](mod@plan) from the [`cost`] of classes and put together by
//! [`merge`](mod@merge). The command line, Python and the benchmarks are front ends: they turn their arguments into a job, run it with a
//! [`Monitor`](labelsieve_files::work::Monitor), and show what it returns.
//!
//! This is the one crate that opens devices ([`device`]).

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
pub mod score;
pub mod scoring;
pub mod train;
