//! The inner product that defines similarity.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::level::{Instructions, Level};

/// The inner product a·b: *the* similarity of this crate.
///
/// Thirty-two lanes add up every thirty-second product each, then the lanes are summed by halves. Every product and
/// every sum is rounded separately, in this order, on every machine: the same two rows give the same bits wherever and
/// whenever they are compared, and `dot(a, b) == dot(b, a)`. The reciprocity test of the graph relies on that.
#[inline]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    dot_at(Level::current(), a, b)
}

/// [`dot`], the same bits, by the instructions of `level`.
#[inline]
pub fn dot_at(level: Level, a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len(), "rows of different length");
    match level.instructions() {
        // SAFETY: the machine has the instructions of every `Level` there is, and the lengths agree.
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx512 => unsafe { x86::dot_avx512(a, b) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx2 => unsafe { x86::dot_avx(a, b) },
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        Instructions::Neon => unsafe { neon::dot(a, b) },
        _ => dot_portable(a, b),
    }
}

const LANES: usize = 32;

fn dot_portable(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0f32; LANES];
    for (a, b) in a.chunks(LANES).zip(b.chunks(LANES)) {
        for (lane, (a, b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
            *lane += a * b;
        }
    }
    sum_by_halves(lanes)
}

/// Adds the products after the last whole vector, then sums the lanes.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
fn finish(mut lanes: [f32; LANES], a_rest: &[f32], b_rest: &[f32]) -> f32 {
    for (lane, (a, b)) in lanes.iter_mut().zip(a_rest.iter().zip(b_rest)) {
        *lane += a * b;
    }
    sum_by_halves(lanes)
}

/// Lanes 16 apart are added, then 8 apart, 4, 2, 1.
fn sum_by_halves(mut lanes: [f32; LANES]) -> f32 {
    for width in [16, 8, 4, 2, 1] {
        for l in 0..width {
            lanes[l] += lanes[l + width];
        }
    }
    lanes[0] + 0.0 // -0.0 becomes 0.0, so that ties compare equal
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{LANES, finish};

    /// # Safety
    /// Needs AVX-512 F, and `a` as long as `b`.
    #[target_feature(enable = "avx512f")]
    pub unsafe fn dot_avx512(a: &[f32], b: &[f32]) -> f32 {
        let mut sums = [_mm512_setzero_ps(); 2];
        let whole = a.len() / LANES * LANES;
        for start in (0..whole).step_by(LANES) {
            for (h, sum) in sums.iter_mut().enumerate() {
                // SAFETY: sixteen numbers from start + 16h on lie inside both slices.
                unsafe {
                    let a = _mm512_loadu_ps(a.as_ptr().add(start + 16 * h));
                    let b = _mm512_loadu_ps(b.as_ptr().add(start + 16 * h));
                    *sum = _mm512_add_ps(*sum, _mm512_mul_ps(a, b));
                }
            }
        }
        let mut lanes = [0f32; LANES];
        // SAFETY: two vectors of sixteen fill the 32 lanes.
        unsafe {
            _mm512_storeu_ps(lanes.as_mut_ptr(), sums[0]);
            _mm512_storeu_ps(lanes.as_mut_ptr().add(16), sums[1]);
        }
        finish(lanes, &a[whole..], &b[whole..])
    }

    /// # Safety
    /// Needs AVX, and `a` as long as `b`.
    #[target_feature(enable = "avx")]
    pub unsafe fn dot_avx(a: &[f32], b: &[f32]) -> f32 {
        let mut sums = [_mm256_setzero_ps(); 4];
        let whole = a.len() / LANES * LANES;
        for start in (0..whole).step_by(LANES) {
            for (q, sum) in sums.iter_mut().enumerate() {
                // SAFETY: eight numbers from start + 8q on lie inside both slices.
                unsafe {
                    let a = _mm256_loadu_ps(a.as_ptr().add(start + 8 * q));
                    let b = _mm256_loadu_ps(b.as_ptr().add(start + 8 * q));
                    *sum = _mm256_add_ps(*sum, _mm256_mul_ps(a, b));
                }
            }
        }
        let mut lanes = [0f32; LANES];
        for (q, &sum) in sums.iter().enumerate() {
            // SAFETY: four vectors of eight fill the 32 lanes.
            unsafe { _mm256_storeu_ps(lanes.as_mut_ptr().add(8 * q), sum) };
        }
        finish(lanes, &a[whole..], &b[whole..])
    }
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use std::arch::aarch64::*;

    use super::{LANES, finish};

    /// # Safety
    /// Needs `a` as long as `b`.
    #[target_feature(enable = "neon")]
    pub unsafe fn dot(a: &[f32], b: &[f32]) -> f32 {
        let mut sums = [vdupq_n_f32(0.0); 8];
        let whole = a.len() / LANES * LANES;
        for start in (0..whole).step_by(LANES) {
            for (e, sum) in sums.iter_mut().enumerate() {
                // SAFETY: four numbers from start + 4e on lie inside both slices.
                unsafe {
                    let a = vld1q_f32(a.as_ptr().add(start + 4 * e));
                    let b = vld1q_f32(b.as_ptr().add(start + 4 * e));
                    *sum = vaddq_f32(*sum, vmulq_f32(a, b));
                }
            }
        }
        let mut lanes = [0f32; LANES];
        for (e, &sum) in sums.iter().enumerate() {
            // SAFETY: eight vectors of four fill the 32 lanes.
            unsafe { vst1q_f32(lanes.as_mut_ptr().add(4 * e), sum) };
        }
        finish(lanes, &a[whole..], &b[whole..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    fn rows(n: u64) -> (Vec<f32>, Vec<f32>) {
        let stream = Stream::new(n);
        ((0..n).map(|i| stream.normal(i)).collect(), (0..n).map(|i| stream.normal(i + 1000)).collect())
    }

    #[test]
    fn dot_agrees_with_double_precision_at_every_length_and_level() {
        for n in 0..200 {
            let (a, b) = rows(n);
            let exact: f64 = a.iter().zip(&b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
            for level in Level::available() {
                assert!((f64::from(dot_at(level, &a, &b)) - exact).abs() < 1e-4, "length {n}, {level}");
            }
        }
    }

    #[test]
    fn dot_gives_the_same_bits_at_every_level_and_either_way_round() {
        for n in (0..100).chain([515]) {
            let (a, b) = rows(n);
            let expected = dot_portable(&a, &b).to_bits();
            for level in Level::available() {
                assert_eq!(dot_at(level, &a, &b).to_bits(), expected, "length {n}, {level}");
                assert_eq!(dot_at(level, &b, &a).to_bits(), expected, "length {n}, {level}");
            }
        }
    }

    #[test]
    fn a_negative_zero_never_comes_out() {
        for level in Level::available() {
            assert_eq!(dot_at(level, &[-1.0, 0.0], &[0.0, 1.0]).to_bits(), 0.0f32.to_bits());
        }
    }
}
