//! Blocks of similarities with a known error, for finding the few pairs to measure exactly.
//!
//! Neighbour search needs the similarity of every pair but keeps only the best fifty of each row. A [`Screen`]
//! multiplies blocks of rows as fast as the machine can, up to an error bound it guarantees, and reports the pairs that
//! reach the threshold of their row or of their column.

use std::ops::Range;

use super::fixed_point::FixedPointScreen;
#[cfg(target_arch = "aarch64")]
use super::float_screen::FloatScreen;
use super::for_this_machine;
use super::product::product_with_transposed_at;
use crate::level::Level;

/// Rows one after the other, of length at most 1.01: the integer sums would overflow beyond twice that.
#[derive(Clone, Copy)]
pub struct RowSlice<'a> {
    /// The numbers, row after row.
    pub values: &'a [f32],
    /// Numbers per row.
    pub dim: usize,
}

impl<'a> RowSlice<'a> {
    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.values.len() / self.dim
    }

    /// One row.
    pub fn row(&self, i: usize) -> &'a [f32] {
        self.block(i..i + 1)
    }

    /// A range of rows.
    pub fn block(&self, rows: Range<usize>) -> &'a [f32] {
        &self.values[rows.start * self.dim..rows.end * self.dim]
    }
}

/// A pair that may be close: rows `i` and `j`, counted from the start of the tile's ranges, and their score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// Row.
    pub i: u32,
    /// Column.
    pub j: u32,
    /// Approximate similarity.
    pub score: f32,
}

/// The position of a register tile in its [`Tile`].
#[derive(Clone, Copy)]
pub(super) struct Corner {
    pub row: usize,
    pub column: usize,
}

/// One block of the similarity matrix: rows × columns, with the lowest score of interest for each.
pub struct Tile<'a> {
    /// Rows of the tile.
    pub rows: Range<usize>,
    /// Columns of the tile.
    pub columns: Range<usize>,
    /// The lowest score of interest for each row.
    pub row_floor: &'a [f32],
    /// The lowest score of interest for each column.
    pub column_floor: &'a [f32],
}

/// Rows prepared for blocked products, in the fastest form of a level.
pub enum Screen<'a> {
    /// Products in 16-bit integers, faster than `f32` (AVX2, AVX-512).
    FixedPoint(FixedPointScreen),
    /// Products in `f32` that never leave the registers (NEON).
    #[cfg(target_arch = "aarch64")]
    Float(FloatScreen),
    /// Products in `f32`, by the instructions of a level.
    Plain(Level, RowSlice<'a>),
}

/// Blocks start at multiples of this many rows, which suits every kernel.
pub const ROW_STEP: usize = 48;

impl<'a> Screen<'a> {
    /// The fastest screen of `level`.
    pub fn new(level: Level, rows: RowSlice<'a>) -> Screen<'a> {
        #[cfg(target_arch = "aarch64")]
        if level.instructions() == crate::level::Instructions::Neon {
            return Screen::Float(FloatScreen::new(rows));
        }
        FixedPointScreen::new(level, rows).map_or(Screen::Plain(level, rows), Screen::FixedPoint)
    }

    /// A bound on |score − dot(row i, row j)| over all pairs.
    pub fn error_bound(&self) -> f32 {
        match self {
            Screen::FixedPoint(screen) => screen.error_bound(),
            #[cfg(target_arch = "aarch64")]
            Screen::Float(screen) => screen.error_bound(),
            Screen::Plain(_, rows) => rounding_bound(rows.dim),
        }
    }

    /// Appends the pairs of `tile` whose score reaches the floor of their row or of their column.
    pub fn hits(&self, tile: &Tile, scratch: &mut Vec<f32>, hits: &mut Vec<Hit>) {
        match self {
            Screen::FixedPoint(screen) => screen.hits(tile, hits),
            #[cfg(target_arch = "aarch64")]
            Screen::Float(screen) => screen.hits(tile, hits),
            Screen::Plain(level, rows) => plain_hits(*level, *rows, tile, scratch, hits),
        }
    }
}

/// A bound on the rounding error of an inner product of two rows of length at most one: d roundings of 2⁻²⁴ relative
/// to Σ|aᵢbᵢ| ≤ 1 in the product and as many in [`super::dot`], doubled to be safe.
pub fn rounding_bound(dim: usize) -> f32 {
    (dim + 8) as f32 * f32::EPSILON * 2.0
}

fn plain_hits(level: Level, rows: RowSlice, tile: &Tile, scratch: &mut Vec<f32>, hits: &mut Vec<Hit>) {
    let n = tile.rows.len();
    let m = tile.columns.len();
    scratch.resize(n * m, 0.0);
    let a = rows.block(tile.rows.clone());
    let b = rows.block(tile.columns.clone());
    product_with_transposed_at(level, a, b, scratch, rows.dim);
    for (i, (scores, &row_floor)) in scratch.chunks_exact(m).zip(tile.row_floor).enumerate() {
        scan_row(level, i, scores, row_floor, tile.column_floor, hits);
    }
}

for_this_machine! {
/// Appends the hits of a row. Most stretches of 16 scores have none, so each is first tested as a whole.
fn scan_row(i: usize, scores: &[f32], row_floor: f32, column_floor: &[f32], hits: &mut Vec<Hit>) {
    const STRETCH: usize = 16;
    for (start, (scores, floors)) in
        scores.chunks(STRETCH).zip(column_floor.chunks(STRETCH)).enumerate().map(|(c, s)| (c * STRETCH, s))
    {
        let any = scores.iter().zip(floors).fold(false, |any, (&s, &f)| any | (s >= f.min(row_floor)));
        if !any {
            continue;
        }
        for (j, (&score, &floor)) in scores.iter().zip(floors).enumerate() {
            if score >= floor.min(row_floor) {
                hits.push(Hit { i: i as u32, j: (start + j) as u32, score });
            }
        }
    }
}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::dot;
    use crate::random::Stream;
    use crate::unit_rows;

    fn random_rows(n: usize, dim: usize) -> Vec<f32> {
        let stream = Stream::new(dim as u64);
        let rows: Vec<f32> = (0..n * dim).map(|i| stream.normal(i as u64)).collect();
        unit_rows(&rows, dim, |row| dot(row, row).sqrt()).0
    }

    /// Every pair above the floors is reported, its score within the bound, and none below them.
    fn check_screen(screen: &Screen, unit: &[f32], dim: usize) {
        let n = unit.len() / dim;
        let row = |i: usize| &unit[i * dim..(i + 1) * dim];
        let rows = 0..n.min(2 * ROW_STEP);
        let columns = (n / ROW_STEP / 2 * ROW_STEP)..n;
        let row_floor: Vec<f32> =
            rows.clone().map(|i| [f32::INFINITY, 0.05, 0.05, f32::NEG_INFINITY][i % 4]).collect();
        let column_floor: Vec<f32> = columns.clone().map(|j| if j % 5 == 0 { -0.02 } else { 0.1 }).collect();
        let tile = Tile {
            rows: rows.clone(),
            columns: columns.clone(),
            row_floor: &row_floor,
            column_floor: &column_floor,
        };
        let mut hits = Vec::new();
        screen.hits(&tile, &mut Vec::new(), &mut hits);
        let error = screen.error_bound();
        let mut found = vec![None; rows.len() * columns.len()];
        for hit in &hits {
            let slot = &mut found[hit.i as usize * columns.len() + hit.j as usize];
            assert!(slot.replace(hit.score).is_none(), "a pair was reported twice");
        }
        for i in rows.clone() {
            for j in columns.clone() {
                let i_tile = i - rows.start;
                let j_tile = j - columns.start;
                let exact = dot(row(i), row(j));
                let floor = row_floor[i_tile].min(column_floor[j_tile]);
                match found[i_tile * columns.len() + j_tile] {
                    Some(score) => {
                        assert!((score - exact).abs() <= error, "{score} is not {exact} to {error}");
                        assert!(score >= floor - f32::EPSILON);
                    }
                    None => assert!(exact < floor + error, "lost pair {i}, {j}: {exact} against {floor}"),
                }
            }
        }
    }

    #[test]
    fn every_screen_reports_the_pairs_above_their_floors_within_its_error() {
        for (n, dim) in [(1, 1), (7, 3), (50, 16), (130, 33), (200, 130), (333, 512)] {
            let unit = random_rows(n, dim);
            let rows = RowSlice { values: &unit, dim };
            for level in Level::available() {
                check_screen(&Screen::Plain(level, rows), &unit, dim);
                check_screen(&Screen::new(level, rows), &unit, dim);
            }
        }
    }
}
