//! The screen of arm64, in `f32`: rows are packed once, and of the sums of a tile, which stay in registers, only those that reach
//! their floors come out.
//!
//! NEON multiplies four floats and adds them up in one instruction. It takes as many of the 16-bit integers of
//! [`super::fixed_point`] at a time, and Arm's own cores only half as often.

use std::arch::aarch64::*;

use rayon::prelude::*;

use super::screen::{Corner, Hit, ROW_STEP, RowSlice, Tile, rounding_bound};

/// Rows in groups of 24: for each column, the 24 rows' numbers. A register tile takes a third of one group as rows and half of
/// another as columns.
pub struct FloatScreen {
    numbers: Vec<f32>,
    depth: usize,
}

const GROUP: usize = 24;
/// Rows and columns of one register tile: their sums fill 24 of the 32 vector registers.
const ROWS: usize = 8;
const COLUMNS: usize = 12;
const LANES: usize = 4;
const VECTORS: usize = COLUMNS / LANES;

impl FloatScreen {
    /// Packs all rows, the last block padded with zero rows.
    pub fn new(rows: RowSlice) -> FloatScreen {
        let mut numbers = vec![0f32; rows.len().next_multiple_of(ROW_STEP) * rows.dim];
        numbers.par_chunks_mut((GROUP * rows.dim).max(1)).enumerate().for_each(|(group, numbers)| {
            let first = group * GROUP;
            for lane in 0..GROUP.min(rows.len().saturating_sub(first)) {
                for (column, &value) in numbers.chunks_exact_mut(GROUP).zip(rows.row(first + lane)) {
                    column[lane] = value;
                }
            }
        });
        FloatScreen { numbers, depth: rows.dim }
    }

    /// A bound on the error of every score.
    pub fn error_bound(&self) -> f32 {
        rounding_bound(self.depth)
    }

    /// See [`super::Screen::hits`]. Ranges start at multiples of [`ROW_STEP`].
    pub fn hits(&self, tile: &Tile, hits: &mut Vec<Hit>) {
        let aligned = |start: usize| start.is_multiple_of(ROW_STEP);
        assert!(aligned(tile.rows.start) && aligned(tile.columns.start), "unaligned tile");
        assert!(tile.rows.len() == tile.row_floor.len() && tile.columns.len() == tile.column_floor.len());
        for (j, column_floor) in tile.column_floor.chunks(COLUMNS).enumerate().map(|(c, f)| (c * COLUMNS, f))
        {
            let columns = self.from_row(tile.columns.start + j);
            for (i, row_floor) in tile.row_floor.chunks(ROWS).enumerate().map(|(r, f)| (r * ROWS, f)) {
                let rows = self.from_row(tile.rows.start + i);
                // SAFETY: every arm64 machine has NEON. Both slices start inside a group, at multiples of 8 and of 12 rows, so
                // that as many numbers are left in each of its columns.
                let sums = unsafe { multiply(rows, columns, self.depth) };
                for (i, (&row_floor, sums)) in (i..).zip(row_floor.iter().zip(&sums)) {
                    // SAFETY: every arm64 machine has NEON.
                    unsafe {
                        collect_hits(sums, row_floor, column_floor, Corner { row: i, column: j }, hits)
                    };
                }
            }
        }
    }

    /// The numbers of a group from one of its rows on.
    fn from_row(&self, row: usize) -> &[f32] {
        &self.numbers[row / GROUP * GROUP * self.depth..][..GROUP * self.depth][row % GROUP..]
    }
}

/// The sums of 8 rows and 12 columns.
///
/// # Safety
/// `rows` and `columns` hold 8 and 12 numbers at every multiple of 24 below `depth` times 24.
#[target_feature(enable = "neon")]
unsafe fn multiply(rows: &[f32], columns: &[f32], depth: usize) -> [[float32x4_t; VECTORS]; ROWS] {
    debug_assert!(depth == 0 || rows.len().min(columns.len() - LANES) >= (depth - 1) * GROUP + ROWS);
    let mut sums = [[vdupq_n_f32(0.0); VECTORS]; ROWS];
    for k in 0..depth {
        // SAFETY: k < depth, so every read stays inside the groups promised by the caller.
        let (rows, columns) = unsafe { (rows.as_ptr().add(k * GROUP), columns.as_ptr().add(k * GROUP)) };
        // SAFETY: as above.
        let columns: [float32x4_t; VECTORS] =
            std::array::from_fn(|v| unsafe { vld1q_f32(columns.add(v * LANES)) });
        // SAFETY: as above.
        let rows: [float32x4_t; 2] = std::array::from_fn(|h| unsafe { vld1q_f32(rows.add(h * LANES)) });
        macro_rules! add {
            ($($row:literal: $half:literal $lane:literal),*) => {$(
                for (sum, &column) in sums[$row].iter_mut().zip(&columns) {
                    *sum = vfmaq_laneq_f32::<$lane>(*sum, column, rows[$half]);
                }
            )*};
        }
        add!(0: 0 0, 1: 0 1, 2: 0 2, 3: 0 3, 4: 1 0, 5: 1 1, 6: 1 2, 7: 1 3);
    }
    sums
}

/// Appends the pairs of a row of sums that reach the floor of their row or of their column; columns without a floor are
/// padding. `corner`: the position of the first sum in the tile.
#[target_feature(enable = "neon")]
fn collect_hits(
    sums: &[float32x4_t; VECTORS],
    row_floor: f32,
    column_floor: &[f32],
    corner: Corner,
    hits: &mut Vec<Hit>,
) {
    if let Ok(column_floor) = <&[f32; COLUMNS]>::try_from(column_floor) {
        let mut any = vdupq_n_u32(0);
        for (&sum, floor) in sums.iter().zip(column_floor.as_chunks::<LANES>().0) {
            // SAFETY: four floors.
            let floor = vminq_f32(unsafe { vld1q_f32(floor.as_ptr()) }, vdupq_n_f32(row_floor));
            any = vorrq_u32(any, vcgeq_f32(sum, floor));
        }
        if vmaxvq_u32(any) == 0 {
            return; // as from most rows
        }
    }
    let mut scores = [0f32; COLUMNS];
    for (&sum, scores) in sums.iter().zip(scores.as_chunks_mut::<LANES>().0) {
        // SAFETY: space for four.
        unsafe { vst1q_f32(scores.as_mut_ptr(), sum) };
    }
    for (j, (&score, &floor)) in (corner.column..).zip(scores.iter().zip(column_floor)) {
        if score >= floor.min(row_floor) {
            hits.push(Hit { i: corner.row as u32, j: j as u32, score });
        }
    }
}
