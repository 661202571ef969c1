//! A pool of reusable buffers.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

/// A pool of reusable buffers: it grows to the number of concurrent tasks.
pub(super) struct BufferPool<T> {
    make: Box<dyn Fn() -> T + Send + Sync>,
    spare: Mutex<Vec<T>>,
}

/// A buffer that returns to the pool on drop.
pub(super) struct PooledBuffer<'a, T> {
    from: &'a BufferPool<T>,
    /// Always there until it is given back.
    item: Option<T>,
}

impl<T> BufferPool<T> {
    pub fn new(make: impl Fn() -> T + Send + Sync + 'static) -> BufferPool<T> {
        BufferPool { make: Box::new(make), spare: Mutex::new(vec![]) }
    }

    pub fn take(&self) -> PooledBuffer<'_, T> {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        PooledBuffer { from: self, item: Some(spare.unwrap_or_else(&self.make)) }
    }
}

impl<T> Deref for PooledBuffer<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.item.as_ref().expect("not given back yet")
    }
}

impl<T> DerefMut for PooledBuffer<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.item.as_mut().expect("not given back yet")
    }
}

impl<T> Drop for PooledBuffer<'_, T> {
    fn drop(&mut self) {
        if let Some(item) = self.item.take() {
            self.from.spare.lock().unwrap_or_else(PoisonError::into_inner).push(item);
        }
    }
}
