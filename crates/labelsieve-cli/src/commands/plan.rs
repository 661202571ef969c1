//! `labelsieve plan`: classes packed into bins, to be scored in parts.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use labelsieve_files::work::Monitor;
use labelsieve_files::work::byte_size::ByteSize;
use labelsieve_jobs::plan::Plan as Job;

use crate::arguments::{DeviceArguments, JsonArguments, MethodArguments, ScoredArguments, SeedArguments};
use crate::options::Given;
use crate::printer::Printer;

/// Pack the classes of a run into bins, each to be scored by `labelsieve score --plan FILE --bin I`
#[derive(Args)]
pub struct Plan {
    #[command(flatten)]
    scored: ScoredArguments,

    /// Number of bins
    #[arg(long, value_name = "N")]
    bins: NonZeroUsize,

    /// Memory that a bin should keep within, e.g. 8GiB
    #[arg(long, value_name = "SIZE")]
    memory: Option<ByteSize>,

    /// Output file, .json
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    #[command(flatten)]
    method: MethodArguments,

    #[command(flatten)]
    device: DeviceArguments,

    #[command(flatten)]
    seed: SeedArguments,

    #[command(flatten)]
    json: JsonArguments,
}

impl Plan {
    pub fn check_options(&self, given: &Given) -> Result<()> {
        self.method.check_options(given)?;
        self.scored.check_options(given)
    }

    pub fn run(&self, printer: &Printer) -> Result<()> {
        let job = Job {
            files: self.scored.files(),
            decisions: self.scored.decisions.clone(),
            method: self.method.method(),
            device: self.device.device,
            seed: self.seed.seed,
            bins: self.bins,
            memory: self.memory.map(|size| size.0),
            output: self.output.clone(),
        };
        let planned = job.run(printer)?;
        if self.json.json {
            return printer.json("plan", &planned);
        }
        planned.lines().iter().try_for_each(|line| printer.data(line))?;
        printer.note(&format!("written to `{}`", self.output.display()));
        Ok(())
    }
}
