//! Cholesky factors of symmetric matrices in double precision, block by block.

use rayon::prelude::*;

use super::matrix::{Layout, Sum, multiply};
use crate::level::Level;

/// Rows and columns of a block: products of this depth have the same bits on all machines of a level.
const BLOCK: usize = 64;

/// L of A = L Lᵀ, lower triangular.
#[derive(Clone, Debug, PartialEq)]
pub struct Cholesky {
    size: usize,
    /// Row by row; what is above the diagonal is not read.
    factor: Vec<f64>,
}

impl Cholesky {
    /// Factors a symmetric matrix of `size` rows, of which only the lower triangle is read; `None` unless it is positive definite.
    pub fn new(mut matrix: Vec<f64>, size: usize) -> Option<Cholesky> {
        assert_eq!(matrix.len(), size * size, "shapes disagree");
        for start in (0..size).step_by(BLOCK) {
            let end = size.min(start + BLOCK);
            let (above, below) = matrix.split_at_mut(end * size);
            factor_block(&mut above[start * size..], size, start, end - start)?;
            if below.is_empty() {
                break;
            }
            // The panel below the block: P = A₂₁ L₁₁⁻ᵀ; then A₂₂ -= P Pᵀ.
            let block = &above[start * size..];
            let width = end - start;
            below.par_chunks_mut(size).for_each(|row| solve_block(block, size, start, &mut row[start..end]));
            let n_below = size - end;
            let mut panel = Vec::with_capacity(n_below * width);
            below.chunks_exact(size).for_each(|row| panel.extend_from_slice(&row[start..end]));
            let negated: Vec<f64> = panel.iter().map(|value| -value).collect();
            below.par_chunks_mut(BLOCK * size).enumerate().for_each(|(i, rows)| {
                let height = rows.len() / size;
                let columns = i * BLOCK + height; // up to the diagonal
                let left = &negated[i * BLOCK * width..(i * BLOCK + height) * width];
                let right = Layout::by_rows(columns, width).transposed();
                let out = Layout { row_stride: size, ..Layout::by_rows(height, columns) };
                let left = (left, Layout::by_rows(height, width));
                multiply(Level::current(), left, (&panel[..], right), Sum::Add, (&mut rows[end..], out));
            });
        }
        Some(Cholesky { size, factor: matrix })
    }

    /// Rows of the matrix.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Replaces each row x by L⁻¹ x.
    pub fn solve_lower(&self, rows: &mut [f64]) {
        let n = self.size;
        self.by_parts(rows, |rows| {
            for start in (0..n).step_by(BLOCK) {
                let end = n.min(start + BLOCK);
                let block = &self.factor[start * n..];
                rows.chunks_exact_mut(n).for_each(|row| solve_block(block, n, start, &mut row[start..end]));
                if end < n {
                    let negated = negated_columns(rows, n, start, end);
                    let below = Layout { row_stride: n, ..Layout::by_rows(n - end, end - start) };
                    let right = (&self.factor[end * n + start..], below.transposed());
                    subtract(&negated, end - start, right, &mut rows[end..], n - end, n);
                }
            }
        });
    }

    /// Replaces each row x by L⁻ᵀ x.
    pub fn solve_upper(&self, rows: &mut [f64]) {
        let n = self.size;
        self.by_parts(rows, |rows| {
            for start in (0..n).step_by(BLOCK).rev() {
                let end = n.min(start + BLOCK);
                for row in rows.chunks_exact_mut(n) {
                    for i in (start..end).rev() {
                        row[i] /= self.factor[i * n + i];
                        for j in start..i {
                            row[j] -= self.factor[i * n + j] * row[i];
                        }
                    }
                }
                if start > 0 {
                    let negated = negated_columns(rows, n, start, end);
                    let left_of = Layout { row_stride: n, ..Layout::by_rows(end - start, start) };
                    let right = (&self.factor[start * n..], left_of);
                    subtract(&negated, end - start, right, rows, start, n);
                }
            }
        });
    }

    /// Works on a few rows per thread.
    fn by_parts(&self, rows: &mut [f64], work: impl Fn(&mut [f64]) + Send + Sync) {
        if self.size > 0 {
            assert!(rows.len().is_multiple_of(self.size), "shapes disagree");
            rows.par_chunks_mut(BLOCK * self.size).for_each(work);
        }
    }
}

/// Factors the diagonal block that begins at row and column `start`, the first row of `rows`.
fn factor_block(rows: &mut [f64], size: usize, start: usize, width: usize) -> Option<()> {
    for i in 0..width {
        for j in 0..=i {
            let row_i = i * size + start;
            let row_j = j * size + start;
            let products = (0..j).map(|k| rows[row_i + k] * rows[row_j + k]).sum::<f64>();
            let rest = rows[row_i + j] - products;
            if i > j {
                rows[row_i + j] = rest / rows[row_j + j];
            } else if rest > 0.0 && rest.is_finite() {
                rows[row_i + j] = rest.sqrt();
            } else {
                return None;
            }
        }
    }
    Some(())
}

/// Replaces x by L₁₁⁻¹ x, where L₁₁ begins at column `start` of `block`.
fn solve_block(block: &[f64], size: usize, start: usize, x: &mut [f64]) {
    for i in 0..x.len() {
        let row = &block[i * size + start..i * size + start + i + 1];
        let products = row[..i].iter().zip(x.iter()).map(|(l, x)| l * x).sum::<f64>();
        x[i] = (x[i] - products) / row[i];
    }
}

/// Columns `start..end` of all rows, negated.
fn negated_columns(rows: &[f64], n: usize, start: usize, end: usize) -> Vec<f64> {
    rows.chunks_exact(n).flat_map(|row| row[start..end].iter().map(|value| -value)).collect()
}

/// Adds `left` · `right` to the first `columns` columns of `out`, whose rows are `stride` apart.
fn subtract(
    left: &[f64],
    depth: usize,
    right: (&[f64], Layout),
    out: &mut [f64],
    columns: usize,
    stride: usize,
) {
    let n_rows = left.len() / depth;
    let layout = Layout { row_stride: stride, ..Layout::by_rows(n_rows, columns) };
    multiply(Level::current(), (left, Layout::by_rows(n_rows, depth)), right, Sum::Add, (out, layout));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::random::Stream;

    #[test]
    fn a_factor_that_fits_in_a_head() {
        // [4 2; 2 5] = [2 0; 1 2] [2 1; 0 2]; the number above the diagonal is not read.
        let found = Cholesky::new(vec![4.0, f64::NAN, 2.0, 5.0], 2).unwrap();
        assert_eq!((found.factor[0], found.factor[2], found.factor[3]), (2.0, 1.0, 2.0));
        let mut row = [2.0, 5.0];
        found.solve_lower(&mut row);
        assert_eq!(row, [1.0, 2.0]);
        found.solve_upper(&mut row); // [2 1; 0 2] x = [1; 2]
        assert_eq!(row, [0.0, 1.0]);
    }

    #[test]
    fn matrices_that_are_not_positive_definite_are_refused() {
        assert_eq!(Cholesky::new(vec![1.0, 2.0, 2.0, 1.0], 2), None);
        assert_eq!(Cholesky::new(vec![0.0], 1), None);
        assert_eq!(Cholesky::new(vec![f64::NAN], 1), None);
        assert_eq!(Cholesky::new(Vec::new(), 0).unwrap().size(), 0);
    }

    fn draw(seed: u64, n: usize) -> Vec<f64> {
        (0..n).map(|i| f64::from(Stream::new(seed).normal(i as u64))).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn the_equations_are_solved(n in 1usize..200, n_rows in 1usize..80, seed: u64) {
            let g = draw(seed, n * n);
            let mut a = vec![0.0; n * n];
            for i in 0..n {
                for j in 0..n {
                    a[i * n + j] = (0..n).map(|k| g[i * n + k] * g[j * n + k]).sum::<f64>() + f64::from(u8::from(i == j));
                }
            }
            let factors = Cholesky::new(a.clone(), n).unwrap();
            let b = draw(seed ^ 1, n_rows * n);
            let mut x = b.clone();
            factors.solve_lower(&mut x);
            factors.solve_upper(&mut x);
            for (x, b) in x.chunks_exact(n).zip(b.chunks_exact(n)) {
                for (row, b) in a.chunks_exact(n).zip(b) {
                    let found: f64 = row.iter().zip(x).map(|(a, x)| a * x).sum();
                    prop_assert!((found - b).abs() < 1e-6, "{found} {b}");
                }
            }
            let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
            prop_assert_eq!(alone.install(|| Cholesky::new(a, n)).unwrap(), factors);
        }
    }
}
