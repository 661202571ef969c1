//! How a front end follows work under way.

use std::io::Write;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use labelsieve_numerics::Watch;

use super::words::Words;

/// What the pipeline tells a front end: a terminal, a Python session, a server.
pub trait Monitor: Sync {
    /// What only the curious want to know.
    fn detail(&self, line: &str);
    /// What was done.
    fn note(&self, line: &str);
    /// What the user should know in any case.
    fn warning(&self, line: &str);
    /// What the user can do about the last warning.
    fn hint(&self, hint: &Words);
    /// A way to a better result, shown with the notes.
    fn suggestion(&self, suggestion: &Words);
    /// Work of `total` units begins.
    fn progress(&self, total: u64, unit: &'static str) -> Progress;
    /// Work of unknown length begins.
    fn counter(&self, unit: &'static str) -> Progress;
    /// Notes what of the work so far would survive the end of the process.
    fn keep(&self, kept: Kept);
    /// Where a result goes that is written to no file.
    fn stdout(&self) -> Box<dyn Write + Send>;
    /// Ends the work early when its `stop` was called.
    fn watch(&self) -> &Watch;
    /// For what outlives the call: a device that is given up while it works is replaced, and says so.
    fn warn_later(&self) -> Box<dyn Fn(&str) + Send + Sync>;
}

/// One stretch of work, as a front end shows it.
pub trait Meter: Send + Sync {
    /// So many units more are done.
    fn inc(&self, n: u64);
    /// So many are done in all.
    fn set_position(&self, n: u64);
    /// So many there are, as far as is known by now.
    fn set_length(&self, n: u64);
    /// What is being worked on.
    fn set_message(&self, message: &str);
    /// It starts here: units so far were done in an earlier run, and say nothing about the speed of this one.
    fn reset_eta(&self);
    /// The work is over.
    fn finish(&self);
}

/// A shared [`Meter`], which ends with its last owner.
#[derive(Clone)]
pub struct Progress(Arc<Ending>);

/// Ends a meter when it goes.
struct Ending(Box<dyn Meter>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.finish();
    }
}

impl Progress {
    /// Shows work on this meter.
    pub fn new(meter: impl Meter + 'static) -> Progress {
        Progress(Arc::new(Ending(Box::new(meter))))
    }
}

impl Deref for Progress {
    type Target = dyn Meter;

    fn deref(&self) -> &(dyn Meter + 'static) {
        self.0.0.as_ref()
    }
}

/// What of the work so far survives the end of the process.
#[derive(Clone, Debug)]
pub enum Kept {
    /// Records of a journal.
    Journal {
        /// The journal.
        path: PathBuf,
        /// What its records are.
        unit: String,
        /// How many there will be, where that is known.
        total: Option<usize>,
    },
    /// A training up to an epoch.
    Epochs {
        /// The checkpoint.
        path: PathBuf,
        /// Finished epochs.
        done: usize,
        /// All epochs.
        total: usize,
    },
    /// Finished commands of several: what holds while the one under way has kept nothing yet.
    Steps {
        /// The journal that notes them.
        path: PathBuf,
        /// All commands.
        total: usize,
    },
    /// Nothing, whatever a command inside the command keeps.
    StartsOver,
}

/// A monitor that shows nothing, for work that nobody follows.
#[derive(Debug, Default)]
pub struct Silent(Watch);

impl Monitor for Silent {
    fn detail(&self, _line: &str) {}
    fn note(&self, _line: &str) {}
    fn warning(&self, _line: &str) {}
    fn hint(&self, _hint: &Words) {}
    fn suggestion(&self, _suggestion: &Words) {}

    fn progress(&self, _total: u64, _unit: &'static str) -> Progress {
        Progress::new(Unseen)
    }

    fn counter(&self, _unit: &'static str) -> Progress {
        Progress::new(Unseen)
    }

    fn keep(&self, _kept: Kept) {}

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
struct Unseen;

impl Meter for Unseen {
    fn inc(&self, _n: u64) {}
    fn set_position(&self, _n: u64) {}
    fn set_length(&self, _n: u64) {}
    fn set_message(&self, _message: &str) {}
    fn reset_eta(&self) {}
    fn finish(&self) {}
}
