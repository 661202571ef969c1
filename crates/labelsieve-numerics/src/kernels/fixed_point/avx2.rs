//! The AVX2 kernels: pairs are multiplied and added in two instructions, or in one with VNNI. The sums of 4 rows × 24 columns
//! fill 12 of the 16 vector registers.

use std::arch::x86_64::*;

use super::{GROUP, GROUPS, Masks, ROW_STEP, ROWS, Sums};

/// Columns of a vector.
const LANES: usize = 8;
/// Rows and vectors of columns at a time.
const TALL: usize = 4;
const WIDE: usize = 3;

/// The kernel in a module for these instructions, which has `add_products`.
macro_rules! kernel {
    ($features:literal) => {
        /// See [`super::Multiply`].
        ///
        /// # Safety
        /// See [`super::Multiply`]; needs the instructions of this module.
        #[target_feature(enable = $features)]
        pub unsafe fn multiply(
            rows: &[u32],
            columns: &[u32],
            depth: usize,
            row_floor: &[i32; ROWS],
            column_floor: &[i32; ROW_STEP],
            out: &mut Sums,
        ) -> Masks {
            debug_assert!(columns.len() >= GROUPS * depth * GROUP && rows.len() >= depth * GROUP - ROWS);
            let mut found = [[0; GROUPS]; ROWS];
            for first_vector in (0..ROW_STEP / LANES).step_by(WIDE) {
                for first_row in (0..ROWS).step_by(TALL) {
                    // SAFETY: as promised by the caller; four of the 8 rows, three of the 6 vectors of columns.
                    let sums = unsafe { part(rows, columns, depth, first_row, first_vector) };
                    for (i, sums) in (first_row..).zip(sums) {
                        let row_floor = _mm256_set1_epi32(row_floor[i]);
                        for (v, sum) in (first_vector..).zip(sums) {
                            // SAFETY: `column_floor` and the rows of `out` have 6 vectors of 8 elements.
                            unsafe {
                                let floor = _mm256_loadu_si256(column_floor.as_ptr().add(v * LANES).cast());
                                let below = _mm256_cmpgt_epi32(_mm256_min_epi32(floor, row_floor), sum);
                                let mask = !_mm256_movemask_ps(_mm256_castsi256_ps(below)) & 0xff;
                                if mask != 0 {
                                    found[i][v / 2] |= (mask as u16) << (v % 2 * LANES);
                                    _mm256_storeu_si256(out[i].as_mut_ptr().add(v * LANES).cast(), sum);
                                }
                            }
                        }
                    }
                }
            }
            found
        }

        /// The sums of four rows and three vectors of columns.
        ///
        /// # Safety
        /// Needs the instructions of this module; `rows` and `columns` as in [`multiply`].
        #[target_feature(enable = $features)]
        unsafe fn part(
            rows: &[u32],
            columns: &[u32],
            depth: usize,
            first_row: usize,
            first_vector: usize,
        ) -> [[__m256i; WIDE]; TALL] {
            let start = |v: usize| v / 2 * depth * GROUP + v % 2 * LANES;
            let starts: [usize; WIDE] = std::array::from_fn(|v| start(first_vector + v));
            let mut sums = [[_mm256_setzero_si256(); WIDE]; TALL];
            for p in 0..depth {
                // SAFETY: p < depth, so every read stays inside the groups promised by the caller.
                let vectors: [__m256i; WIDE] = std::array::from_fn(|v| unsafe {
                    _mm256_loadu_si256(columns.as_ptr().add(starts[v] + p * GROUP).cast())
                });
                for (i, sums) in sums.iter_mut().enumerate() {
                    let word = p * GROUP + first_row + i;
                    // SAFETY: word first_row + i < 8 of vector p, as promised by the caller.
                    let row = unsafe { _mm256_set1_epi32(*rows.get_unchecked(word) as i32) };
                    for (sum, &vector) in sums.iter_mut().zip(&vectors) {
                        *sum = add_products(*sum, row, vector);
                    }
                }
            }
            sums
        }
    };
}

/// AVX2 alone.
pub mod plain {
    use super::*;

    #[target_feature(enable = "avx2")]
    #[inline]
    fn add_products(sum: __m256i, a: __m256i, b: __m256i) -> __m256i {
        _mm256_add_epi32(sum, _mm256_madd_epi16(a, b))
    }

    kernel!("avx2");
}

/// AVX2 with VNNI.
pub mod vnni {
    use super::*;

    #[target_feature(enable = "avx2,avxvnni")]
    #[inline]
    fn add_products(sum: __m256i, a: __m256i, b: __m256i) -> __m256i {
        _mm256_dpwssd_avx_epi32(sum, a, b)
    }

    kernel!("avx2,avxvnni");
}
