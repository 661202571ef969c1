//! The jobs of the pipeline, from files to files.
//!
//! `python/labelsieve/_jobs.py` passes options by their names on the command line; the same definitions parse them
//! (`labelsieve_cli::options`). A job returns what `--json` prints, as JSON.

use std::path::PathBuf;

use clap::Args;
use labelsieve_cli::options::{
    self, ClassesOptions, EmbedOptions, EmbedTextOptions, EvaluateOptions, FineTuneOptions,
    ImportDecisionsOptions, MatchOptions, MergeOptions, OptionDescription, OptionValue, PlanOptions,
    PredictOptions, PretrainOptions, ReportOptions, RunOptions, ScoreOptions, TrainOptions,
};
use labelsieve_files::work::{Monitor, Result};
use labelsieve_jobs::device::Devices;
use labelsieve_networks::embed::{JoinFeatures, OnEmpty};
use labelsieve_report::TrainingCurves;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyList, PyTuple};
use serde::Serialize;

use crate::errors::value_error;
use crate::monitor;
use crate::spelling::argument_name;
use crate::steps::Steps;

/// Adds the functions of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(run_job, module)?)?;
    module.add_function(wrap_pyfunction!(join_features, module)?)?;
    module.add_function(wrap_pyfunction!(describe_options, module)?)?;
    module.add_function(wrap_pyfunction!(commands, module)?)
}

/// Runs the job of a command.
#[pyfunction]
fn run_job<'py>(
    py: Python<'py>,
    command: &str,
    options: Bound<'py, PyDict>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<String> {
    let call = Call { py, options: &options, progress: progress.as_ref() };
    match command {
        "classes" => call.run(|options: ClassesOptions, _| options.job().run()),
        "decisions import" => call.run(|options: ImportDecisionsOptions, monitor| options.job().run(monitor)),
        "embed" => call.embed(),
        "embed-text" => call.run(|options: EmbedTextOptions, monitor| options.job().run(monitor)),
        "evaluate" => call.run(|options: EvaluateOptions, monitor| options.job().run(monitor)),
        "finetune" => call
            .run(|options: FineTuneOptions, monitor| options.job().run(&Devices, &TrainingCurves, monitor)),
        "match" => call.run(|options: MatchOptions, monitor| options.job().run(monitor)),
        "merge" => call.run(|options: MergeOptions, monitor| options.job().run(monitor)),
        "plan" => call.run(|options: PlanOptions, monitor| options.job().run(monitor)),
        "predict" => call.run(|options: PredictOptions, monitor| options.job().run(monitor)),
        "pretrain" => call
            .run(|options: PretrainOptions, monitor| options.job().run(&Devices, &TrainingCurves, monitor)),
        "report" => call.run(|options: ReportOptions, monitor| options.write_report(monitor)),
        "run" => call.run(|options: RunOptions, monitor| options.job().run(&Steps, monitor)),
        "score" => call.score(),
        "train" => call.run(|options: TrainOptions, monitor| options.job().run(monitor)),
        _ => Err(value_error(format!("no job is called `{command}`"))),
    }
}

/// The options of a command as the command line defines them, as JSON; each with the name of its argument.
#[pyfunction]
fn describe_options(command: &str) -> PyResult<String> {
    let described = options::describe(command);
    let described = described.ok_or_else(|| value_error(format!("no command is called `{command}`")))?;
    let arguments = described.iter().map(|option| {
        let flag = option.flag.as_deref().and_then(|flag| flag.strip_prefix("--"));
        let name = flag.map_or_else(|| option.name.clone(), |flag| flag.replace('-', "_"));
        Argument { argument: argument_name(&name).to_owned(), option }
    });
    json(&arguments.collect::<Vec<_>>())
}

/// An option and the argument that stands for it.
#[derive(Serialize)]
struct Argument<'a> {
    argument: String,
    #[serde(flatten)]
    option: &'a OptionDescription,
}

/// The commands of the command line; those of a group by both names.
#[pyfunction]
fn commands() -> Vec<String> {
    options::commands()
}

/// Files of features as one, for `labelsieve.ray`.
#[pyfunction]
fn join_features<'py>(
    py: Python<'py>,
    parts: Vec<PathBuf>,
    output: PathBuf,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<String> {
    let job = JoinFeatures { parts, output };
    json(&monitor::run(py, progress.as_ref(), |monitor| job.run(monitor))?)
}

/// A call of a job from Python.
struct Call<'a, 'py> {
    py: Python<'py>,
    options: &'a Bound<'py, PyDict>,
    progress: Option<&'a Bound<'py, PyAny>>,
}

impl Call<'_, '_> {
    /// Parses the options and runs their job.
    fn run<O: Args + Send, R: Serialize + Send>(
        &self,
        job: impl FnOnce(O, &dyn Monitor) -> Result<R> + Send,
    ) -> PyResult<String> {
        let options: O = parsed(self.py, self.options)?;
        json(&monitor::run(self.py, self.progress, |monitor| job(options, monitor))?)
    }

    /// A dry run estimates.
    fn score(&self) -> PyResult<String> {
        let is_dry: Option<bool> = self.options.as_any().get_item("dry_run")?.extract()?;
        if is_dry == Some(true) {
            self.run(|options: ScoreOptions, monitor| options.job().estimate(monitor))
        } else {
            self.run(|options: ScoreOptions, monitor| options.job().run(monitor))
        }
    }

    /// Features of no images are a file of no rows where they are a part of many: the cluster asks for that.
    fn embed(&self) -> PyResult<String> {
        let may_be_empty: bool = self.options.as_any().get_item("may_be_empty")?.extract()?;
        self.options.del_item("may_be_empty")?;
        let on_empty = if may_be_empty { OnEmpty::Write } else { OnEmpty::Refuse };
        self.run(|options: EmbedOptions, monitor| {
            let mut job = options.job();
            job.on_empty = on_empty;
            job.run(&Devices, monitor)
        })
    }
}

/// The options of a job from the values that Python has for them.
pub fn parsed<O: Args>(py: Python<'_>, options: &Bound<'_, PyDict>) -> PyResult<O> {
    let values = options.iter().map(|(name, value)| {
        let name: String = name.extract()?;
        let value = option_value(&value).map_err(|error| named(py, &name, &error))?;
        Ok((name, value))
    });
    let values: Vec<(String, OptionValue)> = values.collect::<PyResult<_>>()?;
    options::parse(&values).map_err(value_error)
}

fn option_value(value: &Bound<'_, PyAny>) -> PyResult<OptionValue> {
    if value.is_none() {
        return Ok(OptionValue::Default);
    }
    if let Ok(is_on) = value.extract::<bool>() {
        return Ok(OptionValue::Switch(is_on));
    }
    if value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>() {
        return Ok(OptionValue::Number(value.str()?.to_string()));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let values = value.try_iter()?.map(|one| option_value(&one?));
        return Ok(OptionValue::List(values.collect::<PyResult<_>>()?));
    }
    Ok(OptionValue::Text(value.extract::<PathBuf>()?.into_os_string()))
}

/// An error of Python's about an option, with the option's name.
fn named(py: Python<'_>, name: &str, error: &PyErr) -> PyErr {
    value_error(format!("{name}: {}", error.value(py)))
}

/// The answer of a job.
pub fn json(summary: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(summary).map_err(value_error)
}
