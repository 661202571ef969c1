//! The steps of `run`, as jobs of this process.

use clap::Args;
use labelsieve_cli::options::{
    self, EmbedOptions, MatchOptions, OptionValue, ReportOptions, ScoreOptions, TrainOptions,
};
use labelsieve_files::work::{Error, Monitor, Result};
use labelsieve_jobs::device::Devices;
use labelsieve_jobs::run::{JobLine, StepRunner};

use crate::spelling::argument_name;

/// Runs each step and shows it as a call.
pub struct Steps;

impl StepRunner for Steps {
    type Error = Error;

    fn run(&self, why: &str, line: &JobLine, monitor: &dyn Monitor) -> Result<()> {
        monitor.note(&format!("{why}: {}", self.spelled(line)));
        match line.command {
            "embed" => parsed::<EmbedOptions>(line)?.job().run(&Devices, monitor).map(drop),
            "match" => parsed::<MatchOptions>(line)?.job().run(monitor).map(drop),
            "score" => parsed::<ScoreOptions>(line)?.job().run(monitor).map(drop),
            "train" => parsed::<TrainOptions>(line)?.job().run(monitor).map(drop),
            "report" => parsed::<ReportOptions>(line)?.write_report(monitor).map(drop),
            other => Err(Error::Internal(format!("a run has no step `{other}`"))),
        }
    }

    fn spelled(&self, line: &JobLine) -> String {
        let arguments = line.options.iter().map(|option| {
            let values: Vec<String> =
                option.values.iter().map(|value| format!("{:?}", value.to_string_lossy())).collect();
            let value = if values.len() == 1 { values.concat() } else { format!("[{}]", values.join(", ")) };
            format!("{}={value}", argument_name(option.name))
        });
        format!("{}_files({})", line.command, arguments.collect::<Vec<_>>().join(", "))
    }
}

/// The options of a step.
fn parsed<O: Args>(line: &JobLine) -> Result<O> {
    let values = line.options.iter().map(|option| {
        let values = option.values.iter().cloned().map(OptionValue::Text).collect();
        (option.name.to_owned(), OptionValue::List(values))
    });
    let values: Vec<(String, OptionValue)> = values.collect();
    options::parse(&values).map_err(|message| Error::input(message, ""))
}
