//! Options of `score`.

use std::path::PathBuf;

use clap::Args;
use labelsieve_files::Shard;
use labelsieve_jobs::score::{Score, Share};

use crate::arguments::{DeviceArguments, MemoryArguments, MethodArguments, ScoredArguments, SeedArguments};

/// The heading of options for work in parts.
const PARTS: &str = "Work in parts";

/// The inputs of a scoring run, its method, and the part of it that is asked for.
#[derive(Args, Clone, Debug)]
pub struct ScoreOptions {
    #[command(flatten)]
    pub(crate) scored: ScoredArguments,

    /// Output file, .parquet or .csv, with one row per example and class; - for CSV on stdout, which cannot be resumed
    #[arg(short, long, value_name = "FILE", required_unless_present = "dry_run")]
    pub output: Option<PathBuf>,

    /// Score only one bin of this plan, from `labelsieve plan`; the output is a part for `labelsieve merge`
    #[arg(long, value_name = "FILE", requires = "bin", help_heading = PARTS)]
    pub plan: Option<PathBuf>,

    /// Which bin of the plan, from 0. --pool and --candidates may hold the rows of the bin alone
    #[arg(long, value_name = "I", requires = "plan", help_heading = PARTS)]
    pub bin: Option<usize>,

    /// Score only shard I of N, from 0, without a plan: classes are packed alike on every machine
    #[arg(long, value_name = "I/N", conflicts_with_all = ["plan", "bin"], help_heading = PARTS)]
    pub shard: Option<Shard>,

    /// Only estimate memory and time
    #[arg(long)]
    pub dry_run: bool,

    #[command(flatten)]
    pub(crate) method: MethodArguments,

    /// Search the neighbours among more than 65,536 candidates approximately, to find about this share of them, on the CPU
    #[arg(long, value_name = "RECALL", num_args = 0..=1, require_equals = true, default_missing_value = "0.95")]
    pub neighbours_approximate: Option<f64>,

    #[command(flatten)]
    pub(crate) memory: MemoryArguments,

    #[command(flatten)]
    pub(crate) device: DeviceArguments,

    #[command(flatten)]
    pub(crate) seed: SeedArguments,
}

impl ScoreOptions {
    /// Which classes are asked for.
    pub fn share(&self) -> Share {
        match (&self.plan, self.bin, self.shard) {
            (Some(plan), Some(bin), _) => Share::Bin { plan: plan.clone(), bin },
            (.., Some(shard)) => Share::Shard(shard),
            _ => Share::All,
        }
    }

    /// The job that they describe.
    pub fn job(&self) -> Score {
        Score {
            files: self.scored.files(),
            decisions: self.scored.decisions.clone(),
            method: self.method.method(),
            device: self.device.device,
            seed: self.seed.seed,
            share: self.share(),
            output: self.output.clone().unwrap_or_default(),
            memory: self.memory.limit(),
            recall: self.neighbours_approximate,
        }
    }
}
