//! A screen in 16-bit integers: the same products at twice the speed, with a measured error.
//!
//! Numbers of a unit row lie in [-1, 1] and become whole multiples of 1/32767. The AVX-512 VNNI instruction multiplies
//! pairs of them and sums in 32 bits, exactly: no partial sum can pass 32767², by Cauchy and Schwarz. How far a score may
//! be off is known before the first product: rounding moves row i by eᵢ = ‖vᵢ − v̂ᵢ‖, and
//! |a·b − â·b̂| ≤ ‖a‖·‖b − b̂‖ + ‖a − â‖·‖b̂‖. Sixteen-bit floats are as fast but eight times less exact, and every
//! doubtful pair costs an inner product later.

use rayon::prelude::*;

use super::screen::{Hit, ROW_STEP, Tile, rounding_bound};
use crate::features::Features;
use crate::level::Level;

/// Rows in groups of 16: for each pair of columns, the 16 rows' two numbers, so that one load brings a vector of rows
/// and any single row can be broadcast from the same place.
pub(crate) struct FixedPointScreen {
    words: Vec<u32>,
    /// Pairs of columns.
    depth: usize,
    error: f32,
}

const GROUP: usize = 16;
/// What stands for 1.
const ONE: f32 = 32767.0;

impl FixedPointScreen {
    /// Rounds and packs all rows, the last block padded with zero rows; none where `level` lacks the instruction.
    pub fn new(level: Level, features: &Features) -> Option<FixedPointScreen> {
        if !level.multiplies_integers() {
            return None;
        }
        let depth = features.dim().div_ceil(2);
        let n_groups = features.len().next_multiple_of(ROW_STEP) / GROUP;
        let mut words = vec![0u32; n_groups * depth * GROUP];
        let largest_move = words
            .par_chunks_mut(depth * GROUP)
            .enumerate()
            .map(|(group, words)| pack_group(features, group * GROUP, words))
            .reduce(|| 0.0, f32::max);
        // Lengths stay below 1.01 after rounding; turning the sum into a float rounds once more.
        let error = 2.0 * 1.01 * largest_move + rounding_bound(features.dim());
        Some(FixedPointScreen { words, depth, error })
    }

    /// A bound on the error of every score.
    pub fn error_bound(&self) -> f32 {
        self.error
    }

    /// See [`super::Screen::hits`]. Ranges start at multiples of [`ROW_STEP`].
    #[cfg(target_arch = "x86_64")]
    pub fn hits(&self, tile: &Tile, hits: &mut Vec<Hit>) {
        let aligned = |start: usize| start.is_multiple_of(ROW_STEP);
        assert!(aligned(tile.rows.start) && aligned(tile.columns.start), "unaligned tile");
        assert!(tile.rows.len() == tile.row_floor.len() && tile.columns.len() == tile.column_floor.len());
        let mut scores = [[0f32; ROW_STEP]; avx512::ROWS];
        for j in (0..tile.columns.len()).step_by(ROW_STEP) {
            let mut column_floor = [f32::INFINITY; ROW_STEP];
            let m = ROW_STEP.min(tile.columns.len() - j);
            column_floor[..m].copy_from_slice(&tile.column_floor[j..j + m]);
            let columns = self.group_words(tile.columns.start + j, ROW_STEP);
            for i in (0..tile.rows.len()).step_by(avx512::ROWS) {
                let n = avx512::ROWS.min(tile.rows.len() - i);
                let mut row_floor = [f32::INFINITY; avx512::ROWS];
                row_floor[..n].copy_from_slice(&tile.row_floor[i..i + n]);
                let row = tile.rows.start + i;
                let rows = &self.group_words(row / GROUP * GROUP, GROUP)[row % GROUP..];
                // SAFETY: `new` made this screen, so the machine has the instruction. `columns` holds three whole groups of `depth` vectors;
                // `rows` starts at most 8 words into a group of `depth` vectors, and 8 words are read from each.
                let found = unsafe {
                    avx512::tile(rows, columns, self.depth, &row_floor, &column_floor, &mut scores)
                };
                collect_hits(&found, &scores, (i, n), (j, m), hits);
            }
        }
    }

    /// See [`super::Screen::hits`]; unreachable here, since `new` makes no such screen on such a machine.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn hits(&self, _tile: &Tile, _hits: &mut Vec<Hit>) {
        unreachable!("no level multiplies integers")
    }

    fn group_words(&self, row: usize, n_rows: usize) -> &[u32] {
        let width = self.depth * GROUP;
        &self.words[row / GROUP * width..(row + n_rows) / GROUP * width]
    }
}

/// Packs up to 16 rows and returns how far rounding moved the one it moved most.
fn pack_group(features: &Features, first_row: usize, words: &mut [u32]) -> f32 {
    let mut largest_move = 0f64;
    for lane in 0..GROUP.min(features.len().saturating_sub(first_row)) {
        let mut square = 0f64;
        for (p, pair) in features.row(first_row + lane).chunks(2).enumerate() {
            let mut word = 0;
            for (half, &value) in pair.iter().enumerate() {
                let rounded = (value * ONE).round_ties_even().clamp(-ONE, ONE);
                square += f64::from(value - rounded / ONE).powi(2);
                word |= u32::from(rounded as i16 as u16) << (16 * half);
            }
            words[p * GROUP + lane] = word;
        }
        largest_move = largest_move.max(square);
    }
    (largest_move.sqrt() * 1.000_001) as f32
}

/// Turns the masks of one register tile, at row `i` and column `j` with `n` × `m` real pairs, into hits.
#[cfg(target_arch = "x86_64")]
fn collect_hits(
    found: &avx512::Masks,
    scores: &avx512::Scores,
    (i, n): (usize, usize),
    (j, m): (usize, usize),
    hits: &mut Vec<Hit>,
) {
    for (a, (masks, scores)) in found.iter().zip(scores).take(n).enumerate() {
        for (g, &mask) in masks.iter().enumerate() {
            let mut mask = mask;
            while mask != 0 {
                let b = g * GROUP + mask.trailing_zeros() as usize;
                if b < m {
                    hits.push(Hit { i: (i + a) as u32, j: (j + b) as u32, score: scores[b] });
                }
                mask &= mask - 1;
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::{GROUP, ONE, ROW_STEP};
    use std::arch::x86_64::*;

    /// Rows of one register tile: 8 rows × 48 columns fill 24 of the 32 vector registers.
    pub const ROWS: usize = 8;
    const GROUPS: usize = ROW_STEP / GROUP;

    /// The scores of one register tile.
    pub type Scores = [[f32; ROW_STEP]; ROWS];
    /// One bit for each score that reaches the floor of its row or of its column.
    pub type Masks = [[u16; GROUPS]; ROWS];

    /// Multiplies 8 rows with 48 columns; writes the vectors of scores that have a bit in the masks, and only those.
    ///
    /// # Safety
    /// Needs AVX-512 F and VNNI; `columns` holds three groups of `depth` × 16 words, `rows` one, of which the words
    /// 0..8 of each 16 are read.
    #[target_feature(enable = "avx512f,avx512vnni")]
    pub unsafe fn tile(
        rows: &[u32],
        columns: &[u32],
        depth: usize,
        row_floor: &[f32; ROWS],
        column_floor: &[f32; ROW_STEP],
        scores: &mut Scores,
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
        let unit = _mm512_set1_ps(1.0 / (ONE * ONE));
        let mut found = [[0; GROUPS]; ROWS];
        for i in 0..ROWS {
            for g in 0..GROUPS {
                // SAFETY: `column_floor` and the rows of `scores` have 48 elements, g < 3.
                unsafe {
                    let floor = _mm512_loadu_ps(column_floor.as_ptr().add(g * GROUP));
                    let floor = _mm512_min_ps(floor, _mm512_set1_ps(row_floor[i]));
                    let score = _mm512_mul_ps(_mm512_cvtepi32_ps(sums[i][g]), unit);
                    found[i][g] = _mm512_cmp_ps_mask::<_CMP_GE_OQ>(score, floor);
                    if found[i][g] != 0 {
                        _mm512_storeu_ps(scores[i].as_mut_ptr().add(g * GROUP), score);
                    }
                }
            }
        }
        found
    }
}
