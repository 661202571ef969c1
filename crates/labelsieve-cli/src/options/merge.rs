//! Options of `merge`.

use std::path::PathBuf;

use clap::Args;
use labelsieve_jobs::merge::Merge;

/// Parts and the file that they become.
#[derive(Args, Clone, Debug)]
pub struct MergeOptions {
    /// Parts that `score --bin`, `score --shard` or `match --shard` wrote, in any order, or folders of them
    #[arg(value_name = "PART", required = true)]
    pub parts: Vec<PathBuf>,

    /// Output file, .parquet or .csv; - for CSV on stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

impl MergeOptions {
    /// The job that they describe.
    pub fn job(&self) -> Merge {
        Merge { parts: self.parts.clone(), output: self.output.clone() }
    }
}
