//! Long work as a guest of the interpreter: other Python threads run, Ctrl-C is obeyed, progress is reported.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use labelsieve::Watch;
use labelsieve::level::Level;
use pyo3::prelude::*;

use crate::errors::{internal_error, method_error};
use crate::process;

/// How often the interpreter is asked for signals, and the user's callback called.
const GLANCE: Duration = Duration::from_millis(50);

/// Work that can be followed and stopped: one watch and one number of rows for each of its parts.
pub struct Tasks {
    watches: Vec<Watch>,
    totals: Vec<usize>,
}

impl Tasks {
    /// Parts with their numbers of rows.
    pub fn new(totals: Vec<usize>) -> Tasks {
        Tasks { watches: totals.iter().map(|_| Watch::new()).collect(), totals }
    }

    /// The watch of one part.
    pub fn watch(&self, part: usize) -> &Watch {
        &self.watches[part]
    }

    fn total(&self) -> usize {
        self.totals.iter().sum()
    }

    /// Rows done, never more than announced: a part that finds its graph ready, say, counts less.
    fn done(&self) -> usize {
        self.watches.iter().zip(&self.totals).map(|(watch, &total)| watch.done().min(total)).sum()
    }

    fn stop(&self) {
        self.watches.iter().for_each(Watch::stop);
    }
}

/// Does `work` with this process's threads, detached from the interpreter, with regular checks: a signal (Ctrl-C)
/// or an exception of `progress(done, total)` stops the tasks and is raised once they have ended.
pub fn run<R: Send>(
    py: Python<'_>,
    tasks: &Tasks,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce() -> R + Send,
) -> PyResult<R> {
    Level::from_environment().map_err(method_error)?; // a level that is not there is refused, not replaced
    let pool = process::pool(py)?;
    let mut exception = None;
    let mut reported = None;
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
                    let seen = py.check_signals().and_then(|()| report(tasks, progress, &mut reported));
                    if let Err(raised) = seen {
                        tasks.stop();
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
    if let Some(progress) = progress.filter(|_| tasks.total() > 0 && reported != Some(tasks.total())) {
        progress.call1((tasks.total(), tasks.total()))?;
    }
    Ok(result)
}

/// Calls `progress` when something has changed.
fn report(tasks: &Tasks, progress: Option<&Bound<'_, PyAny>>, reported: &mut Option<usize>) -> PyResult<()> {
    let Some(progress) = progress else { return Ok(()) };
    let done = tasks.done();
    if *reported != Some(done) && tasks.total() > 0 {
        progress.call1((done, tasks.total()))?;
        *reported = Some(done);
    }
    Ok(())
}
