//! `labelsieve bench`: the benchmarks of `labelsieve-bench`.

use anyhow::Result;
use clap::Args;

use crate::printer::Printer;

/// Run benchmarks
#[derive(Args)]
pub struct Bench {
    #[command(subcommand)]
    bench: labelsieve_bench::Bench,
}

impl Bench {
    pub fn run(&self, printer: &Printer) -> Result<()> {
        Ok(self.bench.run(printer, &mut printer.lines())?)
    }
}
