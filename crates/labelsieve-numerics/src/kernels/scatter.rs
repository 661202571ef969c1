//! Σ x xᵀ over rows that come one after the other.

use rayon::prelude::*;

use super::matrix::{Layout, Sum, multiply};
use crate::level::Level;

/// Columns of the matrix that one thread works on at a time.
const BLOCK: usize = 64;

/// Rows that are multiplied at a time, in single precision; the sums over these products are in double precision.
const PORTION: usize = 512;

/// The sum of the outer products of rows with themselves.
#[derive(Clone, Debug)]
pub struct Scatter {
    dim: usize,
    /// Row by row; only the lower triangle is filled in, by whole blocks.
    sums: Vec<f64>,
    /// Rows still to be added.
    waiting: Vec<f32>,
}

impl Scatter {
    /// The sum over no rows, of `dim` numbers each.
    pub fn new(dim: usize) -> Scatter {
        Scatter { dim, sums: vec![0.0; dim * dim], waiting: Vec::with_capacity(PORTION * dim) }
    }

    /// Adds a row, written by `fill` into zeros.
    pub fn push(&mut self, fill: impl FnOnce(&mut [f32])) {
        let start = self.waiting.len();
        self.waiting.resize(start + self.dim, 0.0);
        fill(&mut self.waiting[start..]);
        if self.waiting.len() == PORTION * self.dim {
            self.flush();
        }
    }

    /// The matrix, with both triangles.
    pub fn finish(mut self) -> Vec<f64> {
        self.flush();
        let d = self.dim;
        for i in 0..d {
            for j in i + 1..d {
                self.sums[i * d + j] = self.sums[j * d + i];
            }
        }
        self.sums
    }

    /// Multiplies the rows that wait for others.
    pub fn flush(&mut self) {
        let d = self.dim;
        if d == 0 || self.waiting.is_empty() {
            return;
        }
        let rows = &self.waiting;
        let n = rows.len() / d;
        self.sums.par_chunks_mut(BLOCK * d).enumerate().for_each_init(Vec::new, |products, (block, sums)| {
            let first = block * BLOCK;
            let height = sums.len() / d;
            let width = first + height; // up to the diagonal
            products.resize(BLOCK * d, 0f32);
            let products = &mut products[..height * width];
            let left = (&rows[first..], Layout::by_rows(n, d).with_columns(height).transposed());
            let right = (&rows[..], Layout::by_rows(n, d).with_columns(width));
            let out = (&mut *products, Layout::by_rows(height, width));
            multiply(Level::current(), left, right, Sum::Replace, out);
            for (sums, products) in sums.chunks_exact_mut(d).zip(products.chunks_exact(width)) {
                sums.iter_mut().zip(products).for_each(|(sum, &product)| *sum += f64::from(product));
            }
        });
        self.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    #[test]
    fn two_rows_by_hand() {
        let mut scatter = Scatter::new(2);
        for row in [[1.0, 2.0], [3.0, -1.0]] {
            scatter.push(|out| out.copy_from_slice(&row));
        }
        assert_eq!(scatter.finish(), [10.0, -1.0, -1.0, 5.0]);
        assert_eq!(Scatter::new(1).finish(), [0.0]);
        assert!(Scatter::new(0).finish().is_empty());
    }

    #[test]
    fn more_rows_and_columns_than_a_portion_and_a_block_agree_with_plain_sums_at_any_number_of_threads() {
        let d = 150;
        let n = 2 * PORTION + 17;
        let rows: Vec<f32> = (0..n * d).map(|i| Stream::new(3).normal(i as u64)).collect();
        let sum = |n_threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            pool.install(|| {
                let mut scatter = Scatter::new(d);
                rows.chunks_exact(d).for_each(|row| scatter.push(|out| out.copy_from_slice(row)));
                scatter.finish()
            })
        };
        let found = sum(1);
        assert_eq!(found, sum(3));
        for i in 0..d {
            for j in 0..d {
                let plain: f64 = rows.chunks_exact(d).map(|row| f64::from(row[i]) * f64::from(row[j])).sum();
                assert!((found[i * d + j] - plain).abs() < 1e-3, "{i} {j}: {} {plain}", found[i * d + j]);
            }
        }
    }
}
