//! A vector aligned to cache lines, so that no AVX-512 load touches two lines.
#![expect(unsafe_code, reason = "lines of sixteen numbers are seen as numbers")]

use std::ops::{Deref, DerefMut};

/// A line of the cache.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line([f32; 16]);

/// Cache-aligned numbers, as a slice.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers {
    lines: Vec<Line>,
    len: usize,
}

impl Numbers {
    pub fn zeros(len: usize) -> Numbers {
        Numbers { lines: vec![Line([0.0; 16]); len.div_ceil(16)], len }
    }

    /// Resizes to `len` numbers; new ones have unspecified values.
    pub fn resize(&mut self, len: usize) {
        self.lines.resize(len.div_ceil(16), Line([0.0; 16]));
        self.len = len;
    }
}

impl From<&[f32]> for Numbers {
    fn from(values: &[f32]) -> Numbers {
        let mut numbers = Numbers::zeros(values.len());
        numbers.copy_from_slice(values);
        numbers
    }
}

impl Deref for Numbers {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        // SAFETY: lines are numbers without gaps, and there are at least `len` of them.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl DerefMut for Numbers {
    fn deref_mut(&mut self) -> &mut [f32] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

/// Compares as slices.
impl PartialEq for Numbers {
    fn eq(&self, other: &Numbers) -> bool {
        self[..] == other[..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_many_as_asked_for_and_begin_a_line() {
        for n in [0, 1, 16, 17, 1000] {
            let values: Vec<f32> = (0..n).map(|i| i as f32).collect();
            let numbers = Numbers::from(&values[..]);
            assert_eq!(&numbers[..], &values[..]);
            assert_eq!(numbers.clone().as_ptr() as usize % 64, 0);
            let mut fewer = numbers;
            fewer.resize(n / 2);
            assert_eq!(&fewer[..], &values[..n / 2]);
        }
    }
}
