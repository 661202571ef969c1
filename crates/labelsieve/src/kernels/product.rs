//! Matrix products on one thread, by the `gemm` crate; the callers split the rows among threads.

use gemm::Parallelism;

/// `out = a · b` for row-major `a` (n×d), `b` (d×m) and `out` (n×m).
pub(crate) fn product(a: &[f32], b: &[f32], out: &mut [f32], d: usize, m: usize) {
    let n = out.len() / m;
    assert!(a.len() == n * d && b.len() == d * m && out.len() == n * m, "shapes disagree");
    // SAFETY: the three slices have exactly the shapes that the strides below walk over, checked above, and `out` is
    // borrowed mutably, so it overlaps neither input.
    unsafe {
        gemm::gemm(
            n,
            m,
            d,
            out.as_mut_ptr(),
            1,
            m as isize,
            false,
            a.as_ptr(),
            1,
            d as isize,
            b.as_ptr(),
            1,
            m as isize,
            0.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

/// `out += aᵀ · b` for row-major `a` (n×d), `b` (n×m) and `out` (d×m).
pub(crate) fn add_transposed_product(a: &[f32], b: &[f32], out: &mut [f32], d: usize, m: usize) {
    let n = b.len() / m;
    assert!(a.len() == n * d && b.len() == n * m && out.len() == d * m, "shapes disagree");
    // SAFETY: as in `product`; `a` is read through swapped strides, which stay inside n×d.
    unsafe {
        gemm::gemm(
            d,
            m,
            n,
            out.as_mut_ptr(),
            1,
            m as isize,
            true,
            a.as_ptr(),
            d as isize,
            1,
            b.as_ptr(),
            1,
            m as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

/// `out = a · bᵀ` for row-major `a` (n×d), `b` (m×d) and `out` (n×m).
pub(crate) fn product_with_transposed(a: &[f32], b: &[f32], out: &mut [f32], d: usize) {
    let (n, m) = (a.len() / d, b.len() / d);
    assert!(a.len() == n * d && b.len() == m * d && out.len() == n * m, "shapes disagree");
    // SAFETY: as in `product`; `b` is read through swapped strides, which stay inside m×d.
    unsafe {
        gemm::gemm(
            n,
            m,
            d,
            out.as_mut_ptr(),
            1,
            m as isize,
            false,
            a.as_ptr(),
            1,
            d as isize,
            b.as_ptr(),
            d as isize,
            1,
            0.0,
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
