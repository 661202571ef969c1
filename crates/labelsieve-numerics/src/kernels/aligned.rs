//! Numbers that start where a line of the cache does.

use std::ops::{Deref, DerefMut, Range};

use crate::error::Result;
use crate::scratch::{Access, Array, OptionalScratch};

/// Zeros at first. A vector register is as wide as a line, so one loaded from elsewhere would take two of them.
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
    pub fn zeros_in(place: OptionalScratch, len: usize) -> Result<Aligned> {
        const LINE: usize = 64;
        let numbers: Array<f32> = Array::zeros(place, len + LINE / size_of::<f32>())?;
        let start = numbers.as_ptr().align_offset(LINE).min(LINE / size_of::<f32>());
        Ok(Aligned { numbers, start, len })
    }

    /// Says that these numbers will be read soon.
    pub fn fetch(&self, part: Range<usize>) {
        self.numbers.fetch(self.start + part.start..self.start + part.end);
    }

    /// Says how they will be read and written from now on.
    pub fn expect(&self, access: Access) {
        self.numbers.expect(access);
    }

    /// Says that these numbers are not needed for a while.
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
