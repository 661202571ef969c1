//! Where the large arrays of a class lie: in memory, or in a scratch space whose pages come and go.

use std::fmt;
use std::ops::{Deref, DerefMut, Range};

use crate::error::Result;

/// Numbers owned elsewhere: a numpy array, a mapped file.
pub trait Lent<T>: AsRef<[T]> + Send + Sync {
    /// Says that these numbers will be read soon.
    fn fetch(&self, _part: Range<usize>) {}

    /// Says how they will be read and written from now on.
    fn expect(&self, _access: Access) {}

    /// Says that these numbers are not needed for a while. They stay as they are, but may leave memory.
    fn release(&self, _part: Range<usize>) {}
}

impl<T: Send + Sync> Lent<T> for Vec<T> {}

/// Which numbers of an array follow which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// One after the other, so that it pays to read more than is asked for.
    InOrder,
    /// Anywhere: what is asked for, and no more.
    Scattered,
}

/// Numbers owned elsewhere that may be changed.
pub trait Pages<T>: Lent<T> + AsMut<[T]> {}

impl<T: Send + Sync> Pages<T> for Vec<T> {}

/// Space for arrays that memory does not hold. The method touches no files: whoever scores a class provides this.
pub trait Scratch: Send + Sync {
    /// An array of zeros.
    fn floats(&self, len: usize) -> Result<Box<dyn Pages<f32>>>;

    /// An array of zeros.
    fn indices(&self, len: usize) -> Result<Box<dyn Pages<u32>>>;

    /// Bytes of memory that the work on a class may take beside what its caller holds.
    fn memory(&self) -> usize;
}

/// Where new arrays go: a scratch space, or memory if there is none.
pub type OptionalScratch<'a> = Option<&'a dyn Scratch>;

/// Bytes of a streamed array that are in use at a time.
const STREAMED: usize = 4 << 20;

/// Numbers of an array, here or in a scratch space.
pub enum Array<T: 'static> {
    /// In memory.
    Memory(Vec<T>),
    /// In a scratch space.
    Scratch(Box<dyn Pages<T>>),
}

/// What arrays are made of.
pub trait Element: Copy + Default + Send + Sync + 'static {
    /// Zeros in a scratch space.
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
    /// Zeros.
    pub fn zeros(place: OptionalScratch, len: usize) -> Result<Array<T>> {
        match place {
            Some(scratch) if len > 0 => Ok(Array::Scratch(T::pages(scratch, len)?)),
            _ => Ok(Array::Memory(vec![T::default(); len])),
        }
    }
}

impl<T> Array<T> {
    /// As [`Lent::fetch`].
    pub fn fetch(&self, part: Range<usize>) {
        if let Array::Scratch(pages) = self {
            pages.fetch(part);
        }
    }

    /// As [`Lent::expect`].
    pub fn expect(&self, access: Access) {
        if let Array::Scratch(pages) = self {
            pages.expect(access);
        }
    }

    /// As [`Lent::release`].
    pub fn release(&self, part: Range<usize>) {
        if let Array::Scratch(pages) = self {
            pages.release(part);
        }
    }
}

/// Rows `0..n` in stretches that are worked on, and released, one after the other, if each row has so many bytes.
pub fn stretches(n: usize, row_bytes: usize, bytes: usize) -> impl Iterator<Item = Range<usize>> {
    let rows = (bytes / row_bytes.max(1)).max(1).next_multiple_of(64);
    (0..n).step_by(rows).map(move |start| start..(start + rows).min(n))
}

/// [`stretches`] for passes over an array.
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

/// A copy is in memory.
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
