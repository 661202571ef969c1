//! `labelsieve run`: from two folders of photos to a classifier and a report, each step as the command a user would type.

use anyhow::Result;
use clap::Args;
use labelsieve_files::work::Monitor;
use labelsieve_jobs::run::{JobLine, StepRunner};

use super::words::{Words, run_step, words};
use crate::arguments::JsonArguments;
use crate::options::RunOptions;
use crate::printer::Printer;

/// Run the whole pipeline: embed, match, score, train and report, each step as its own command
#[derive(Args)]
pub struct Run {
    #[command(flatten)]
    options: RunOptions,

    #[command(flatten)]
    json: JsonArguments,
}

/// Runs each step as a command line.
struct CommandLines {
    printer: Printer,
}

impl StepRunner for CommandLines {
    type Error = anyhow::Error;

    fn run(&self, why: &str, line: &JobLine, _: &dyn Monitor) -> Result<()> {
        run_step(why, &Words::from(line), &self.printer).map(drop)
    }

    fn spelled(&self, line: &JobLine) -> String {
        Words::from(line).to_string()
    }
}

impl Run {
    pub fn run(&self, printer: &Printer) -> Result<()> {
        let job = self.options.job();
        let finished = job.run(&CommandLines { printer: printer.for_steps() }, printer)?;
        if self.json.json {
            return printer.json("run", &finished);
        }
        let report = job.output.join("report.html");
        printer.note(&format!(
            "\nOpen `{}` in a browser, or predict the classes of new photos:",
            report.display()
        ));
        let embed = words("embed").option("--model", job.network()).option("--images", "NEW");
        printer.note(&format!("$ {}", embed.option("-o", "new.parquet")));
        let classifier = job.output.join("classifier.safetensors");
        let predict = words("predict").option("--model", classifier).option("--features", "new.parquet");
        printer.note(&format!("$ {predict}"));
        printer.note("\nLook at the candidates and decide about them, five per class go a long way:");
        printer.note(&format!("$ {}", words("review").path(&job.output)));
        Ok(())
    }
}
