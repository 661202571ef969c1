//! The two products of the network's training: N×d with only sixteen columns on the other side.
//!
//! A general matrix product is made for wide operands; here one or two vector registers hold a whole row of the narrow one,
//! and the sums of many rows stay in registers. Every sum runs over its terms in order, each added with one rounding
//! (fused), so all levels give the same bits.

use super::fused::multiply_add;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::level::Instructions;
use crate::level::Level;

/// Columns of the narrow side: the network's hidden units.
pub(crate) const COLUMNS: usize = 16;

/// `out = x · weights` for row-major `x` (n×d), `weights` (d×16) and `out` (n×16).
pub(crate) fn thin_product(level: Level, x: &[f32], weights: &[f32], out: &mut [f32], d: usize) {
    let n = out.len() / COLUMNS;
    assert!(x.len() == n * d && weights.len() == d * COLUMNS && out.len() == n * COLUMNS, "shapes disagree");
    match level.instructions() {
        // SAFETY: the machine has the instructions of every `Level` there is, and the shapes were checked above.
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx512 => unsafe { avx512::thin_product(x, weights, out, d) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx2 => unsafe { avx2::thin_product(x, weights, out, d) },
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        Instructions::Neon => unsafe { neon::thin_product(x, weights, out, d) },
        _ => plain_product(x, weights, out, d),
    }
}

/// `out = xᵀ · gradients` for row-major `x` (n×d), `gradients` (n×16) and `out` (d×16).
pub(crate) fn thin_transposed_product(level: Level, x: &[f32], gradients: &[f32], out: &mut [f32], d: usize) {
    let n = gradients.len() / COLUMNS;
    assert!(
        x.len() == n * d && gradients.len() == n * COLUMNS && out.len() == d * COLUMNS,
        "shapes disagree"
    );
    match level.instructions() {
        // SAFETY: the machine has the instructions of every `Level` there is, and the shapes were checked above.
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx512 => unsafe { avx512::thin_transposed_product(x, gradients, out, d) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx2 => unsafe { avx2::thin_transposed_product(x, gradients, out, d) },
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        Instructions::Neon => unsafe { neon::thin_transposed_product(x, gradients, out, d) },
        _ => plain_transposed_product(x, gradients, out, d),
    }
}

fn plain_product(x: &[f32], weights: &[f32], out: &mut [f32], d: usize) {
    for (x, out) in x.chunks_exact(d.max(1)).zip(out.as_chunks_mut::<COLUMNS>().0) {
        let mut sums = [0f32; COLUMNS];
        for (&x, weights) in x.iter().zip(weights.as_chunks::<COLUMNS>().0) {
            add_row(&mut sums, x, weights);
        }
        *out = sums;
    }
}

fn plain_transposed_product(x: &[f32], gradients: &[f32], out: &mut [f32], d: usize) {
    out.fill(0.0);
    for (x, gradients) in x.chunks_exact(d.max(1)).zip(gradients.as_chunks::<COLUMNS>().0) {
        for (&x, out) in x.iter().zip(out.as_chunks_mut::<COLUMNS>().0) {
            add_row(out, x, gradients);
        }
    }
}

#[inline(always)]
fn add_row(sums: &mut [f32; COLUMNS], x: f32, row: &[f32; COLUMNS]) {
    for (sum, &value) in sums.iter_mut().zip(row) {
        *sum = multiply_add(x, value, *sum);
    }
}

/// Both products in the vectors of the module around it, which has
/// `Row`: sixteen numbers; `zero`, `load`, `store` and `add_scaled` for it; `ROWS`: rows whose sums are held in registers at a
/// time; `GRADIENT_ROWS`: rows whose gradients are, likewise.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! products {
    ($features:literal) => {
        /// Columns of `x` whose sums are held in the first-level cache at a time.
        const DEPTH: usize = 256;

        /// # Safety
        /// Needs the instructions of this module; `x` is n×d, `weights` d×16 and `out` n×16.
        #[target_feature(enable = $features)]
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
        /// Needs the instructions of this module; `x` points to R rows of d, `out` to R rows of 16.
        #[target_feature(enable = $features)]
        unsafe fn rows<const R: usize>(x: *const f32, weights: &[f32], out: *mut f32, d: usize) {
            let mut sums = [zero(); R];
            for k in 0..d {
                // SAFETY: k < d: a row of `weights` and a number of each row of `x`.
                unsafe {
                    let weight = load(weights.as_ptr().add(k * COLUMNS));
                    for (r, sum) in sums.iter_mut().enumerate() {
                        *sum = add_scaled(*sum, *x.add(r * d + k), weight);
                    }
                }
            }
            for (r, &sum) in sums.iter().enumerate() {
                // SAFETY: r < R rows of `out`.
                unsafe { store(out.add(r * COLUMNS), sum) };
            }
        }

        /// # Safety
        /// Needs the instructions of this module; `x` is n×d, `gradients` n×16 and `out` d×16.
        #[target_feature(enable = $features)]
        pub unsafe fn thin_transposed_product(x: &[f32], gradients: &[f32], out: &mut [f32], d: usize) {
            let n = gradients.len() / COLUMNS;
            out.fill(0.0);
            for (block, out) in out.chunks_mut(DEPTH * COLUMNS).enumerate() {
                let x = &x[block * DEPTH..];
                let rows = |i: usize| (x[i * d..].as_ptr(), gradients[i * COLUMNS..].as_ptr());
                let mut i = 0;
                // SAFETY: rows i..i + GRADIENT_ROWS (or the one row i) lie inside `gradients`, and their columns from
                // block * DEPTH on inside `x`, as the loops' bounds say.
                unsafe {
                    while i + GRADIENT_ROWS <= n {
                        add_rows::<GRADIENT_ROWS>(rows(i), out, d);
                        i += GRADIENT_ROWS;
                    }
                    while i < n {
                        add_rows::<1>(rows(i), out, d);
                        i += 1;
                    }
                }
            }
        }

        /// Adds R rows' share to a block of sums; the rows' gradients stay in registers.
        ///
        /// # Safety
        /// Needs the instructions of this module; `x` points to R rows, d apart, of as many numbers as `out` has rows
        /// of 16; `gradients` to R rows of 16.
        #[target_feature(enable = $features)]
        unsafe fn add_rows<const R: usize>(
            (x, gradients): (*const f32, *const f32),
            out: &mut [f32],
            d: usize,
        ) {
            // SAFETY: r < R rows of `gradients`.
            let gradients: [Row; R] = std::array::from_fn(|r| unsafe { load(gradients.add(r * COLUMNS)) });
            for (k, out) in out.chunks_exact_mut(COLUMNS).enumerate() {
                // SAFETY: `out` holds sixteen numbers, and each row of `x` at least k + 1.
                unsafe {
                    let mut sum = load(out.as_ptr());
                    for (r, &gradient) in gradients.iter().enumerate() {
                        sum = add_scaled(sum, *x.add(r * d + k), gradient);
                    }
                    store(out.as_mut_ptr(), sum);
                }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use super::COLUMNS;

    type Row = __m512;
    const ROWS: usize = 12;
    const GRADIENT_ROWS: usize = 8;

    products!("avx512f");

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn zero() -> Row {
        _mm512_setzero_ps()
    }

    /// # Safety
    /// Sixteen numbers at `from`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load(from: *const f32) -> Row {
        // SAFETY: as the caller guarantees.
        unsafe { _mm512_loadu_ps(from) }
    }

    /// # Safety
    /// Space for sixteen numbers at `to`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn store(to: *mut f32, row: Row) {
        // SAFETY: as the caller guarantees.
        unsafe { _mm512_storeu_ps(to, row) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn add_scaled(sum: Row, x: f32, row: Row) -> Row {
        _mm512_fmadd_ps(_mm512_set1_ps(x), row, sum)
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::COLUMNS;

    type Row = [__m256; 2];
    const ROWS: usize = 6;
    const GRADIENT_ROWS: usize = 6;

    products!("avx2,fma");

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn zero() -> Row {
        [_mm256_setzero_ps(); 2]
    }

    /// # Safety
    /// Sixteen numbers at `from`.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn load(from: *const f32) -> Row {
        // SAFETY: as the caller guarantees.
        unsafe { [_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8))] }
    }

    /// # Safety
    /// Space for sixteen numbers at `to`.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn store(to: *mut f32, row: Row) {
        // SAFETY: as the caller guarantees.
        unsafe {
            _mm256_storeu_ps(to, row[0]);
            _mm256_storeu_ps(to.add(8), row[1]);
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn add_scaled(sum: Row, x: f32, row: Row) -> Row {
        let x = _mm256_set1_ps(x);
        [_mm256_fmadd_ps(x, row[0], sum[0]), _mm256_fmadd_ps(x, row[1], sum[1])]
    }
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use std::arch::aarch64::*;

    use super::COLUMNS;

    type Row = [float32x4_t; 4];
    const ROWS: usize = 6;
    const GRADIENT_ROWS: usize = 6;

    products!("neon");

    #[inline]
    #[target_feature(enable = "neon")]
    fn zero() -> Row {
        [vdupq_n_f32(0.0); 4]
    }

    /// # Safety
    /// Sixteen numbers at `from`.
    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn load(from: *const f32) -> Row {
        // SAFETY: as the caller guarantees.
        std::array::from_fn(|q| unsafe { vld1q_f32(from.add(4 * q)) })
    }

    /// # Safety
    /// Space for sixteen numbers at `to`.
    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn store(to: *mut f32, row: Row) {
        for (q, &quarter) in row.iter().enumerate() {
            // SAFETY: as the caller guarantees.
            unsafe { vst1q_f32(to.add(4 * q), quarter) };
        }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn add_scaled(mut sum: Row, x: f32, row: Row) -> Row {
        for (sum, quarter) in sum.iter_mut().zip(row) {
            *sum = vfmaq_n_f32(*sum, quarter, x);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    fn naive(n: usize, d: usize, term: impl Fn(usize, usize) -> (f32, f32)) -> Vec<f32> {
        let cell = |i: usize| {
            (0..d).map(|k| term(i, k)).map(|(a, b)| f64::from(a) * f64::from(b)).sum::<f64>() as f32
        };
        (0..n * COLUMNS).map(cell).collect()
    }

    #[test]
    fn the_thin_products_equal_the_sums_of_their_definition_and_have_the_same_bits_at_every_level() {
        let stream = Stream::new(1);
        let numbers = |n: usize, label: u64| -> Vec<f32> {
            (0..n).map(|i| stream.branch(label).normal(i as u64)).collect()
        };
        for (n, d) in [(0, 3), (1, 1), (5, 7), (12, 24), (13, 33), (50, 64), (97, 130), (256, 512), (31, 257)]
        {
            let (x, weights, gradients) =
                (numbers(n * d, 1), numbers(d * COLUMNS, 2), numbers(n * COLUMNS, 3));
            let forward = naive(n, d, |at, k| (x[at / COLUMNS * d + k], weights[k * COLUMNS + at % COLUMNS]));
            let backward =
                naive(d, n, |at, i| (x[i * d + at / COLUMNS], gradients[i * COLUMNS + at % COLUMNS]));
            let found: Vec<[Vec<f32>; 2]> = Level::available()
                .into_iter()
                .map(|level| {
                    let mut found = [vec![f32::NAN; n * COLUMNS], vec![f32::NAN; d * COLUMNS]];
                    thin_product(level, &x, &weights, &mut found[0], d);
                    thin_transposed_product(level, &x, &gradients, &mut found[1], d);
                    crate::golden::assert_close(&found[0], &forward, 1e-4);
                    crate::golden::assert_close(&found[1], &backward, 1e-4);
                    found
                })
                .collect();
            assert!(found.iter().all(|other| *other == found[0]), "{n}×{d}");
        }
    }
}
