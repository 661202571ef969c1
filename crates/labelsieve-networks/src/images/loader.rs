//! Produces items ahead of time, in order, on a separate thread.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

use crate::error::{Error, Result};

/// The items of an iterator, produced ahead of time, with a bounded number waiting. Dropping it stops the thread.
#[derive(Debug)]
pub struct Prefetch<T> {
    /// Dropped first, so that the thread notices.
    items: Option<Receiver<T>>,
    maker: Option<JoinHandle<()>>,
}

impl<T: Send + 'static> Prefetch<T> {
    /// Starts to make the items of `source`, `ahead` of them before the first is asked for.
    pub fn new(source: impl Iterator<Item = T> + Send + 'static, ahead: usize) -> Result<Prefetch<T>> {
        let (sender, items) = sync_channel(ahead);
        let work = move || {
            for item in source {
                if sender.send(item).is_err() {
                    return; // the consumer is gone
                }
            }
        };
        let maker = std::thread::Builder::new().name("prefetch".to_owned()).spawn(work);
        let maker = maker.map_err(|error| Error::Device(format!("cannot start a thread: {error}")))?;
        Ok(Prefetch { items: Some(items), maker: Some(maker) })
    }
}

impl<T> Iterator for Prefetch<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let item = self.items.as_ref().and_then(|items| items.recv().ok());
        if item.is_none()
            && let Some(Err(panic)) = self.maker.take().map(JoinHandle::join)
        {
            std::panic::resume_unwind(panic); // fewer items must not look like all of them
        }
        item
    }
}

impl<T> Drop for Prefetch<T> {
    fn drop(&mut self) {
        self.items.take();
        if let Some(maker) = self.maker.take() {
            let _ = maker.join(); // a panic in discarded work is not reported
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn items_come_in_order_and_all_of_them() {
        for ahead in [0, 1, 7] {
            let items: Vec<usize> = Prefetch::new(0..100, ahead).unwrap().collect();
            assert_eq!(items, (0..100).collect::<Vec<_>>());
        }
    }

    #[test]
    fn no_more_is_made_than_asked_for_and_dropping_ends_it() {
        let made = Arc::new(AtomicUsize::new(0));
        let counter = made.clone();
        let source = (0..).inspect(move |_| {
            counter.fetch_add(1, Ordering::SeqCst);
        });
        let mut items = Prefetch::new(source, 3).unwrap();
        assert_eq!(items.by_ref().take(5).count(), 5);
        drop(items); // returns although the source never ends
        assert!(made.load(Ordering::SeqCst) <= 5 + 3 + 1, "taken, waiting, and one in the hand");
    }

    #[test]
    fn a_panic_in_the_work_reaches_the_taker() {
        let mut items = Prefetch::new((0..3).map(|i| if i == 2 { panic!("at {i}") } else { i }), 1).unwrap();
        assert_eq!((items.next(), items.next()), (Some(0), Some(1)));
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| items.next())).unwrap_err();
        assert_eq!(panic.downcast_ref::<String>().unwrap(), "at 2");
    }
}
