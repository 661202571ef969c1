//! How a job of the pipeline is followed from Python: notes go to `logging`, warnings to `warnings`, progress to the
//! user's callback.
//!
//! A job runs on threads that are detached from the interpreter. Its messages are queued, and passed on by the thread
//! that called it at its regular checks.

use std::collections::VecDeque;
use std::ffi::CString;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use labelsieve_files::work::{Meter, Monitor, Progress, SavedWork, Words};
use labelsieve_numerics::Watch;
use pyo3::exceptions::{PyRuntimeWarning, PyUserWarning};
use pyo3::intern;
use pyo3::prelude::*;

use crate::errors::job_error;
use crate::spelling::PythonSpelling;
use crate::work::attended;

/// The frame of the user: its function of the package, and `_run`, which they all go through, are in between.
const STACK_LEVEL: i32 = 3;

/// Runs a job. `progress.begin(unit)` is called for each stretch of work, then `progress(done, total)`.
pub fn run<R: Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    job: impl FnOnce(&dyn Monitor) -> labelsieve_files::work::Result<R> + Send,
) -> PyResult<R> {
    run_with_check(py, progress, &mut || Ok(()), job)
}

/// Runs a job, with a further check by the thread that called.
pub fn run_with_check<R: Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    check: &mut dyn FnMut() -> PyResult<()>,
    job: impl FnOnce(&dyn Monitor) -> labelsieve_files::work::Result<R> + Send,
) -> PyResult<R> {
    let session = Session::default();
    let mut reported = ProgressReport::default();
    let result = attended(
        py,
        &session.watch,
        &mut || {
            session.messages.pass_on(py, Hints::Expected)?;
            check()?;
            reported.report(&session.stretches, progress, JobState::Running)
        },
        || job(&session),
    )?;
    session.messages.pass_on(py, Hints::Complete)?;
    if result.is_ok() {
        reported.report(&session.stretches, progress, JobState::Finished)?;
    }
    result.map_err(job_error)
}

/// One job under way.
#[derive(Default)]
struct Session {
    watch: Watch,
    messages: Messages,
    stretches: Mutex<VecDeque<Arc<Stretch>>>,
}

/// Messages that are not yet passed on.
#[derive(Clone, Default)]
struct Messages(Arc<Mutex<Queue>>);

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Message>,
    /// Whether the last message has waited for a hint already.
    has_waited: bool,
}

enum Message {
    Detail(String),
    Note(String),
    Warning(String),
    /// A notice of a device.
    OfDevice(String),
}

/// Whether more may be said about the last warning.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hints {
    Expected,
    Complete,
}

impl Messages {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, message: Message) {
        let mut queue = self.queue();
        queue.waiting.push_back(message);
        queue.has_waited = false;
    }

    /// Adds a line to the last message, if that is a warning.
    fn append(&self, line: &str) -> bool {
        let mut queue = self.queue();
        let last = queue.waiting.back_mut();
        let Some(Message::Warning(warning)) = last else { return false };
        warning.push('\n');
        warning.push_str(line);
        true
    }

    /// Passes all messages on; a warning at the end waits for its hint until the next check.
    fn pass_on(&self, py: Python<'_>, hints: Hints) -> PyResult<()> {
        loop {
            let mut queue = self.queue();
            let is_last = queue.waiting.len() == 1;
            if hints == Hints::Expected
                && is_last
                && !queue.has_waited
                && let Some(Message::Warning(_)) = queue.waiting.front()
            {
                queue.has_waited = true;
                return Ok(());
            }
            let Some(message) = queue.waiting.pop_front() else { return Ok(()) };
            drop(queue); // Python code may take its time
            message.pass_on(py)?;
        }
    }
}

impl Message {
    fn pass_on(&self, py: Python<'_>) -> PyResult<()> {
        let warn = |category: Bound<'_, PyAny>, text: &str| {
            let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
            PyErr::warn(py, &category, &text, STACK_LEVEL)
        };
        match self {
            Message::Detail(line) => log(py, intern!(py, "debug"), line),
            Message::Note(line) => log(py, intern!(py, "info"), line),
            Message::Warning(text) => warn(py.get_type::<PyUserWarning>().into_any(), text),
            Message::OfDevice(text) => warn(py.get_type::<PyRuntimeWarning>().into_any(), text),
        }
    }
}

/// A line to the logger of the package.
fn log(py: Python<'_>, level: &Bound<'_, pyo3::types::PyString>, line: &str) -> PyResult<()> {
    let logging = py.import(intern!(py, "logging"))?;
    let logger = logging.call_method1(intern!(py, "getLogger"), (intern!(py, "labelsieve"),))?;
    logger.call_method1(level, ("%s", line))?;
    Ok(())
}

impl Monitor for Session {
    fn detail(&self, line: &str) {
        self.messages.push(Message::Detail(line.to_owned()));
    }

    /// An indented line belongs to the warning before it.
    fn note(&self, line: &str) {
        if !(line.starts_with("  ") && self.messages.append(line)) {
            self.messages.push(Message::Note(line.to_owned()));
        }
    }

    fn warning(&self, line: &str) {
        self.messages.push(Message::Warning(line.to_owned()));
    }

    fn suggestion(&self, suggestion: &Words) {
        self.messages.push(Message::Note(format!("hint: {}", suggestion.spelled(&PythonSpelling))));
    }

    fn hint(&self, hint: &Words) {
        let line = format!("hint: {}", hint.spelled(&PythonSpelling));
        if !self.messages.append(&line) {
            self.messages.push(Message::Note(line));
        }
    }

    fn progress(&self, total: u64, unit: &'static str) -> Progress {
        let stretch = Arc::new(Stretch { unit, total: total.into(), done: AtomicU64::new(0) });
        let mut stretches = self.stretches.lock().unwrap_or_else(PoisonError::into_inner);
        stretches.push_back(stretch.clone());
        Progress::new(Gauge(stretch))
    }

    /// Of unknown length: there is no total to report.
    fn counter(&self, unit: &'static str) -> Progress {
        self.progress(0, unit)
    }

    /// The exception tells the user that the work ended early; the next run finds what is kept.
    fn keep(&self, _kept: SavedWork) {}

    fn stdout(&self) -> Box<dyn Write + Send> {
        Box::new(NoStdout)
    }

    fn watch(&self) -> &Watch {
        &self.watch
    }

    fn warn_later(&self) -> Box<dyn Fn(&str) + Send + Sync> {
        let messages = self.messages.clone();
        Box::new(move |text| messages.push(Message::OfDevice(text.to_owned())))
    }
}

/// The functions write to files only.
struct NoStdout;

impl Write for NoStdout {
    fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Work from 0 to its own total.
struct Stretch {
    unit: &'static str,
    total: AtomicU64,
    done: AtomicU64,
}

/// Counts a stretch.
struct Gauge(Arc<Stretch>);

impl Meter for Gauge {
    fn inc(&self, n: u64) {
        self.0.done.fetch_add(n, Ordering::Relaxed);
    }

    fn set_position(&self, n: u64) {
        self.0.done.store(n, Ordering::Relaxed);
    }

    fn set_length(&self, n: u64) {
        self.0.total.store(n, Ordering::Relaxed);
    }

    fn set_message(&self, _message: &str) {}
    fn reset_eta(&self) {}
    fn finish(&self) {}
}

/// Whether the last stretch has reached its total, whatever it counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JobState {
    Running,
    Finished,
}

/// The last report to the user's callback.
#[derive(Default)]
struct ProgressReport {
    begun: bool,
    last: Option<(u64, u64)>,
}

impl ProgressReport {
    /// Reports how far the stretches have come, one after the other.
    fn report(
        &mut self,
        stretches: &Mutex<VecDeque<Arc<Stretch>>>,
        progress: Option<&Bound<'_, PyAny>>,
        state: JobState,
    ) -> PyResult<()> {
        let Some(progress) = progress else { return Ok(()) };
        loop {
            let (stretch, is_last) = {
                let stretches = stretches.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(first) = stretches.front() else { return Ok(()) };
                (first.clone(), stretches.len() == 1)
            };
            self.report_stretch(&stretch, progress, if is_last { state } else { JobState::Finished })?;
            if is_last {
                return Ok(());
            }
            *self = ProgressReport::default();
            stretches.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        }
    }

    fn report_stretch(
        &mut self,
        stretch: &Stretch,
        progress: &Bound<'_, PyAny>,
        state: JobState,
    ) -> PyResult<()> {
        let total = stretch.total.load(Ordering::Relaxed);
        let done = match state {
            JobState::Running => stretch.done.load(Ordering::Relaxed).min(total),
            JobState::Finished => total,
        };
        if total == 0 || self.last == Some((done, total)) {
            return Ok(());
        }
        if !self.begun {
            progress.call_method1(intern!(progress.py(), "begin"), (stretch.unit,))?;
            self.begun = true;
        }
        progress.call1((done, total))?;
        self.last = Some((done, total));
        Ok(())
    }
}
