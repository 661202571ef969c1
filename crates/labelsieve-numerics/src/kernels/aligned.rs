//! Arrays aligned to cache lines.

use std::ops::{Deref, DerefMut, Range};

use crate::error::Result;
use crate::scratch::{Access, Array, OptionalScratch};

/// Floats that start at a cache line. A vector register is as wide as a line, so an unaligned load would touch two.
pub struct Aligned {
    numbers: Array<f32>,
    start: usize,
    len: usize,
}

impl Aligned {
    /// `len` zeros in memory.
    pub fn zeros(len: usize) -> Aligned {
        Aligned::zeros_in(None, len).expect("memory")
    }

    /// As [`Aligned::zeros`], in a scratch space if there is one.
    pub fn zeros_in(scratch: OptionalScratch, len: usize) -> Result<Aligned> {
        const LINE: usize = 64;
        let numbers: Array<f32> = Array::zeros(scratch, len + LINE / size_of::<f32>())?;
        let start = numbers.as_ptr().align_offset(LINE).min(LINE / size_of::<f32>());
        Ok(Aligned { numbers, start, len })
    }

    /// As [`BorrowedArray::fetch`](crate::scratch::BorrowedArray::fetch).
    pub fn fetch(&self, part: Range<usize>) {
        self.numbers.fetch(self.start + part.start..self.start + part.end);
    }

    /// As [`BorrowedArray::expect`](crate::scratch::BorrowedArray::expect).
    pub fn expect(&self, access: Access) {
        self.numbers.expect(access);
    }

    /// As [`BorrowedArray::release`](crate::scratch::BorrowedArray::release).
    pub fn release(&self, part: Range<usize>) {
        self.numbers.release(self.start + part.start..self.start + part.end);
    }
}

impl Deref for Aligned {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.numbers[self.start..self.start + self.len]
    }
}

impl DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.numbers[self.start..self.start + self.len]
    }
}

impl Clone for Aligned {
    fn clone(&self) -> Aligned {
        let mut copy = Aligned::zeros(self.len);
        copy.copy_from_slice(self);
        copy
    }
}

impl FromIterator<f32> for Aligned {
    fn from_iter<I: IntoIterator<Item = f32>>(numbers: I) -> Aligned {
        let numbers: Vec<f32> = numbers.into_iter().collect();
        let mut aligned = Aligned::zeros(numbers.len());
        aligned.copy_from_slice(&numbers);
        aligned
    }
}
