//! Features: examples as rows of unit length.

use std::ops::{Deref, Range};
use std::sync::Arc;

use labelsieve_numerics::kernels::RowSlice;
use labelsieve_numerics::scratch::{Access, BorrowedArray, Pages, Scratch, streamed};

use crate::error::{Error, Result};

/// N examples of d numbers each, row by row. Every row has unit length; a row of zeros stays zero.
///
/// The constructors guarantee that, so no other code checks for NaN, infinities or lengths.
#[derive(Clone, Debug, PartialEq)]
pub struct Features {
    data: Numbers,
    dim: usize,
    n_zero: usize,
}

/// Memory owned elsewhere, e.g. a numpy array.
pub type SharedNumbers = Arc<dyn BorrowedArray<f32>>;

/// Rows whose length differs from 1 by at most this, a few roundings of `f32`, are left unchanged, so that normalising twice
/// changes nothing and rows in shared memory need no copy.
const UNIT: f64 = 1e-6;

impl Features {
    /// Normalises `data`, which holds rows of `dim` numbers one after the other.
    pub fn new(mut data: Vec<f32>, dim: usize) -> Result<Features> {
        check_shape(&data, dim)?;
        let n_zero = normalise(&mut data, dim, 0)?;
        Ok(Features { data: Numbers::Owned(data), dim, n_zero })
    }

    /// As [`Features::new`], for rows in a scratch space.
    pub fn in_pages(mut data: Box<dyn Pages<f32>>, dim: usize) -> Result<Features> {
        check_shape((*data).as_ref(), dim)?;
        let mut n_zero = 0;
        for rows in streamed((*data).as_ref().len() / dim, dim * size_of::<f32>()) {
            let part = rows.start * dim..rows.end * dim;
            n_zero += normalise(&mut (*data).as_mut()[part.clone()], dim, rows.start)?;
            data.release(part);
        }
        Ok(Features::moved(data, dim, n_zero))
    }

    /// Rows of another `Features` that were moved to a scratch space, `n_zero` of them zero.
    pub(crate) fn moved(data: Box<dyn Pages<f32>>, dim: usize, n_zero: usize) -> Features {
        let data: Arc<dyn Pages<f32>> = Arc::from(data);
        Features { data: Numbers::Shared(data), dim, n_zero }
    }

    /// Uses rows in place if each has unit length already, else a normalised copy. The features are the same either way. The
    /// owner must not change the numbers while they are in use.
    pub fn shared(data: SharedNumbers, dim: usize) -> Result<Features> {
        match Features::lent(Arc::clone(&data), dim)? {
            Some(features) => Ok(features),
            None => Features::new((*data).as_ref().to_vec(), dim),
        }
    }

    /// Uses rows in place; none unless each has unit length already.
    pub fn lent(data: SharedNumbers, dim: usize) -> Result<Option<Features>> {
        let values = (*data).as_ref();
        check_shape(values, dim)?;
        let mut n_zero = 0;
        for rows in streamed(values.len() / dim, dim * size_of::<f32>()) {
            for row in rows.clone() {
                let length = length_of(row, &values[row * dim..(row + 1) * dim])?;
                n_zero += usize::from(length == 0.0);
                if !is_settled(length) {
                    return Ok(None);
                }
            }
            data.release(rows.start * dim..rows.end * dim);
        }
        Ok(Some(Features { data: Numbers::Shared(data), dim, n_zero }))
    }

    /// Whether the rows are in memory of their own, not shared.
    pub fn is_copy(&self) -> bool {
        matches!(self.data, Numbers::Owned(_))
    }

    /// No examples, of `dim` numbers each.
    pub fn empty(dim: usize) -> Features {
        Features { data: Numbers::Owned(Vec::new()), dim: dim.max(1), n_zero: 0 }
    }

    /// Number of examples.
    pub fn len(&self) -> usize {
        self.data.len() / self.dim
    }

    /// Whether there are no examples.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Numbers per example.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Number of all-zero feature vectors, which have no direction and no neighbours.
    pub fn n_zero(&self) -> usize {
        self.n_zero
    }

    /// One example.
    pub fn row(&self, i: usize) -> &[f32] {
        &self.data[i * self.dim..(i + 1) * self.dim]
    }

    /// All examples, in order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.data.chunks_exact(self.dim)
    }

    /// The numbers of a range of rows, one row after the other.
    pub fn block(&self, rows: Range<usize>) -> &[f32] {
        &self.data[rows.start * self.dim..rows.end * self.dim]
    }

    /// Hints that these rows are not needed for a while, so that the owner of their memory may reuse it.
    pub fn release(&self, rows: Range<usize>) {
        if let Numbers::Shared(numbers) = &self.data {
            numbers.release(rows.start * self.dim..rows.end * self.dim);
        }
    }

    /// Hints that these rows will be read soon.
    pub(crate) fn fetch(&self, rows: Range<usize>) {
        if let Numbers::Shared(numbers) = &self.data {
            numbers.fetch(rows.start * self.dim..rows.end * self.dim);
        }
    }

    /// Hints at how shared rows will be accessed from now on.
    pub(crate) fn expect(&self, access: Access) {
        if let Numbers::Shared(numbers) = &self.data {
            numbers.expect(access);
        }
    }

    /// All examples, in order, each released soon after it was read.
    pub fn pass(&self) -> impl Iterator<Item = &[f32]> {
        let stretches = streamed(self.len(), self.dim * size_of::<f32>()).map(Some).chain([None]);
        let mut before = 0..0;
        stretches.flat_map(move |rows| {
            let rows = rows.unwrap_or_default();
            self.release(std::mem::replace(&mut before, rows.clone()));
            self.block(rows).chunks_exact(self.dim)
        })
    }

    /// All rows, as the kernels take them.
    pub(crate) fn as_slice(&self) -> RowSlice<'_> {
        RowSlice { values: &self.data, dim: self.dim }
    }

    /// The chosen rows, in the given order.
    pub fn select(&self, rows: &[usize]) -> Features {
        let mut data = Vec::with_capacity(rows.len() * self.dim);
        rows.iter().for_each(|&i| data.extend_from_slice(self.row(i)));
        Features::from_normalised(data, self.dim)
    }

    /// As [`Features::select`], with the rows, which are in ascending order, in a scratch space.
    pub fn select_in(&self, rows: &[usize], scratch: &dyn Scratch) -> Result<Features> {
        let dim = self.dim;
        let mut data = scratch.floats(rows.len() * self.dim)?;
        let mut n_zero = 0;
        for part in streamed(rows.len(), dim * size_of::<f32>()) {
            let out = &mut (*data).as_mut()[part.start * dim..part.end * dim];
            for (&i, out) in rows[part.clone()].iter().zip(out.chunks_exact_mut(dim)) {
                out.copy_from_slice(self.row(i));
                n_zero += usize::from(out.iter().all(|&v| v == 0.0));
            }
            data.release(part.start * dim..part.end * dim);
            self.release(rows[part.start]..rows[part.end - 1] + 1);
        }
        Ok(Features::moved(data, dim, n_zero))
    }

    /// `self`'s rows, then `other`'s.
    pub fn stack(&self, other: &Features) -> Result<Features> {
        self.check_width("the second set", other, "the first set")?;
        let mut data = Vec::with_capacity(self.data.len() + other.data.len());
        data.extend_from_slice(&self.data);
        data.extend_from_slice(&other.data);
        Ok(Features { data: Numbers::Owned(data), dim: self.dim, n_zero: self.n_zero + other.n_zero })
    }

    /// Appends a row from another `Features`.
    #[doc(hidden)] // for our own crates
    pub fn push(&mut self, row: &[f32]) {
        self.data.owned().extend_from_slice(row);
        self.n_zero += usize::from(row.iter().all(|&v| v == 0.0));
    }

    /// An error unless `other` has the same width.
    pub fn check_width(&self, what: &'static str, other: &Features, reference: &'static str) -> Result<()> {
        if other.dim == self.dim {
            Ok(())
        } else {
            Err(Error::Width { what, found: other.dim, reference, expected: self.dim })
        }
    }

    /// Rows from another `Features`; normalising them again could change a bit.
    fn from_normalised(data: Vec<f32>, dim: usize) -> Features {
        let n_zero = data.chunks_exact(dim).filter(|row| row.iter().all(|&v| v == 0.0)).count();
        Features { data: Numbers::Owned(data), dim, n_zero }
    }
}

/// The numbers of all rows, owned or shared.
#[derive(Clone)]
enum Numbers {
    Owned(Vec<f32>),
    Shared(SharedNumbers),
}

impl Numbers {
    /// The numbers in memory of their own, copied if need be.
    fn owned(&mut self) -> &mut Vec<f32> {
        if let Numbers::Shared(numbers) = self {
            *self = Numbers::Owned((**numbers).as_ref().to_vec());
        }
        match self {
            Numbers::Owned(numbers) => numbers,
            Numbers::Shared(_) => unreachable!("just copied"),
        }
    }
}

impl Deref for Numbers {
    type Target = [f32];

    #[inline(always)]
    fn deref(&self) -> &[f32] {
        match self {
            Numbers::Owned(numbers) => numbers,
            Numbers::Shared(numbers) => (**numbers).as_ref(),
        }
    }
}

impl PartialEq for Numbers {
    fn eq(&self, other: &Numbers) -> bool {
        **self == **other
    }
}

impl std::fmt::Debug for Numbers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

/// Normalises rows in place and returns how many are zero. `first`: the number of the first row, for errors.
fn normalise(data: &mut [f32], dim: usize, first: usize) -> Result<usize> {
    let mut n_zero = 0;
    for (row, values) in data.chunks_exact_mut(dim).enumerate() {
        let length = length_of(first + row, values)?;
        n_zero += usize::from(length == 0.0);
        if !is_settled(length) {
            values.iter_mut().for_each(|v| *v = (f64::from(*v) / length) as f32);
        }
    }
    Ok(n_zero)
}

fn check_shape(data: &[f32], dim: usize) -> Result<()> {
    if dim == 0 || !data.len().is_multiple_of(dim) {
        let expected = if dim == 0 { 1 } else { data.len().next_multiple_of(dim) };
        return Err(Error::Length { what: "features", expected, found: data.len() });
    }
    Ok(())
}

fn length_of(row: usize, values: &[f32]) -> Result<f64> {
    let length = values.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>().sqrt();
    if length.is_finite() {
        return Ok(length);
    }
    let (column, &value) = values.iter().enumerate().find(|(_, v)| !v.is_finite()).unwrap_or((0, &f32::NAN));
    Err(Error::NotFinite { row, column, value })
}

/// Whether a row of this length stays as it is.
fn is_settled(length: f64) -> bool {
    length == 0.0 || (length - 1.0).abs() <= UNIT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_out_with_unit_length_and_zero_rows_stay() {
        let features = Features::new(vec![3.0, 4.0, 0.0, 0.0], 2).unwrap();
        assert_eq!(features.row(0), [0.6, 0.8]);
        assert_eq!(features.row(1), [0.0, 0.0]);
        assert_eq!(features.n_zero(), 1);
    }

    #[test]
    fn a_nan_is_named_by_row_and_column() {
        let error = Features::new(vec![1.0, 0.0, 1.0, f32::INFINITY], 2).unwrap_err();
        assert_eq!(error.to_string(), "feature row 1, column 1: expected a finite number, found inf");
    }

    #[test]
    fn huge_and_tiny_values_normalise_without_overflow() {
        let features = Features::new(vec![3e38, 3e38, 1e-40, 0.0], 2).unwrap();
        assert!((features.row(0)[0] - 0.5f32.sqrt()).abs() < 1e-6);
        assert!((features.row(1)[0] - 1.0).abs() < 1e-3);
    }

    #[test]
    fn rows_of_unit_length_stay_where_they_are_and_others_are_copied() {
        let rows: Vec<f32> = (0..96).map(|i| ((i * 37 % 19) as f32) - 9.0).collect();
        let copied = Features::shared(Arc::new(rows.clone()), 12).unwrap();
        assert!(copied.is_copy());
        assert_eq!(copied, Features::new(rows, 12).unwrap());
        let unit: Vec<f32> = copied.block(0..8).to_vec();
        let mut shared = Features::shared(Arc::new(unit.clone()), 12).unwrap();
        assert!(!shared.is_copy());
        assert_eq!(shared, Features::new(unit.clone(), 12).unwrap());
        assert_eq!(shared.block(0..8), unit, "normalising twice must change nothing");
        shared.push(&[0.0; 12]);
        assert_eq!((shared.len(), shared.n_zero(), shared.is_copy()), (9, 1, true));
        let error = Features::shared(Arc::new(vec![1.0, 0.0, f32::NAN, 0.0]), 2).unwrap_err();
        assert_eq!(error.to_string(), "feature row 1, column 0: expected a finite number, found NaN");
    }

    #[test]
    fn a_buffer_that_is_not_whole_rows_is_refused() {
        let error = Features::new(vec![1.0; 5], 2).unwrap_err();
        assert_eq!(error.to_string(), "features: expected 6 values, found 5");
    }
}
