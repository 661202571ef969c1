//! Examples as the method sees them: rows of unit length.

use std::ops::Range;

use crate::error::{Error, Result};

/// N examples of d numbers each, row by row. Every row has unit length; a row of zeros stays zero.
///
/// The constructor is the only way in, so nothing behind it checks for NaN, infinities or lengths again.
#[derive(Clone, Debug, PartialEq)]
pub struct Features {
    data: Vec<f32>,
    dim: usize,
    n_zero: usize,
}

impl Features {
    /// Normalises `data`, which holds rows of `dim` numbers one after the other.
    pub fn new(mut data: Vec<f32>, dim: usize) -> Result<Features> {
        if dim == 0 || !data.len().is_multiple_of(dim) {
            let expected = if dim == 0 { 1 } else { data.len().next_multiple_of(dim) };
            return Err(Error::Length { what: "features", expected, found: data.len() });
        }
        let mut n_zero = 0;
        for (row, values) in data.chunks_exact_mut(dim).enumerate() {
            let length = values.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>().sqrt();
            if !length.is_finite() {
                let (column, &value) =
                    values.iter().enumerate().find(|(_, v)| !v.is_finite()).unwrap_or((0, &f32::NAN));
                return Err(Error::NotFinite { row, column, value });
            }
            if length == 0.0 {
                n_zero += 1;
                continue;
            }
            values.iter_mut().for_each(|v| *v = (f64::from(*v) / length) as f32);
        }
        Ok(Features { data, dim, n_zero })
    }

    /// No examples at all, in a space of `dim` numbers.
    pub fn empty(dim: usize) -> Features {
        Features { data: Vec::new(), dim: dim.max(1), n_zero: 0 }
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

    /// How many rows are all zero: similar to nothing, neighbours of nobody.
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

    /// The chosen rows, in the given order.
    pub fn select(&self, rows: &[usize]) -> Features {
        let mut data = Vec::with_capacity(rows.len() * self.dim);
        rows.iter().for_each(|&i| data.extend_from_slice(self.row(i)));
        Features::from_normalised(data, self.dim)
    }

    /// `self`'s rows, then `other`'s.
    pub fn stack(&self, other: &Features) -> Result<Features> {
        self.check_width("the second set", other, "the first set")?;
        let mut data = Vec::with_capacity(self.data.len() + other.data.len());
        data.extend_from_slice(&self.data);
        data.extend_from_slice(&other.data);
        Ok(Features { data, dim: self.dim, n_zero: self.n_zero + other.n_zero })
    }

    /// Adds a row that came out of another `Features`.
    pub(crate) fn push(&mut self, row: &[f32]) {
        self.data.extend_from_slice(row);
        self.n_zero += usize::from(row.iter().all(|&v| v == 0.0));
    }

    /// Refuses `other` unless it lives in the same space.
    pub fn check_width(&self, what: &'static str, other: &Features, reference: &'static str) -> Result<()> {
        if other.dim == self.dim {
            Ok(())
        } else {
            Err(Error::Width { what, found: other.dim, reference, expected: self.dim })
        }
    }

    /// Rows that came out of another `Features` and so need no second normalisation, which could move a bit.
    fn from_normalised(data: Vec<f32>, dim: usize) -> Features {
        let n_zero = data.chunks_exact(dim).filter(|row| row.iter().all(|&v| v == 0.0)).count();
        Features { data, dim, n_zero }
    }
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
    fn a_buffer_that_is_not_whole_rows_is_refused() {
        let error = Features::new(vec![1.0; 5], 2).unwrap_err();
        assert_eq!(error.to_string(), "features: expected 6 values, found 5");
    }
}
