//! Memory that tasks use one after the other.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

/// Things that nobody uses at the moment: as many are made as there are tasks at a time.
pub(super) struct Spares<T> {
    make: Box<dyn Fn() -> T + Send + Sync>,
    spare: Mutex<Vec<T>>,
}

/// One that is given back when this is dropped.
pub(super) struct Taken<'a, T> {
    from: &'a Spares<T>,
    /// Always there until it is given back.
    item: Option<T>,
}

impl<T> Spares<T> {
    pub fn new(make: impl Fn() -> T + Send + Sync + 'static) -> Spares<T> {
        Spares { make: Box::new(make), spare: Mutex::new(vec![]) }
    }

    pub fn take(&self) -> Taken<'_, T> {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Taken { from: self, item: Some(spare.unwrap_or_else(&self.make)) }
    }
}

impl<T> Deref for Taken<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.item.as_ref().expect("not given back yet")
    }
}

impl<T> DerefMut for Taken<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.item.as_mut().expect("not given back yet")
    }
}

impl<T> Drop for Taken<'_, T> {
    fn drop(&mut self) {
        if let Some(item) = self.item.take() {
            self.from.spare.lock().unwrap_or_else(PoisonError::into_inner).push(item);
        }
    }
}
