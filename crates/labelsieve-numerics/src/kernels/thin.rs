//! The two matrix products of training: N×d with only sixteen columns on the other side.
//!
//! A general matrix product is made for wide operands. In the forward pass, one or two vector registers hold a whole row of the
//! narrow operand, and the sums of many rows stay in registers. In the backward pass, three of four gradients are zero (dropout
//! zeroes half of the units, the ReLU half of the rest), so the rows with gradients are listed per unit, and the sums of a
//! stretch of columns stay in registers for the length of the list. Every sum adds its terms in order with one rounding each
//! (fused), so all levels give the same bits.

use super::fused::multiply_add;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::level::Instructions;
use crate::level::Level;

/// Columns of the narrow side: the network's hidden units.
pub const COLUMNS: usize = 16;

/// Rows per call of the products: their numbers stay in the second-level cache.
pub const BLOCK: usize = 64;

/// `out = x · weights` for row-major `x` (n×d), `weights` (d×16) and `out` (n×16). `ahead`, which is needed next, is
/// prefetched meanwhile; it may be empty.
pub fn thin_product(level: Level, x: &[f32], weights: &[f32], out: &mut [f32], d: usize, ahead: &[f32]) {
    let n = out.len() / COLUMNS;
    assert!(x.len() == n * d && weights.len() == d * COLUMNS && out.len() == n * COLUMNS, "shapes disagree");
    match level.instructions() {
        // SAFETY: the machine has the instructions of every `Level` there is, and the shapes were checked above.
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx512 => unsafe { avx512::thin_product(x, weights, out, d, ahead) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx2 => unsafe { avx2::thin_product(x, weights, out, d, ahead) },
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        Instructions::Neon => unsafe { neon::thin_product(x, weights, out, d, ahead) },
        _ => plain_product(x, weights, out, d, ahead),
    }
}

/// `out += gradientsᵀ · x` for at most [`BLOCK`] rows `x` of d numbers, `gradients` (n×16), most of them zero, and `out` (16×d).
/// Zero gradients add nothing, not even a sign.
pub fn add_gradients(level: Level, x: &[&[f32]], gradients: &[f32], out: &mut [f32], d: usize) {
    assert!(
        x.len() <= BLOCK && gradients.len() == x.len() * COLUMNS && out.len() == d * COLUMNS,
        "shapes disagree"
    );
    assert!(x.iter().all(|row| row.len() == d), "rows of different length");
    match level.instructions() {
        // SAFETY: the machine has the instructions of every `Level` there is, and the shapes were checked above.
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx512 => unsafe { avx512::add_gradients(x, gradients, out, d) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx2 => unsafe { avx2::add_gradients(x, gradients, out, d) },
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        Instructions::Neon => unsafe { neon::add_gradients(x, gradients, out, d) },
        _ => plain_add_gradients(x, gradients, out, d),
    }
}

fn plain_product(x: &[f32], weights: &[f32], out: &mut [f32], d: usize, _: &[f32]) {
    for (x, out) in x.chunks_exact(d.max(1)).zip(out.as_chunks_mut::<COLUMNS>().0) {
        let mut sums = [0f32; COLUMNS];
        for (&x, weights) in x.iter().zip(weights.as_chunks::<COLUMNS>().0) {
            add_row(&mut sums, x, weights);
        }
        *out = sums;
    }
}

fn plain_add_gradients(x: &[&[f32]], gradients: &[f32], out: &mut [f32], d: usize) {
    for (x, gradients) in x.iter().zip(gradients.as_chunks::<COLUMNS>().0) {
        for (&gradient, out) in gradients.iter().zip(out.chunks_exact_mut(d.max(1))) {
            if gradient != 0.0 {
                out.iter_mut().zip(*x).for_each(|(sum, &x)| *sum = multiply_add(gradient, x, *sum));
            }
        }
    }
}

/// The rows with a nonzero gradient, by unit.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
struct NonzeroRows {
    rows: [[u8; BLOCK]; COLUMNS],
    lengths: [usize; COLUMNS],
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
impl NonzeroRows {
    /// Branch-free, since zeros are unpredictable.
    #[inline(always)]
    fn new(gradients: &[f32]) -> NonzeroRows {
        let mut rows = [[0u8; BLOCK]; COLUMNS];
        let mut lengths = [0usize; COLUMNS];
        for (r, gradients) in gradients.as_chunks::<COLUMNS>().0.iter().enumerate() {
            for u in 0..COLUMNS {
                rows[u][lengths[u] % BLOCK] = r as u8;
                lengths[u] += usize::from(gradients[u] != 0.0);
            }
        }
        NonzeroRows { rows, lengths }
    }

    #[inline(always)]
    fn of(&self, unit: usize) -> &[u8] {
        &self.rows[unit][..self.lengths[unit]]
    }
}

#[inline(always)]
fn add_row(sums: &mut [f32; COLUMNS], x: f32, row: &[f32; COLUMNS]) {
    for (sum, &value) in sums.iter_mut().zip(row) {
        *sum = multiply_add(x, value, *sum);
    }
}

/// Both products in the vectors of the surrounding module. It defines `Row`: sixteen numbers, with `zero`, `load`, `store` and
/// `add_scaled`; `ROWS`: rows whose sums are held in registers at a time; `STRETCH`: likewise, groups of sixteen columns; and
/// `fetch`, which prefetches a cache line.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! products {
    ($features:literal) => {
        /// # Safety
        /// Needs the instructions of this module; `x` is n×d, `weights` d×16 and `out` n×16.
        #[target_feature(enable = $features)]
        pub unsafe fn thin_product(x: &[f32], weights: &[f32], out: &mut [f32], d: usize, ahead: &[f32]) {
            let n = out.len() / COLUMNS;
            let mut i = 0;
            // SAFETY: rows i..i + ROWS (or the one row i) lie inside `x` and `out`, as the loops' bounds say.
            unsafe {
                while i + ROWS <= n {
                    let ahead = ahead.get(i * d..).unwrap_or_default();
                    rows::<ROWS>(x.as_ptr().add(i * d), weights, out.as_mut_ptr().add(i * COLUMNS), d, ahead);
                    i += ROWS;
                }
                while i < n {
                    rows::<1>(x.as_ptr().add(i * d), weights, out.as_mut_ptr().add(i * COLUMNS), d, &[]);
                    i += 1;
                }
            }
        }

        /// # Safety
        /// Needs the instructions of this module; `x` points to R rows of d, `out` to R rows of 16.
        #[target_feature(enable = $features)]
        unsafe fn rows<const R: usize>(
            x: *const f32,
            weights: &[f32],
            out: *mut f32,
            d: usize,
            ahead: &[f32],
        ) {
            let mut sums = [zero(); R];
            for start in (0..d).step_by(COLUMNS) {
                if !ahead.is_empty() {
                    for r in 0..R {
                        // A line of each row to come; harmless past the end.
                        fetch(ahead.as_ptr().wrapping_add(r * d + start));
                    }
                }
                for k in start..(start + COLUMNS).min(d) {
                    // SAFETY: k < d: a row of `weights` and a number of each row of `x`.
                    unsafe {
                        let weight = load(weights.as_ptr().add(k * COLUMNS));
                        for (r, sum) in sums.iter_mut().enumerate() {
                            *sum = add_scaled(*sum, *x.add(r * d + k), weight);
                        }
                    }
                }
            }
            for (r, &sum) in sums.iter().enumerate() {
                // SAFETY: r < R rows of `out`.
                unsafe { store(out.add(r * COLUMNS), sum) };
            }
        }

        /// # Safety
        /// Needs the instructions of this module; `x` has at most [`BLOCK`] rows of d, `gradients` as many of 16, and `out` is 16×d.
        #[target_feature(enable = $features)]
        pub unsafe fn add_gradients(x: &[&[f32]], gradients: &[f32], out: &mut [f32], d: usize) {
            let nonzero = NonzeroRows::new(gradients);
            let mut from = 0;
            // SAFETY: the columns asked for end at d at most, as the loops' bounds say.
            unsafe {
                while from + STRETCH * COLUMNS <= d {
                    add_stretch::<STRETCH>(x, gradients, &nonzero, out, d, from);
                    from += STRETCH * COLUMNS;
                }
                while from + COLUMNS <= d {
                    add_stretch::<1>(x, gradients, &nonzero, out, d, from);
                    from += COLUMNS;
                }
            }
            for (u, out) in out.chunks_exact_mut(d.max(1)).enumerate() {
                for &r in nonzero.of(u) {
                    let r = usize::from(r);
                    let gradient = gradients[r * COLUMNS + u];
                    for (sum, &x) in out[from..].iter_mut().zip(&x[r][from..]) {
                        *sum = gradient.mul_add(x, *sum);
                    }
                }
            }
        }

        /// The sums of S sixteens of columns, from column `from` on.
        ///
        /// # Safety
        /// As for [`add_gradients`], with from + 16 S columns in each row; `nonzero` lists those of `gradients`.
        #[target_feature(enable = $features)]
        unsafe fn add_stretch<const S: usize>(
            x: &[&[f32]],
            gradients: &[f32],
            nonzero: &NonzeroRows,
            out: &mut [f32],
            d: usize,
            from: usize,
        ) {
            for u in 0..COLUMNS {
                // SAFETY: S sixteens from column `from` on lie inside row u of `out` and inside every row of `x`; the lists have
                // rows of `x` and `gradients` only.
                unsafe {
                    let out = out.as_mut_ptr().add(u * d + from);
                    let mut sums: [Row; S] = std::array::from_fn(|s| load(out.add(s * COLUMNS)));
                    for &r in nonzero.of(u) {
                        let r = usize::from(r);
                        let x = x.get_unchecked(r).as_ptr().add(from);
                        let gradient = *gradients.get_unchecked(r * COLUMNS + u);
                        for (s, sum) in sums.iter_mut().enumerate() {
                            *sum = add_scaled(*sum, gradient, load(x.add(s * COLUMNS)));
                        }
                    }
                    for (s, &sum) in sums.iter().enumerate() {
                        store(out.add(s * COLUMNS), sum);
                    }
                }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use super::{COLUMNS, NonzeroRows};

    type Row = __m512;
    const ROWS: usize = 12;
    const STRETCH: usize = 8;

    products!("avx512f");

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn fetch(line: *const f32) {
        _mm_prefetch::<_MM_HINT_T1>(line.cast());
    }

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

    use super::{COLUMNS, NonzeroRows};

    type Row = [__m256; 2];
    const ROWS: usize = 6;
    const STRETCH: usize = 4;

    products!("avx2,fma");

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn fetch(line: *const f32) {
        _mm_prefetch::<_MM_HINT_T1>(line.cast());
    }

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

    use super::{COLUMNS, NonzeroRows};

    type Row = [float32x4_t; 4];
    const ROWS: usize = 6;
    const STRETCH: usize = 4;

    products!("neon");

    /// Does nothing: there is no stable intrinsic for prefetching.
    #[inline]
    fn fetch(_line: *const f32) {}

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

    #[track_caller]
    fn assert_close(found: &[f32], expected: &[f32], tolerance: f32) {
        assert_eq!(found.len(), expected.len());
        for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
            assert!((found - expected).abs() <= tolerance, "at {i}: found {found}, expected {expected}");
        }
    }

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
        for (n, d) in [(0, 3), (1, 1), (5, 7), (12, 24), (13, 33), (50, 64), (63, 130), (64, 512), (31, 257)]
        {
            let x = numbers(n * d, 1);
            let weights = numbers(d * COLUMNS, 2);
            let rows: Vec<&[f32]> = x.chunks_exact(d).collect();
            // Most gradients are zero, of either sign; the sums start with what is there.
            let keep =
                |(i, g): (usize, f32)| if stream.bits(i as u64).is_multiple_of(4) { g } else { 0.0 * g };
            let gradients: Vec<f32> = numbers(n * COLUMNS, 3).into_iter().enumerate().map(keep).collect();
            let start = numbers(d * COLUMNS, 4);
            let forward = naive(n, d, |at, k| (x[at / COLUMNS * d + k], weights[k * COLUMNS + at % COLUMNS]));
            let mut backward = naive(d, n, |at, i| (x[i * d + at % d], gradients[i * COLUMNS + at / d]));
            backward.iter_mut().zip(&start).for_each(|(sum, start)| *sum += start);
            let found: Vec<[Vec<f32>; 2]> = Level::available()
                .into_iter()
                .map(|level| {
                    let mut found = [vec![f32::NAN; n * COLUMNS], start.clone()];
                    let ahead = &x[x.len() / 2..];
                    thin_product(level, &x, &weights, &mut found[0], d, ahead);
                    add_gradients(level, &rows, &gradients, &mut found[1], d);
                    assert_close(&found[0], &forward, 1e-4);
                    assert_close(&found[1], &backward, 1e-4);
                    found
                })
                .collect();
            assert!(found.iter().all(|other| *other == found[0]), "{n}×{d}");
        }
    }

    #[test]
    fn blocks_of_rows_add_up_as_if_they_were_one() {
        let n = BLOCK;
        let d = 40;
        let stream = Stream::new(2);
        let x: Vec<f32> = (0..n * d).map(|i| stream.normal(i as u64)).collect();
        let rows: Vec<&[f32]> = x.chunks_exact(d).collect();
        let gradients: Vec<f32> = (0..n * COLUMNS).map(|i| stream.normal(i as u64).max(0.0)).collect();
        for level in Level::available() {
            let mut whole = vec![0f32; d * COLUMNS];
            let mut parts = vec![0f32; d * COLUMNS];
            add_gradients(level, &rows, &gradients, &mut whole, d);
            add_gradients(level, &rows[..11], &gradients[..11 * COLUMNS], &mut parts, d);
            add_gradients(level, &rows[11..], &gradients[11 * COLUMNS..], &mut parts, d);
            assert_eq!(whole, parts, "{level}");
        }
    }
}
