//! The AVX-512 VNNI kernel: the sums of 8 rows × 48 columns fill 24 of the 32 vector registers.

use std::arch::x86_64::*;

use super::{GROUP, GROUPS, Masks, ROW_STEP, ROWS, Sums};

/// See [`super::Multiply`].
///
/// # Safety
/// See [`super::Multiply`]; needs AVX-512 F and VNNI.
#[target_feature(enable = "avx512f,avx512vnni")]
pub unsafe fn multiply(
    rows: &[u32],
    columns: &[u32],
    depth: usize,
    row_floor: &[i32; ROWS],
    column_floor: &[i32; ROW_STEP],
    out: &mut Sums,
) -> Masks {
    debug_assert!(columns.len() >= GROUPS * depth * GROUP && rows.len() >= depth * GROUP - ROWS);
    let mut sums = [[_mm512_setzero_si512(); GROUPS]; ROWS];
    for p in 0..depth {
        // SAFETY: p < depth, so every read stays inside the groups promised by the caller.
        let vectors: [__m512i; GROUPS] = std::array::from_fn(|g| unsafe {
            _mm512_loadu_si512(columns.as_ptr().add((g * depth + p) * GROUP).cast())
        });
        for (i, sums) in sums.iter_mut().enumerate() {
            // SAFETY: word i < 8 of vector p, as promised by the caller.
            let row = unsafe { _mm512_set1_epi32(*rows.get_unchecked(p * GROUP + i) as i32) };
            for (sum, &vector) in sums.iter_mut().zip(&vectors) {
                *sum = _mm512_dpwssd_epi32(*sum, row, vector);
            }
        }
    }
    let mut found = [[0; GROUPS]; ROWS];
    // SAFETY: `column_floor` has 48 elements.
    let column_floors: [__m512i; GROUPS] =
        std::array::from_fn(|g| unsafe { _mm512_loadu_si512(column_floor.as_ptr().add(g * GROUP).cast()) });
    for i in 0..ROWS {
        let row_floor = _mm512_set1_epi32(row_floor[i]);
        for g in 0..GROUPS {
            let floor = _mm512_min_epi32(column_floors[g], row_floor);
            found[i][g] = _mm512_cmpge_epi32_mask(sums[i][g], floor);
            if found[i][g] != 0 {
                // SAFETY: the rows of `out` have 48 elements, g < 3.
                unsafe { _mm512_storeu_si512(out[i].as_mut_ptr().add(g * GROUP).cast(), sums[i][g]) };
            }
        }
    }
    found
}
