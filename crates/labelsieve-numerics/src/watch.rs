//! Lets a caller follow running work and stop it early.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::error::{Error, Result};

/// Shared with work under way: it counts what is done, and asks the work to stop.
///
/// The method has no clock and calls nobody back; a front end looks at the count when it likes.
#[derive(Debug, Default)]
pub struct Watch {
    stopped: AtomicBool,
    done: AtomicUsize,
}

static UNWATCHED: Watch = Watch::new();

impl Watch {
    /// Nothing done, nothing to be stopped.
    pub const fn new() -> Watch {
        Watch { stopped: AtomicBool::new(false), done: AtomicUsize::new(0) }
    }

    /// A watch for work that is neither followed nor stopped.
    pub fn unwatched() -> &'static Watch {
        &UNWATCHED
    }

    /// Asks the work to end with [`Error::Stopped`] soon: after the block or the iteration under way.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether the work was asked to end.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// An error once the work was asked to end.
    pub fn check(&self) -> Result<()> {
        if self.is_stopped() { Err(Error::Stopped) } else { Ok(()) }
    }

    /// Rows done so far; a row counts once for its neighbours and once for the training, where there are such.
    pub fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    /// One of `n_parts` equal parts of a pass over `n_rows` rows is done. All parts together add up to `n_rows`.
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
