//! `labelsieve finetune`: the whole network learns from weighted examples (eq. 6 and 8).

use anyhow::Result;
use clap::Args;
use labelsieve_files::counted;
use labelsieve_files::inputs::decisions;
use labelsieve_files::work::Monitor;
use labelsieve_jobs::device::Devices;
use labelsieve_report::TrainingCurves;

use crate::arguments::JsonArguments;
use crate::options::FineTuneOptions;
use crate::printer::Printer;

/// Fine-tune a whole network on images weighted by their relevance
#[derive(Args)]
pub struct FineTune {
    #[command(flatten)]
    options: FineTuneOptions,

    #[command(flatten)]
    json: JsonArguments,
}

impl FineTune {
    pub fn run(&self, printer: &Printer) -> Result<()> {
        let tuned = self.options.job().run(&Devices, &TrainingCurves, printer)?;
        if self.json.json {
            return printer.json("finetune", &tuned);
        }
        if let Some(counts) = &tuned.decisions {
            decisions::say(counts, printer);
        }
        printer.note(&format!(
            "network with {} written to `{}`; use it with `labelsieve predict --model … --images …`",
            counted(tuned.n_classes, "class"),
            self.options.output.display()
        ));
        Ok(())
    }
}
