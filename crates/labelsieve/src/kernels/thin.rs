//! The two products of the network's training: N×d with only sixteen columns on the other side.
//!
//! A general matrix product is made for wide operands; here one vector register holds a whole row of the narrow one,
//! and the sums of many rows stay in registers. On machines without AVX-512 the `gemm` crate does both.

use super::product::{add_transposed_product, product};

/// Columns of the narrow side: the network's hidden units.
pub(crate) const COLUMNS: usize = 16;

/// `out = x · weights` for row-major `x` (n×d), `weights` (d×16) and `out` (n×16).
pub(crate) fn thin_product(x: &[f32], weights: &[f32], out: &mut [f32], d: usize) {
    let n = out.len() / COLUMNS;
    assert!(x.len() == n * d && weights.len() == d * COLUMNS && out.len() == n * COLUMNS, "shapes disagree");
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the feature is there, and the shapes were checked above.
        unsafe { avx512::thin_product(x, weights, out, d) };
        return;
    }
    product(x, weights, out, d, COLUMNS);
}

/// `out = xᵀ · slopes` for row-major `x` (n×d), `slopes` (n×16) and `out` (d×16).
pub(crate) fn thin_transposed_product(x: &[f32], slopes: &[f32], out: &mut [f32], d: usize) {
    let n = slopes.len() / COLUMNS;
    assert!(x.len() == n * d && slopes.len() == n * COLUMNS && out.len() == d * COLUMNS, "shapes disagree");
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the feature is there, and the shapes were checked above.
        unsafe { avx512::thin_transposed_product(x, slopes, out, d) };
        return;
    }
    out.fill(0.0);
    add_transposed_product(x, slopes, out, d, COLUMNS);
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use super::COLUMNS;

    /// Rows whose sums are held in registers at a time.
    const ROWS: usize = 12;
    /// Columns of `x` whose sums are held in the first-level cache at a time.
    const DEPTH: usize = 256;

    /// # Safety
    /// Needs AVX-512 F; `x` is n×d, `weights` d×16 and `out` n×16.
    #[target_feature(enable = "avx512f")]
    pub unsafe fn thin_product(x: &[f32], weights: &[f32], out: &mut [f32], d: usize) {
        let n = out.len() / COLUMNS;
        let mut i = 0;
        // SAFETY: rows i..i + ROWS (or the one row i) lie inside `x` and `out`, as the loops' bounds say.
        unsafe {
            while i + ROWS <= n {
                rows::<ROWS>(x.as_ptr().add(i * d), weights, out.as_mut_ptr().add(i * COLUMNS), d);
                i += ROWS;
            }
            while i < n {
                rows::<1>(x.as_ptr().add(i * d), weights, out.as_mut_ptr().add(i * COLUMNS), d);
                i += 1;
            }
        }
    }

    /// # Safety
    /// Needs AVX-512 F; `x` points to R rows of d, `out` to R rows of 16.
    #[target_feature(enable = "avx512f")]
    unsafe fn rows<const R: usize>(x: *const f32, weights: &[f32], out: *mut f32, d: usize) {
        let mut sums = [_mm512_setzero_ps(); R];
        for k in 0..d {
            // SAFETY: k < d: a row of `weights` and a number of each row of `x`.
            unsafe {
                let weight = _mm512_loadu_ps(weights.as_ptr().add(k * COLUMNS));
                for (r, sum) in sums.iter_mut().enumerate() {
                    *sum = _mm512_fmadd_ps(_mm512_set1_ps(*x.add(r * d + k)), weight, *sum);
                }
            }
        }
        for (r, &sum) in sums.iter().enumerate() {
            // SAFETY: r < R rows of `out`.
            unsafe { _mm512_storeu_ps(out.add(r * COLUMNS), sum) };
        }
    }

    /// # Safety
    /// Needs AVX-512 F; `x` is n×d, `slopes` n×16 and `out` d×16.
    #[target_feature(enable = "avx512f")]
    pub unsafe fn thin_transposed_product(x: &[f32], slopes: &[f32], out: &mut [f32], d: usize) {
        let n = slopes.len() / COLUMNS;
        out.fill(0.0);
        for (block, out) in out.chunks_mut(DEPTH * COLUMNS).enumerate() {
            let x = &x[block * DEPTH..];
            let mut i = 0;
            // SAFETY: rows i..i + 8 (or the one row i) lie inside `slopes`, and their columns from block * DEPTH on
            // inside `x`, as the loops' bounds say.
            unsafe {
                while i + 8 <= n {
                    add_rows::<8>(x.as_ptr().add(i * d), slopes.as_ptr().add(i * COLUMNS), out, d);
                    i += 8;
                }
                while i < n {
                    add_rows::<1>(x.as_ptr().add(i * d), slopes.as_ptr().add(i * COLUMNS), out, d);
                    i += 1;
                }
            }
        }
    }

    /// Adds R rows' share to a block of sums; the rows' slopes stay in registers.
    ///
    /// # Safety
    /// Needs AVX-512 F; `x` points to R rows, d apart, of as many numbers as `out` has rows of 16; `slopes` to R rows
    /// of 16.
    #[target_feature(enable = "avx512f")]
    unsafe fn add_rows<const R: usize>(x: *const f32, slopes: *const f32, out: &mut [f32], d: usize) {
        // SAFETY: r < R rows of `slopes`.
        let slopes: [__m512; R] =
            std::array::from_fn(|r| unsafe { _mm512_loadu_ps(slopes.add(r * COLUMNS)) });
        for (k, out) in out.chunks_exact_mut(COLUMNS).enumerate() {
            // SAFETY: `out` holds sixteen numbers, and each row of `x` at least k + 1.
            unsafe {
                let mut sum = _mm512_loadu_ps(out.as_ptr());
                for (r, &slope) in slopes.iter().enumerate() {
                    sum = _mm512_fmadd_ps(_mm512_set1_ps(*x.add(r * d + k)), slope, sum);
                }
                _mm512_storeu_ps(out.as_mut_ptr(), sum);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    #[test]
    fn the_thin_products_agree_with_the_general_ones_at_every_shape() {
        let stream = Stream::new(1);
        let numbers = |n: usize, label: u64| -> Vec<f32> {
            (0..n).map(|i| stream.branch(label).normal(i as u64)).collect()
        };
        for (n, d) in [(1, 1), (5, 7), (12, 24), (13, 33), (50, 64), (97, 130), (256, 512)] {
            let (x, weights, slopes) = (numbers(n * d, 1), numbers(d * COLUMNS, 2), numbers(n * COLUMNS, 3));
            let (mut found, mut expected) = (vec![f32::NAN; n * COLUMNS], vec![0.0; n * COLUMNS]);
            thin_product(&x, &weights, &mut found, d);
            product(&x, &weights, &mut expected, d, COLUMNS);
            crate::golden::assert_close(&found, &expected, 1e-4);
            let (mut found, mut expected) = (vec![f32::NAN; d * COLUMNS], vec![0.0; d * COLUMNS]);
            thin_transposed_product(&x, &slopes, &mut found, d);
            add_transposed_product(&x, &slopes, &mut expected, d, COLUMNS);
            crate::golden::assert_close(&found, &expected, 1e-4);
        }
    }
}
