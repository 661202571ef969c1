//! Options of `plan`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use labelsieve_files::work::byte_size::ByteSize;
use labelsieve_jobs::plan::Plan;

use crate::arguments::{DeviceArguments, MethodArguments, ScoredArguments, SeedArguments};

/// A scoring run and the bins that it is cut into.
#[derive(Args, Clone, Debug)]
pub struct PlanOptions {
    #[command(flatten)]
    pub(crate) scored: ScoredArguments,

    /// Number of bins
    #[arg(long, value_name = "N")]
    pub bins: NonZeroUsize,

    /// Memory that a bin should keep within, e.g. 8GiB
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<ByteSize>,

    /// Output file, .json
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,

    #[command(flatten)]
    pub(crate) method: MethodArguments,

    #[command(flatten)]
    pub(crate) device: DeviceArguments,

    #[command(flatten)]
    pub(crate) seed: SeedArguments,
}

impl PlanOptions {
    /// The job that they describe.
    pub fn job(&self) -> Plan {
        Plan {
            files: self.scored.files(),
            decisions: self.scored.decisions.clone(),
            method: self.method.method(),
            device: self.device.device,
            seed: self.seed.seed,
            bins: self.bins,
            memory: self.memory.map(|size| size.0),
            output: self.output.clone(),
        }
    }
}
