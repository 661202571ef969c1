//! A step of a run: a job by its command and options, which each front end runs and spells its own way.

use std::ffi::{OsStr, OsString};

use labelsieve_files::work::Monitor;

/// A command with its options.
#[derive(Clone, Debug)]
pub struct JobLine {
    /// The name of the command.
    pub command: &'static str,
    /// Its options in the order in which they are shown.
    pub options: Vec<LineOption>,
}

/// An option of a [`JobLine`].
#[derive(Clone, Debug)]
pub struct LineOption {
    /// The name of its field, as [`labelsieve_files::work::option`] takes it.
    pub name: &'static str,
    /// One value, or several.
    pub values: Vec<OsString>,
    /// Whether the command line shows it without its name.
    pub is_positional: bool,
}

impl JobLine {
    /// A command without options.
    pub fn new(command: &'static str) -> JobLine {
        JobLine { command, options: Vec::new() }
    }

    /// With one more option.
    #[must_use]
    pub fn option(self, name: &'static str, value: impl AsRef<OsStr>) -> JobLine {
        self.options(name, [value])
    }

    /// With one more option of several values.
    #[must_use]
    pub fn options<V: AsRef<OsStr>>(
        mut self,
        name: &'static str,
        values: impl IntoIterator<Item = V>,
    ) -> JobLine {
        let values = values.into_iter().map(|value| value.as_ref().to_owned()).collect();
        self.options.push(LineOption { name, values, is_positional: false });
        self
    }

    /// With the argument that the command line shows without its name.
    #[must_use]
    pub fn argument(mut self, name: &'static str, value: impl AsRef<OsStr>) -> JobLine {
        let values = vec![value.as_ref().to_owned()];
        self.options.push(LineOption { name, values, is_positional: true });
        self
    }
}

/// Runs the steps of a run.
pub trait StepRunner {
    /// The errors of the front end.
    type Error: From<labelsieve_files::work::Error>;

    /// Shows a step and why it is run, and runs it.
    fn run(&self, why: &str, line: &JobLine, monitor: &dyn Monitor) -> Result<(), Self::Error>;

    /// The step as a user of this front end would write it.
    fn spelled(&self, line: &JobLine) -> String;
}
