//! `labelsieve plan`: classes packed into bins, to be scored in parts.

use anyhow::Result;
use clap::Args;
use labelsieve_files::work::Monitor;

use crate::arguments::JsonArguments;
use crate::given::Given;
use crate::options::PlanOptions;
use crate::printer::Printer;

/// Pack the classes of a run into bins, each to be scored by `labelsieve score --plan FILE --bin I`
#[derive(Args)]
pub struct Plan {
    #[command(flatten)]
    options: PlanOptions,

    #[command(flatten)]
    json: JsonArguments,
}

impl Plan {
    pub fn check_options(&self, given: &Given) -> Result<()> {
        self.options.method.check_options(given)?;
        self.options.scored.check_options(given)
    }

    pub fn run(&self, printer: &Printer) -> Result<()> {
        let planned = self.options.job().run(printer)?;
        if self.json.json {
            return printer.json("plan", &planned);
        }
        planned.lines().iter().try_for_each(|line| printer.data(line))?;
        printer.note(&format!("written to `{}`", self.options.output.display()));
        Ok(())
    }
}
