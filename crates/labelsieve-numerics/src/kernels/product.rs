//! The three matrix products of the crate, on one thread; callers split the rows among threads.

use super::matrix::{Layout, MatrixMut, MatrixRef, Sum, multiply};
use crate::level::Level;

/// `out = a · b` for row-major `a` (n×d), `b` (d×m) and `out` (n×m).
pub fn product(a: &[f32], b: &[f32], out: &mut [f32], d: usize, m: usize) {
    let n = out.len() / m;
    multiply(Level::current(), by_rows(a, n, d), by_rows(b, d, m), Sum::Replace, by_rows_mut(out, n, m));
}

/// `out += aᵀ · b` for row-major `a` (n×d), `b` (n×m) and `out` (d×m).
pub fn add_transposed_product(a: &[f32], b: &[f32], out: &mut [f32], d: usize, m: usize) {
    let n = b.len() / m;
    let a = transposed(by_rows(a, n, d));
    multiply(Level::current(), a, by_rows(b, n, m), Sum::Add, by_rows_mut(out, d, m));
}

/// `out = a · bᵀ` for row-major `a` (n×d), `b` (m×d) and `out` (n×m).
pub fn product_with_transposed(a: &[f32], b: &[f32], out: &mut [f32], d: usize) {
    product_with_transposed_at(Level::current(), a, b, out, d);
}

/// [`product_with_transposed`] by the instructions of `level`.
pub(super) fn product_with_transposed_at(level: Level, a: &[f32], b: &[f32], out: &mut [f32], d: usize) {
    let n = a.len() / d;
    let m = b.len() / d;
    let b = transposed(by_rows(b, m, d));
    multiply(level, by_rows(a, n, d), b, Sum::Replace, by_rows_mut(out, n, m));
}

/// A row-major matrix that fills its slice.
fn by_rows(values: &[f32], rows: usize, columns: usize) -> MatrixRef<'_, f32> {
    assert_eq!(values.len(), rows * columns, "shapes disagree");
    MatrixRef { values, layout: Layout::by_rows(rows, columns) }
}

/// As [`by_rows`], to be written.
fn by_rows_mut(values: &mut [f32], rows: usize, columns: usize) -> MatrixMut<'_, f32> {
    assert_eq!(values.len(), rows * columns, "shapes disagree");
    MatrixMut { values, layout: Layout::by_rows(rows, columns) }
}

fn transposed(matrix: MatrixRef<'_, f32>) -> MatrixRef<'_, f32> {
    MatrixRef { layout: matrix.layout.transposed(), ..matrix }
}

#[cfg(test)]
mod tests {
    use super::*;

    // a = [1 2; 3 4; 5 6], b = [1 0 2; 0 1 3]
    const A: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    const B: [f32; 6] = [1.0, 0.0, 2.0, 0.0, 1.0, 3.0];

    #[test]
    fn the_products_agree_with_sums_by_hand() {
        let mut out = [f32::NAN; 9];
        product(&A, &B, &mut out, 2, 3);
        assert_eq!(out, [1.0, 2.0, 8.0, 3.0, 4.0, 18.0, 5.0, 6.0, 28.0]);

        for level in Level::available() {
            let mut out = [f32::NAN; 9];
            product_with_transposed_at(level, &A, &A, &mut out, 2);
            assert_eq!(out, [5.0, 11.0, 17.0, 11.0, 25.0, 39.0, 17.0, 39.0, 61.0]);
        }

        let mut out = [1.0; 4];
        add_transposed_product(&A, &A, &mut out, 2, 2);
        assert_eq!(out, [36.0, 45.0, 45.0, 57.0]);
    }
}
