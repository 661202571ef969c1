//! Reporting to a front end: messages, progress, and stopping early.

use std::io::Write;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use labelsieve_numerics::Watch;

use super::words::Words;

/// A front end that a job reports to: a terminal, a Python session, a server.
pub trait Monitor: Sync {
    /// Verbose output.
    fn detail(&self, line: &str);
    /// A message about progress or a result.
    fn note(&self, line: &str);
    /// A warning, shown even in quiet mode.
    fn warning(&self, line: &str);
    /// A hint on how to resolve the last warning.
    fn hint(&self, hint: &Words);
    /// A way to a better result, shown with the notes.
    fn suggestion(&self, suggestion: &Words);
    /// Starts a progress meter for `total` units.
    fn progress(&self, total: u64, unit: &'static str) -> Progress;
    /// Starts a meter for work of unknown length.
    fn counter(&self, unit: &'static str) -> Progress;
    /// Records which work would survive the end of the process, for the message of an interrupted run.
    fn keep(&self, kept: SavedWork);
    /// Standard output, for a result that is not written to a file.
    fn stdout(&self) -> Box<dyn Write + Send>;
    /// The watch that stops the work early on request.
    fn watch(&self) -> &Watch;
    /// A function for warnings after the call has returned, e.g. of a device that fails while it works and is replaced.
    fn warn_later(&self) -> Box<dyn Fn(&str) + Send + Sync>;
}

/// A progress meter of a front end.
pub trait Meter: Send + Sync {
    /// Adds `n` finished units.
    fn inc(&self, n: u64);
    /// Sets the number of finished units.
    fn set_position(&self, n: u64);
    /// Sets the total number of units.
    fn set_length(&self, n: u64);
    /// Sets the description of the current work.
    fn set_message(&self, message: &str);
    /// Restarts the estimate of the remaining time: units so far were finished by an earlier run.
    fn reset_eta(&self);
    /// Ends the meter.
    fn finish(&self);
}

/// A shared [`Meter`], which ends when its last owner is dropped.
#[derive(Clone)]
pub struct Progress(Arc<MeterGuard>);

/// Ends a meter on drop.
struct MeterGuard(Box<dyn Meter>);

impl Drop for MeterGuard {
    fn drop(&mut self) {
        self.0.finish();
    }
}

impl Progress {
    /// Shares a meter.
    pub fn new(meter: impl Meter + 'static) -> Progress {
        Progress(Arc::new(MeterGuard(Box::new(meter))))
    }
}

impl Deref for Progress {
    type Target = dyn Meter;

    fn deref(&self) -> &(dyn Meter + 'static) {
        self.0.0.as_ref()
    }
}

/// Work that survives the end of the process.
#[derive(Clone, Debug)]
pub enum SavedWork {
    /// Records of a journal.
    Journal {
        /// The journal.
        path: PathBuf,
        /// The unit of its records.
        unit: String,
        /// The total number of records, if known.
        total: Option<usize>,
    },
    /// A checkpoint of a training.
    Epochs {
        /// The checkpoint.
        path: PathBuf,
        /// The number of finished epochs.
        done: usize,
        /// The number of all epochs.
        total: usize,
    },
    /// Finished commands of several, as long as the current one has nothing of its own.
    Steps {
        /// The journal of commands.
        path: PathBuf,
        /// The number of all commands.
        total: usize,
    },
    /// Nothing, even if an inner command reports otherwise.
    StartsOver,
}

/// A monitor that shows nothing.
#[derive(Debug, Default)]
pub struct Silent(Watch);

impl Monitor for Silent {
    fn detail(&self, _line: &str) {}
    fn note(&self, _line: &str) {}
    fn warning(&self, _line: &str) {}
    fn hint(&self, _hint: &Words) {}
    fn suggestion(&self, _suggestion: &Words) {}

    fn progress(&self, _total: u64, _unit: &'static str) -> Progress {
        Progress::new(SilentMeter)
    }

    fn counter(&self, _unit: &'static str) -> Progress {
        Progress::new(SilentMeter)
    }

    fn keep(&self, _kept: SavedWork) {}

    fn stdout(&self) -> Box<dyn Write + Send> {
        Box::new(std::io::sink())
    }

    fn watch(&self) -> &Watch {
        &self.0
    }

    fn warn_later(&self) -> Box<dyn Fn(&str) + Send + Sync> {
        Box::new(|_| ())
    }
}

/// The meter of [`Silent`].
struct SilentMeter;

impl Meter for SilentMeter {
    fn inc(&self, _n: u64) {}
    fn set_position(&self, _n: u64) {}
    fn set_length(&self, _n: u64) {}
    fn set_message(&self, _message: &str) {}
    fn reset_eta(&self) {}
    fn finish(&self) {}
}
