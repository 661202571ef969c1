//! Mean and covariance of rows that come in portions.

use labelsieve_numerics::kernels::matrix::{Layout, Sum, multiply};
use labelsieve_numerics::level::Level;
use rayon::prelude::*;

use crate::error::{Error, Result};

/// Sums over all rows so far, in double precision.
#[derive(Clone, Debug)]
pub struct Covariance {
    dim: usize,
    n_rows: usize,
    /// Subtracted from every row before anything is summed, so that a large mean does not drown the variance.
    origin: Vec<f64>,
    sum: Vec<f64>,
    /// d×d; only blocks on and above the diagonal are filled in.
    products: Vec<f64>,
}

/// Rows of the matrix that one thread works on.
const BLOCK: usize = 64;

impl Covariance {
    /// Rows that are multiplied at a time: rows that come in multiples of it give the same bits as all at once.
    pub const PORTION: usize = 1024;

    /// No rows yet, of `dim` numbers each.
    pub fn new(dim: usize) -> Covariance {
        Covariance { dim, n_rows: 0, origin: Vec::new(), sum: vec![0.0; dim], products: vec![0.0; dim * dim] }
    }

    /// Adds rows, one after the other.
    pub fn add(&mut self, rows: &[f32]) -> Result<()> {
        if self.dim == 0 || !rows.len().is_multiple_of(self.dim) {
            return Err(Error::Shape {
                what: "features".to_owned(),
                expected: format!("rows of {}", self.dim),
                found: format!("{} numbers", rows.len()),
            });
        }
        if let Some(value) = rows.iter().find(|value| !value.is_finite()) {
            let expected = "finite numbers".to_owned();
            let found = value.to_string();
            return Err(Error::Shape { what: "features".to_owned(), expected, found });
        }
        if rows.is_empty() {
            return Ok(());
        }
        if self.origin.is_empty() {
            self.origin = rows[..self.dim].iter().map(|&value| f64::from(value)).collect();
        }
        for portion in rows.chunks(Covariance::PORTION * self.dim) {
            self.add_portion(portion);
        }
        Ok(())
    }

    fn add_portion(&mut self, rows: &[f32]) {
        let d = self.dim;
        let shifted: Vec<f64> = rows
            .chunks_exact(d)
            .flat_map(|row| row.iter().zip(&self.origin).map(|(&value, origin)| f64::from(value) - origin))
            .collect();
        let n = shifted.len() / d;
        for row in shifted.chunks_exact(d) {
            self.sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
        self.n_rows += n;
        self.products.par_chunks_mut(BLOCK * d).enumerate().for_each(|(block, out)| {
            let first = block * BLOCK;
            add_products(&shifted, d, first, out);
        });
    }

    /// The mean and the covariance matrix (divided by n - 1).
    pub(crate) fn finish(mut self) -> Result<(Vec<f64>, Vec<f64>)> {
        if self.n_rows < 2 {
            let found = self.n_rows.to_string();
            return Err(Error::Shape {
                what: "rows to fit on".to_owned(),
                expected: "at least 2".to_owned(),
                found,
            });
        }
        let d = self.dim;
        let n = self.n_rows as f64;
        for i in 0..d {
            for j in i..d {
                let value = (self.products[i * d + j] - self.sum[i] * self.sum[j] / n) / (n - 1.0);
                self.products[i * d + j] = value;
                self.products[j * d + i] = value;
            }
        }
        let mean = self.sum.iter().zip(&self.origin).map(|(sum, origin)| origin + sum / n).collect();
        Ok((mean, self.products))
    }
}

/// Adds the sums of products x_i x_j to `out`, whose rows are i = `first`, … and whose columns j = 0 … d; columns left
/// of `first` are below the diagonal and stay as they are.
fn add_products(x: &[f64], d: usize, first: usize, out: &mut [f64]) {
    let n = x.len() / d;
    let height = out.len() / d;
    let width = d - first;
    assert!(x.len() == n * d && out.len() == height * d && first + height <= d, "shapes disagree");
    let columns = |count: usize| Layout::by_rows(n, d).with_columns(count);
    let right = (&x[first..], columns(width));
    let left = (&x[first..], columns(height).transposed());
    let into = (&mut out[first..], Layout::by_rows(height, d).with_columns(width));
    multiply(Level::current(), left, right, Sum::Add, into);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_covariance_that_fits_in_a_head() {
        // Columns 1, 3, 5 and 7, 4, 1: means 3 and 4, variances 4 and 9, covariance -6.
        let mut covariance = Covariance::new(2);
        covariance.add(&[1.0, 7.0, 3.0, 4.0]).unwrap();
        covariance.add(&[5.0, 1.0]).unwrap();
        let (mean, matrix) = covariance.finish().unwrap();
        assert_eq!((mean, matrix), (vec![3.0, 4.0], vec![4.0, -6.0, -6.0, 9.0]));
    }

    #[test]
    fn many_rows_and_columns_agree_with_the_plain_sums() {
        let n = 2100;
        let d = 150;
        let stream = labelsieve_numerics::random::Stream::new(0);
        let rows: Vec<f32> = (0..n * d).map(|i| 50.0 + stream.normal(i as u64)).collect();
        let mut covariance = Covariance::new(d);
        covariance.add(&rows).unwrap();
        let (mean, matrix) = covariance.finish().unwrap();
        for (i, j) in [(0, 0), (0, 149), (149, 3), (70, 64), (64, 64)] {
            let sum: f64 =
                rows.chunks(d).map(|row| (f64::from(row[i]) - mean[i]) * (f64::from(row[j]) - mean[j])).sum();
            assert!((matrix[i * d + j] - sum / (n - 1) as f64).abs() < 1e-9, "{i} {j}");
        }
    }

    #[test]
    fn too_few_rows_and_bad_numbers_are_refused() {
        let mut covariance = Covariance::new(2);
        let error = covariance.add(&[1.0, f32::NAN]).unwrap_err().to_string();
        assert_eq!(error, "features: expected finite numbers, found NaN");
        assert!(covariance.add(&[1.0]).is_err());
        covariance.add(&[1.0, 2.0]).unwrap();
        let error = covariance.finish().unwrap_err().to_string();
        assert_eq!(error, "rows to fit on: expected at least 2, found 1");
    }
}
