//! Progress and cancellation of running work.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::error::{Error, Result};

/// Counts the rows that running work has done, and cancels the work.
///
/// The method has no clock and takes no progress callback; a front end polls the count.
#[derive(Debug, Default)]
pub struct Watch {
    stopped: AtomicBool,
    done: AtomicUsize,
}

static UNWATCHED: Watch = Watch::new();

impl Watch {
    /// A watch at zero that is not stopped.
    pub const fn new() -> Watch {
        Watch { stopped: AtomicBool::new(false), done: AtomicUsize::new(0) }
    }

    /// A shared watch for work without progress or cancellation.
    pub fn unwatched() -> &'static Watch {
        &UNWATCHED
    }

    /// Cancels the work: it ends with [`Error::Stopped`] after the current block or iteration.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether [`Watch::stop`] was called.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// [`Error::Stopped`] after [`Watch::stop`].
    pub fn check(&self) -> Result<()> {
        if self.is_stopped() { Err(Error::Stopped) } else { Ok(()) }
    }

    /// Rows done so far; a row counts once for the search and once for the training, if the work includes them.
    pub fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    /// Counts part `part` of `n_parts` equal parts of a pass over `n_rows` rows. All parts add up to `n_rows`.
    pub fn advance(&self, part: usize, n_parts: usize, n_rows: usize) {
        let upto = |part: usize| (part as u128 * n_rows as u128 / n_parts.max(1) as u128) as usize;
        self.done.fetch_add(upto(part + 1) - upto(part), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_to_the_whole_in_any_order() {
        for (n_parts, n_rows) in [(1, 7), (3, 100), (7, 3), (100, 12_345)] {
            let watch = Watch::new();
            (0..n_parts).rev().for_each(|part| watch.advance(part, n_parts, n_rows));
            assert_eq!(watch.done(), n_rows);
        }
    }
}
