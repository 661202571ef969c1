//! A review as a call: it answers a browser until Ctrl-C.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use labelsieve_cli::options::ReviewOptions;
use labelsieve_cli::review::{ClosedReview, OpenReview};
use labelsieve_files::work::{Monitor, Result};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::jobs::{json, parsed};
use crate::monitor;
use crate::spelling::call;

/// How long the server may outlast Ctrl-C unnoticed.
const GLANCE: Duration = Duration::from_millis(50);

/// Opens a review, calls `opened` with the address of its page, and answers until Ctrl-C. Ctrl-C before the review is open is
/// an exception, as in other jobs.
#[pyfunction]
pub fn run_review<'py>(
    py: Python<'py>,
    options: Bound<'py, PyDict>,
    opened: Bound<'py, PyAny>,
) -> PyResult<String> {
    let options: ReviewOptions = parsed(py, &options)?;
    let url = Slot::default();
    let closed = Slot::default();
    let mut announce = || match url.take() {
        Some(url) => opened.call1((url,)).map(drop),
        None => Ok(()),
    };
    let answered = monitor::run_with_check(py, None, &mut announce, |monitor| {
        let review = options.open(call, monitor)?;
        url.set(review.url().to_owned());
        closed.set(answer(review, monitor)?);
        Ok(())
    });
    match (answered, closed.take()) {
        (Err(error), Some(closed)) if error.is_instance_of::<PyKeyboardInterrupt>(py) => json(&closed),
        (Ok(()), Some(closed)) => json(&closed),
        (answered, _) => answered.map(|()| String::new()),
    }
}

/// Answers until the monitor's watch stops the work.
fn answer(review: OpenReview, monitor: &dyn Monitor) -> Result<ClosedReview> {
    let stop = review.stop();
    std::thread::scope(|scope| {
        let serving = scope.spawn(move || review.run());
        while !serving.is_finished() {
            if monitor.watch().is_stopped() {
                stop.stop();
            }
            std::thread::sleep(GLANCE);
        }
        serving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// A value that one thread leaves for another.
struct Slot<T>(Mutex<Option<T>>);

impl<T> Default for Slot<T> {
    fn default() -> Slot<T> {
        Slot(Mutex::new(None))
    }
}

impl<T> Slot<T> {
    fn set(&self, value: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
    }

    fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
