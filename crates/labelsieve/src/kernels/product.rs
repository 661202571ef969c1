//! Matrix products on one thread, by the `gemm` crate; the callers split the rows among threads.

use gemm::Parallelism;

/// `out = a · b` for row-major `a` (n×d), `b` (d×m) and `out` (n×m).
pub(crate) fn product(a: &[f32], b: &[f32], out: &mut [f32], d: usize, m: usize) {
    let n = out.len() / m;
    multiply((n, d, m), Matrix::rows(a, d), Matrix::rows(b, m), out, 0.0);
}

/// `out += aᵀ · b` for row-major `a` (n×d), `b` (n×m) and `out` (d×m).
pub(crate) fn add_transposed_product(a: &[f32], b: &[f32], out: &mut [f32], d: usize, m: usize) {
    let n = b.len() / m;
    multiply((d, n, m), Matrix::columns(a, d), Matrix::rows(b, m), out, 1.0);
}

/// `out = a · bᵀ` for row-major `a` (n×d), `b` (m×d) and `out` (n×m).
pub(crate) fn product_with_transposed(a: &[f32], b: &[f32], out: &mut [f32], d: usize) {
    let (n, m) = (a.len() / d, b.len() / d);
    multiply((n, d, m), Matrix::rows(a, d), Matrix::columns(b, d), out, 0.0);
}

/// Numbers and how far apart its rows and its columns are.
struct Matrix<'a> {
    data: &'a [f32],
    row_stride: usize,
    column_stride: usize,
}

impl Matrix<'_> {
    /// Row by row, `width` numbers each.
    fn rows(data: &[f32], width: usize) -> Matrix<'_> {
        Matrix { data, row_stride: width, column_stride: 1 }
    }

    /// The transpose of [`Matrix::rows`].
    fn columns(data: &[f32], width: usize) -> Matrix<'_> {
        Matrix { data, row_stride: 1, column_stride: width }
    }
}

/// `out = keep · out + a · b` for `a` (n×d), `b` (d×m) and row-major `out` (n×m).
fn multiply((n, d, m): (usize, usize, usize), a: Matrix, b: Matrix, out: &mut [f32], keep: f32) {
    assert!(a.data.len() == n * d && b.data.len() == d * m && out.len() == n * m, "shapes disagree");
    // SAFETY: both inputs hold exactly n×d and d×m numbers, which their strides (a width and 1, either way round) walk over
    // once; `out` holds n×m and is borrowed mutably, so it overlaps neither.
    unsafe {
        gemm::gemm(
            n,
            m,
            d,
            out.as_mut_ptr(),
            1,
            m as isize,
            keep != 0.0,
            a.data.as_ptr(),
            a.column_stride as isize,
            a.row_stride as isize,
            b.data.as_ptr(),
            b.column_stride as isize,
            b.row_stride as isize,
            keep,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
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

        let mut out = [f32::NAN; 9];
        product_with_transposed(&A, &A, &mut out, 2);
        assert_eq!(out, [5.0, 11.0, 17.0, 11.0, 25.0, 39.0, 17.0, 39.0, 61.0]);

        let mut out = [1.0; 4];
        add_transposed_product(&A, &A, &mut out, 2, 2);
        assert_eq!(out, [36.0, 45.0, 45.0, 57.0]);
    }
}
