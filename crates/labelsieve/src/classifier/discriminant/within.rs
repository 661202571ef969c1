//! Σ, the covariance within classes: over all columns, or over the span of fewer rows.

use labelsieve_numerics::kernels::matrix::{Layout, Sum, multiply};
use labelsieve_numerics::level::Level;
use rayon::prelude::*;

/// A covariance matrix Σ = Qᵀ C Q.
#[derive(Clone, Debug, PartialEq)]
pub struct Within {
    dim: usize,
    /// Q: orthonormal rows that span all rows; `None` where C is over the columns themselves.
    basis: Option<Vec<f64>>,
    /// C, row by row.
    matrix: Vec<f64>,
}

impl Within {
    /// Over all columns.
    pub fn of_matrix(matrix: Vec<f64>, dim: usize) -> Within {
        assert_eq!(matrix.len(), dim * dim, "shapes disagree");
        Within { dim, basis: None, matrix }
    }

    /// Over the span of orthonormal rows.
    pub fn in_span(basis: Vec<f64>, matrix: Vec<f64>, dim: usize) -> Within {
        let rank = basis.len() / dim;
        assert!(basis.len() == rank * dim && matrix.len() == rank * rank, "shapes disagree");
        Within { dim, basis: Some(basis), matrix }
    }

    /// Σ x xᵀ / `divisor` over rows, fewer than there are columns.
    pub(super) fn of_rows(rows: &[f32], dim: usize, divisor: f64) -> Within {
        let rows: Vec<f64> = rows.iter().map(|&x| f64::from(x)).collect();
        let basis = orthonormal(&rows, dim);
        let coordinates = products(&rows, &basis, dim); // N×r
        let n = rows.len() / dim;
        let rank = basis.len() / dim;
        let mut matrix = vec![0.0; rank * rank];
        let layout = Layout::by_rows(n, rank);
        let square = Layout::by_rows(rank, rank);
        let left = (&coordinates[..], layout.transposed());
        multiply(Level::current(), left, (&coordinates[..], layout), Sum::Replace, (&mut matrix, square));
        matrix.iter_mut().for_each(|value| *value /= divisor);
        Within { dim, basis: Some(basis), matrix }
    }

    /// The mean of two covariances, weighted by classes.
    pub(super) fn pooled(a: &Within, n_a: usize, b: &Within, n_b: usize) -> Within {
        let mut sum = a.over_columns();
        let n = (n_a + n_b).max(1) as f64;
        for (a, b) in sum.iter_mut().zip(b.over_columns()) {
            *a = (*a * n_a as f64 + b * n_b as f64) / n;
        }
        Within::of_matrix(sum, a.dim)
    }

    /// Numbers per feature, d.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Q.
    pub fn basis(&self) -> Option<&[f64]> {
        self.basis.as_deref()
    }

    /// C.
    pub fn matrix(&self) -> &[f64] {
        &self.matrix
    }

    /// The number of rows of C.
    pub fn rank(&self) -> usize {
        self.basis.as_ref().map_or(self.dim, |basis| basis.len() / self.dim)
    }

    /// tr Σ.
    pub fn trace(&self) -> f64 {
        let rank = self.rank();
        (0..rank).map(|i| self.matrix[i * rank + i]).sum()
    }

    /// ‖Σ‖², the sum of the squares of all its numbers.
    pub(super) fn squares(&self) -> f64 {
        self.matrix.iter().map(|value| value * value).sum()
    }

    /// Q x for each row x; the rows themselves where C is over the columns.
    pub(super) fn coordinates(&self, rows: &[f64]) -> Vec<f64> {
        match &self.basis {
            None => rows.to_vec(),
            Some(basis) => products(rows, basis, self.dim),
        }
    }

    /// Qᵀ a for each row a of coordinates.
    pub(super) fn expanded(&self, coordinates: &[f64]) -> Vec<f64> {
        let Some(basis) = &self.basis else { return coordinates.to_vec() };
        let rank = self.rank();
        let n = coordinates.len().checked_div(rank).unwrap_or(0);
        let mut rows = vec![0.0; n * self.dim];
        let right = Layout::by_rows(rank, self.dim);
        let left = (coordinates, Layout::by_rows(n, rank));
        let out = Layout::by_rows(n, self.dim);
        multiply(Level::current(), left, (&basis[..], right), Sum::Replace, (&mut rows, out));
        rows
    }

    /// Σ over the columns.
    fn over_columns(&self) -> Vec<f64> {
        let Some(basis) = &self.basis else { return self.matrix.clone() };
        let rank = self.rank();
        let half = self.expanded(&self.matrix); // C Q, r×d
        let mut whole = vec![0.0; self.dim * self.dim];
        let layout = Layout::by_rows(rank, self.dim);
        let left = (&basis[..], layout.transposed());
        let out = Layout::by_rows(self.dim, self.dim);
        multiply(Level::current(), left, (&half[..], layout), Sum::Replace, (&mut whole, out));
        whole
    }
}

/// The inner products of rows with other rows, N×M.
pub(super) fn products(rows: &[f64], others: &[f64], dim: usize) -> Vec<f64> {
    const PART: usize = 64;
    let m = others.len() / dim;
    let mut out = vec![0.0; rows.len() / dim * m];
    if m > 0 {
        let right = Layout::by_rows(m, dim).transposed();
        out.par_chunks_mut(PART * m).zip(rows.par_chunks(PART * dim)).for_each(|(out, rows)| {
            let n = rows.len() / dim;
            let left = (rows, Layout::by_rows(n, dim));
            let layout = Layout::by_rows(n, m);
            multiply(Level::current(), left, (others, right), Sum::Replace, (out, layout));
        });
    }
    out
}

/// Orthonormal rows with the span of `rows`: Gram–Schmidt, twice, which is exact to rounding.
fn orthonormal(rows: &[f64], dim: usize) -> Vec<f64> {
    const DEPENDENT: f64 = 1e-7; // rows come from single precision
    let mut basis: Vec<f64> = Vec::new();
    for row in rows.chunks_exact(dim) {
        let length = norm(row);
        let mut rest = row.to_vec();
        for _ in 0..2 {
            let along = products(&rest, &basis, dim);
            for (along, unit) in along.iter().zip(basis.chunks_exact(dim)) {
                rest.iter_mut().zip(unit).for_each(|(rest, unit)| *rest -= along * unit);
            }
        }
        let left = norm(&rest);
        if left > DEPENDENT * length && left > 0.0 {
            basis.extend(rest.iter().map(|value| value / left));
        }
    }
    basis
}

fn norm(row: &[f64]) -> f64 {
    row.iter().map(|value| value * value).sum::<f64>().sqrt()
}
