//! A memory budget for decoding and scaling, shared by all threads.
//!
//! A file of a few kilobytes may decode to gigabytes. The limit per image is fixed, so that every machine skips the same
//! images; the limit for all images only decides how many are decoded at a time.

use std::sync::{Condvar, Mutex, OnceLock, PoisonError};

/// The limit for decoding and scaling one image.
pub(super) const MAX_IMAGE_BYTES: u64 = 1 << 30;

/// The share of each thread: enough for photos of ten megapixels.
const PER_THREAD: u64 = 64 << 20;

/// A budget of bytes that threads take and give back.
#[derive(Debug)]
pub(super) struct Budget {
    total: u64,
    free: Mutex<u64>,
    given_back: Condvar,
}

/// Bytes that are given back on drop. A holder must not take more: two of them could deadlock.
#[derive(Debug)]
pub(crate) struct MemoryLease {
    budget: &'static Budget,
    bytes: u64,
}

impl Budget {
    /// The budget of this process: enough for the largest image, and more on machines with many cores.
    pub(super) fn shared() -> &'static Budget {
        static SHARED: OnceLock<Budget> = OnceLock::new();
        SHARED.get_or_init(|| {
            Budget::new(MAX_IMAGE_BYTES.max(PER_THREAD * rayon::current_num_threads() as u64))
        })
    }

    const fn new(total: u64) -> Budget {
        Budget { total, free: Mutex::new(total), given_back: Condvar::new() }
    }

    /// Waits until `bytes` are free, or the whole budget if that is less.
    pub(super) fn take(&'static self, bytes: u64) -> MemoryLease {
        let bytes = bytes.min(self.total);
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let free = self.given_back.wait_while(free, |free| *free < bytes);
        *free.unwrap_or_else(PoisonError::into_inner) -= bytes;
        MemoryLease { budget: self, bytes }
    }
}

impl Drop for MemoryLease {
    fn drop(&mut self) {
        *self.budget.free.lock().unwrap_or_else(PoisonError::into_inner) += self.bytes;
        self.budget.given_back.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn threads_never_hold_more_than_there_is_and_all_get_their_turn() {
        static BUDGET: Budget = Budget::new(100);
        let held = AtomicU64::new(0);
        let most = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for thread in 0..8u64 {
                let held = &held;
                let most = &most;
                scope.spawn(move || {
                    for step in 0..200 {
                        let bytes = 1 + (thread * 37 + step * 11) % 100;
                        let taken = BUDGET.take(bytes);
                        most.fetch_max(held.fetch_add(bytes, Ordering::SeqCst) + bytes, Ordering::SeqCst);
                        held.fetch_sub(bytes, Ordering::SeqCst);
                        drop(taken);
                    }
                });
            }
        });
        assert!(most.load(Ordering::SeqCst) <= 100);
        assert_eq!(*BUDGET.free.lock().unwrap(), 100);
    }

    #[test]
    fn more_than_there_is_counts_as_all_of_it() {
        static BUDGET: Budget = Budget::new(10);
        let taken = BUDGET.take(u64::MAX);
        assert_eq!(*BUDGET.free.lock().unwrap(), 0);
        drop(taken);
        assert_eq!(*BUDGET.free.lock().unwrap(), 10);
    }
}
