//! Rows to columns, eight by eight.
#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "vector shuffles over raw pointers, inside slices that are checked first")
)]

#[cfg(target_arch = "x86_64")]
use labelsieve_numerics::level::{Instructions, Level};

/// `n` rows of `depth` numbers, `stride` apart.
#[derive(Clone, Copy)]
pub(super) struct StridedRows<'a> {
    pub values: &'a [f32],
    pub stride: usize,
    pub n: usize,
    pub depth: usize,
}

/// Writes rows as columns of `out`, whose rows have `width` numbers each; the columns behind are filled with zeros.
pub(super) fn transpose(level: Level, rows: StridedRows, out: &mut [f32], width: usize) {
    let StridedRows { values, stride, n, depth } = rows;
    assert!(n <= width && out.len() == depth * width);
    assert!(n == 0 || depth == 0 || (n - 1) * stride + depth <= values.len());
    let (whole_n, whole_depth) = match level.instructions() {
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx2 | Instructions::Avx512 => (n / 8 * 8, depth / 8 * 8),
        _ => (0, 0),
    };
    #[cfg(target_arch = "x86_64")]
    for row in (0..whole_n).step_by(8) {
        for at in (0..whole_depth).step_by(8) {
            // SAFETY: the machine has AVX2, as the level says; eight rows of eight numbers lie inside both slices.
            unsafe {
                let from = values.as_ptr().add(row * stride + at);
                let to = out.as_mut_ptr().add(at * width + row);
                eight_by_eight(from, stride, to, width);
            }
        }
    }
    for (at, out) in out.chunks_exact_mut(width).enumerate() {
        let first = if at < whole_depth { whole_n } else { 0 };
        for (row, out) in out.iter_mut().enumerate().skip(first) {
            *out = if row < n { values[row * stride + at] } else { 0.0 };
        }
    }
}

/// # Safety
/// The machine has AVX2; eight rows of eight numbers, `stride` apart, are at both pointers.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn eight_by_eight(from: *const f32, stride: usize, to: *mut f32, to_stride: usize) {
    use std::arch::x86_64::{
        _mm256_loadu_ps, _mm256_permute2f128_ps, _mm256_setzero_ps, _mm256_shuffle_ps, _mm256_storeu_ps,
        _mm256_unpackhi_ps, _mm256_unpacklo_ps,
    };
    // SAFETY: as the caller guarantees.
    unsafe {
        let mut rows = [_mm256_setzero_ps(); 8];
        for (i, row) in rows.iter_mut().enumerate() {
            *row = _mm256_loadu_ps(from.add(i * stride));
        }
        // Four rows by four numbers: the first and the second half of each row, upper and lower four rows.
        let mut fours = [[_mm256_setzero_ps(); 4]; 2];
        for (half, four) in fours.iter_mut().enumerate() {
            let a = _mm256_unpacklo_ps(rows[4 * half], rows[4 * half + 1]);
            let b = _mm256_unpackhi_ps(rows[4 * half], rows[4 * half + 1]);
            let c = _mm256_unpacklo_ps(rows[4 * half + 2], rows[4 * half + 3]);
            let d = _mm256_unpackhi_ps(rows[4 * half + 2], rows[4 * half + 3]);
            *four = [
                _mm256_shuffle_ps::<0x44>(a, c),
                _mm256_shuffle_ps::<0xee>(a, c),
                _mm256_shuffle_ps::<0x44>(b, d),
                _mm256_shuffle_ps::<0xee>(b, d),
            ];
        }
        let [upper, lower] = fours;
        for i in 0..4 {
            _mm256_storeu_ps(to.add(i * to_stride), _mm256_permute2f128_ps::<0x20>(upper[i], lower[i]));
            _mm256_storeu_ps(to.add((i + 4) * to_stride), _mm256_permute2f128_ps::<0x31>(upper[i], lower[i]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_columns_at_every_level() {
        for (n, depth, stride, width) in
            [(1, 1, 1, 8), (8, 8, 9, 8), (13, 21, 30, 16), (32, 64, 64, 32), (0, 3, 3, 8)]
        {
            let rows: Vec<f32> = (0..40 * stride).map(|i| i as f32 + 1.0).collect();
            for level in Level::available() {
                let mut out = vec![-1.0; depth * width];
                let strided = StridedRows { values: &rows, stride, n, depth };
                transpose(level, strided, &mut out, width);
                for (at, &found) in out.iter().enumerate() {
                    let k = at / width;
                    let row = at % width;
                    let expected = if row < n { rows[row * stride + k] } else { 0.0 };
                    assert_eq!(found, expected, "{level}: {n}×{depth} at {row}, {k}");
                }
            }
        }
    }
}
