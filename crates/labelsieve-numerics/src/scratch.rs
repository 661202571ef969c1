//! Storage for the large arrays of a class: memory, or a scratch space whose pages are loaded and released.

use std::fmt;
use std::ops::{Deref, DerefMut, Range};

use crate::error::Result;

/// Numbers owned elsewhere: a numpy array, a mapped file.
pub trait BorrowedArray<T>: AsRef<[T]> + Send + Sync {
    /// Hints that these numbers will be read soon.
    fn fetch(&self, _part: Range<usize>) {}

    /// Hints at how the numbers will be accessed from now on.
    fn expect(&self, _access: Access) {}

    /// Hints that these numbers are not needed for a while. They keep their values but may leave memory.
    fn release(&self, _part: Range<usize>) {}
}

impl<T: Send + Sync> BorrowedArray<T> for Vec<T> {}

/// The order in which an array is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Sequential, so that read-ahead pays.
    InOrder,
    /// Random, so that read-ahead does not pay.
    Scattered,
}

/// A mutable [`BorrowedArray`].
pub trait Pages<T>: BorrowedArray<T> + AsMut<[T]> {}

impl<T: Send + Sync> Pages<T> for Vec<T> {}

/// Space for arrays that exceed memory. The method touches no files, so its caller provides this.
pub trait Scratch: Send + Sync {
    /// A zeroed array of floats.
    fn floats(&self, len: usize) -> Result<Box<dyn Pages<f32>>>;

    /// A zeroed array of indices.
    fn indices(&self, len: usize) -> Result<Box<dyn Pages<u32>>>;

    /// Bytes of memory that scoring a class may use in addition to those its caller holds.
    fn memory(&self) -> usize;
}

/// The scratch space for new arrays; memory if there is none.
pub type OptionalScratch<'a> = Option<&'a dyn Scratch>;

/// Bytes of a streamed array that are in use at a time.
const STREAMED: usize = 4 << 20;

/// An array in memory or in a scratch space.
pub enum Array<T: 'static> {
    /// In memory.
    Memory(Vec<T>),
    /// In a scratch space.
    Scratch(Box<dyn Pages<T>>),
}

/// An element type of arrays.
pub trait Element: Copy + Default + Send + Sync + 'static {
    /// A zeroed array in a scratch space.
    fn pages(scratch: &dyn Scratch, len: usize) -> Result<Box<dyn Pages<Self>>>;
}

impl Element for f32 {
    fn pages(scratch: &dyn Scratch, len: usize) -> Result<Box<dyn Pages<f32>>> {
        scratch.floats(len)
    }
}

impl Element for u32 {
    fn pages(scratch: &dyn Scratch, len: usize) -> Result<Box<dyn Pages<u32>>> {
        scratch.indices(len)
    }
}

impl<T: Element> Array<T> {
    /// A zeroed array.
    pub fn zeros(scratch: OptionalScratch, len: usize) -> Result<Array<T>> {
        match scratch {
            Some(scratch) if len > 0 => Ok(Array::Scratch(T::pages(scratch, len)?)),
            _ => Ok(Array::Memory(vec![T::default(); len])),
        }
    }
}

impl<T> Array<T> {
    /// As [`BorrowedArray::fetch`].
    pub fn fetch(&self, part: Range<usize>) {
        if let Array::Scratch(pages) = self {
            pages.fetch(part);
        }
    }

    /// As [`BorrowedArray::expect`].
    pub fn expect(&self, access: Access) {
        if let Array::Scratch(pages) = self {
            pages.expect(access);
        }
    }

    /// As [`BorrowedArray::release`].
    pub fn release(&self, part: Range<usize>) {
        if let Array::Scratch(pages) = self {
            pages.release(part);
        }
    }
}

/// Splits rows `0..n` of `row_bytes` each into stretches of about `bytes`, to be processed and released in turn.
pub fn stretches(n: usize, row_bytes: usize, bytes: usize) -> impl Iterator<Item = Range<usize>> {
    let rows = (bytes / row_bytes.max(1)).max(1).next_multiple_of(64);
    (0..n).step_by(rows).map(move |start| start..(start + rows).min(n))
}

/// [`stretches`] of the usual size, for passes over an array.
pub fn streamed(n: usize, row_bytes: usize) -> impl Iterator<Item = Range<usize>> {
    stretches(n, row_bytes, STREAMED)
}

impl<T> Deref for Array<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        match self {
            Array::Memory(numbers) => numbers,
            Array::Scratch(pages) => (**pages).as_ref(),
        }
    }
}

impl<T> DerefMut for Array<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Array::Memory(numbers) => numbers,
            Array::Scratch(pages) => (**pages).as_mut(),
        }
    }
}

impl<T> From<Vec<T>> for Array<T> {
    fn from(numbers: Vec<T>) -> Array<T> {
        Array::Memory(numbers)
    }
}

/// The clone is in memory.
impl<T: Clone> Clone for Array<T> {
    fn clone(&self) -> Array<T> {
        Array::Memory(self.to_vec())
    }
}

impl<T: PartialEq> PartialEq for Array<T> {
    fn eq(&self, other: &Array<T>) -> bool {
        **self == **other
    }
}

impl<T: fmt::Debug> fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
