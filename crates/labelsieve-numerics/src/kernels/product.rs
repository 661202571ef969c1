//! The three matrix products of the crate, on one thread; the callers split the rows among threads.

use super::matrix::{Layout, Sum, multiply};
use crate::level::Level;

/// `out = a · b` for row-major `a` (n×d), `b` (d×m) and `out` (n×m).
pub fn product(a: &[f32], b: &[f32], out: &mut [f32], d: usize, m: usize) {
    let n = out.len() / m;
    let a = (a, exactly(a, n, d));
    let b = (b, exactly(b, d, m));
    let into = exactly(out, n, m);
    multiply(Level::current(), a, b, Sum::Replace, (out, into));
}

/// `out += aᵀ · b` for row-major `a` (n×d), `b` (n×m) and `out` (d×m).
pub fn add_transposed_product(a: &[f32], b: &[f32], out: &mut [f32], d: usize, m: usize) {
    let n = b.len() / m;
    let a = (a, exactly(a, n, d).transposed());
    let b = (b, exactly(b, n, m));
    let into = exactly(out, d, m);
    multiply(Level::current(), a, b, Sum::Add, (out, into));
}

/// `out = a · bᵀ` for row-major `a` (n×d), `b` (m×d) and `out` (n×m).
pub fn product_with_transposed(a: &[f32], b: &[f32], out: &mut [f32], d: usize) {
    product_with_transposed_at(Level::current(), a, b, out, d);
}

/// [`product_with_transposed`] by the instructions of `level`.
pub(super) fn product_with_transposed_at(level: Level, a: &[f32], b: &[f32], out: &mut [f32], d: usize) {
    let n = a.len() / d;
    let m = b.len() / d;
    let a = (a, exactly(a, n, d));
    let b = (b, exactly(b, m, d).transposed());
    let into = exactly(out, n, m);
    multiply(level, a, b, Sum::Replace, (out, into));
}

/// The layout of a matrix that fills its slice.
fn exactly(values: &[f32], rows: usize, columns: usize) -> Layout {
    assert_eq!(values.len(), rows * columns, "shapes disagree");
    Layout::by_rows(rows, columns)
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
