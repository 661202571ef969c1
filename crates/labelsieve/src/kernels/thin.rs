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

/// `out = slopesᵀ · x` for row-major `x` (n×d), `slopes` (n×16) and `out` (16×d).
///
/// Most slopes are zero: a hidden unit passes nothing back where dropout or its ReLU held it still. Only the others are
/// multiplied, unit by unit.
pub(crate) fn thin_transposed_product(x: &[f32], slopes: &[f32], out: &mut [f32], d: usize) {
    let n = slopes.len() / COLUMNS;
    assert!(x.len() == n * d && slopes.len() == n * COLUMNS && out.len() == d * COLUMNS, "shapes disagree");
    out.fill(0.0);
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        const BLOCK: usize = 128; // rows that stay in the second-level cache while unit after unit reads them
        let mut active = Vec::with_capacity(BLOCK);
        for (x, slopes) in x.chunks(BLOCK * d).zip(slopes.chunks(BLOCK * COLUMNS)) {
            for (unit, out) in out.chunks_exact_mut(d).enumerate() {
                active.clear();
                let of_unit = slopes.iter().skip(unit).step_by(COLUMNS).enumerate();
                active.extend(
                    of_unit.filter(|(_, slope)| **slope != 0.0).map(|(row, &slope)| (row * d, slope)),
                );
                // SAFETY: the feature is there; every start is that of a row of d numbers in `x`, and `out` holds d.
                unsafe { avx512::add_rows(x, &active, out) };
            }
        }
        return;
    }
    add_transposed_product(slopes, x, out, COLUMNS, d);
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use super::COLUMNS;

    /// Rows whose sums are held in registers at a time.
    const ROWS: usize = 12;

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

    /// `out += Σ slope · row` over the (start, slope) of some rows of `x`.
    ///
    /// # Safety
    /// Needs AVX-512 F; as many numbers as `out` has follow each start in `x`.
    #[target_feature(enable = "avx512f")]
    pub unsafe fn add_rows(x: &[f32], rows: &[(usize, f32)], out: &mut [f32]) {
        let d = out.len();
        let mut k = 0;
        // SAFETY: columns k.. up to d at most, as the loops' bounds say.
        unsafe {
            while k + 8 * COLUMNS <= d {
                add_columns::<8>(x.as_ptr().add(k), rows, out.as_mut_ptr().add(k), !0);
                k += 8 * COLUMNS;
            }
            while k < d {
                let rest = (d - k).min(COLUMNS);
                let mask = ((1u32 << rest) - 1) as u16;
                add_columns::<1>(x.as_ptr().add(k), rows, out.as_mut_ptr().add(k), mask);
                k += rest;
            }
        }
    }

    /// B vectors of 16 columns, whose sums stay in registers. Of each vector only the columns of `mask` are touched.
    ///
    /// # Safety
    /// Needs AVX-512 F; the masked columns lie inside the rows of `x` and inside `out`.
    #[target_feature(enable = "avx512f")]
    unsafe fn add_columns<const B: usize>(x: *const f32, rows: &[(usize, f32)], out: *mut f32, mask: u16) {
        // SAFETY: vector b of `out`, as promised by the caller.
        let mut sums: [__m512; B] =
            std::array::from_fn(|b| unsafe { _mm512_maskz_loadu_ps(mask, out.add(b * COLUMNS)) });
        for &(start, slope) in rows {
            let slope = _mm512_set1_ps(slope);
            for (b, sum) in sums.iter_mut().enumerate() {
                // SAFETY: vector b of a row, as promised by the caller.
                let row = unsafe { _mm512_maskz_loadu_ps(mask, x.add(start + b * COLUMNS)) };
                *sum = _mm512_fmadd_ps(row, slope, *sum);
            }
        }
        for (b, &sum) in sums.iter().enumerate() {
            // SAFETY: vector b of `out`, as promised by the caller.
            unsafe { _mm512_mask_storeu_ps(out.add(b * COLUMNS), mask, sum) };
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
            let slopes: Vec<f32> = slopes.iter().map(|s| s.max(0.0)).collect(); // half of them are zero
            thin_transposed_product(&x, &slopes, &mut found, d);
            add_transposed_product(&slopes, &x, &mut expected, COLUMNS, d);
            crate::golden::assert_close(&found, &expected, 1e-4);
        }
    }
}
