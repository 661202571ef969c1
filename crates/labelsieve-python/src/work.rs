//! Long work as a guest of the interpreter: other Python threads run, Ctrl-C is obeyed, progress is reported.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use labelsieve_numerics::Watch;
use labelsieve_numerics::level::Level;
use pyo3::prelude::*;

use crate::errors::{internal_error, value_error};
use crate::process;

/// How often the interpreter is asked for signals, and the user's callback called.
const GLANCE: Duration = Duration::from_millis(50);

/// Work on rows that can be followed and stopped.
pub struct Task {
    watch: Watch,
    total: usize,
}

impl Task {
    /// Work on this number of rows; 0 if it does not count them.
    pub fn new(total: usize) -> Task {
        Task { watch: Watch::new(), total }
    }

    /// The watch that follows and stops it.
    pub fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Rows done, never more than announced.
    fn done(&self) -> usize {
        self.watch.done().min(self.total)
    }
}

/// Does `work` and calls `progress(done, total)` meanwhile. At the end all rows are reported as done, even if the work
/// counted fewer, e.g. because a graph was there already.
pub fn run<R: Send>(
    py: Python<'_>,
    task: &Task,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce() -> R + Send,
) -> PyResult<R> {
    let progress = progress.filter(|_| task.total > 0);
    let mut reported = None;
    let mut report = |done: usize| match progress {
        Some(progress) if reported != Some(done) => {
            progress.call1((done, task.total))?;
            reported = Some(done);
            Ok(())
        }
        _ => Ok(()),
    };
    let result = attended(py, &task.watch, &mut || report(task.done()), work)?;
    report(task.total)?;
    Ok(result)
}

/// Does `work` with this process's threads, detached from the interpreter, with regular checks: a signal (Ctrl-C)
/// or an exception of `check` stops the work by its watch and is raised once it has ended.
pub fn attended<R: Send>(
    py: Python<'_>,
    watch: &Watch,
    check: &mut dyn FnMut() -> PyResult<()>,
    work: impl FnOnce() -> R + Send,
) -> PyResult<R> {
    Level::from_environment().map_err(value_error)?; // a level that is not there is refused, not replaced
    let pool = process::pool(py)?;
    let mut exception = None;
    let (sender, mut receiver) = channel();
    let result = std::thread::scope(|scope| {
        scope.spawn(move || {
            let result = catch_unwind(AssertUnwindSafe(|| pool.install(work)));
            let _ = sender.send(result); // the receiver outlives this thread
        });
        loop {
            let waiting = &mut receiver;
            match py.detach(move || waiting.recv_timeout(GLANCE)) {
                Ok(result) => break result,
                Err(RecvTimeoutError::Disconnected) => unreachable!("the thread always sends"),
                Err(RecvTimeoutError::Timeout) if exception.is_some() => (), // it is on its way out
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(raised) = py.check_signals().and_then(|()| check()) {
                        watch.stop();
                        exception = Some(raised);
                    }
                }
            }
        }
    });
    if let Some(raised) = exception {
        return Err(raised);
    }
    let result = result.map_err(internal_error)?;
    process::warn_of_notices(py)?;
    Ok(result)
}
