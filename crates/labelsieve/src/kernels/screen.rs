//! Blocks of similarities with a known error, for finding the few pairs that deserve an exact look.
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

/// Rows one after the other, none longer than 1 by more than a hundredth: sums of integers have room for twice that.
#[derive(Clone, Copy)]
pub(crate) struct RowSlice<'a> {
    pub values: &'a [f32],
    pub dim: usize,
}

impl<'a> RowSlice<'a> {
    pub fn len(&self) -> usize {
        self.values.len() / self.dim
    }

    pub fn row(&self, i: usize) -> &'a [f32] {
        self.block(i..i + 1)
    }

    pub fn block(&self, rows: Range<usize>) -> &'a [f32] {
        &self.values[rows.start * self.dim..rows.end * self.dim]
    }
}

/// A pair that may be close: rows `i` and `j` counted from the start of the tile's ranges, and their score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Hit {
    pub i: u32,
    pub j: u32,
    pub score: f32,
}

/// One block of the similarity matrix: rows × columns, with the least score of interest for each.
pub(crate) struct Tile<'a> {
    pub rows: Range<usize>,
    pub columns: Range<usize>,
    pub row_floor: &'a [f32],
    pub column_floor: &'a [f32],
}

/// Rows prepared for blocked products, in the fastest form that a level has.
pub(crate) enum Screen<'a> {
    /// Products in 16-bit integers, faster than `f32` (AVX2, AVX-512).
    FixedPoint(FixedPointScreen),
    /// Products in `f32` that never leave the registers (NEON).
    #[cfg(target_arch = "aarch64")]
    Float(FloatScreen),
    /// Products in `f32`, by the instructions of a level.
    Plain(Level, RowSlice<'a>),
}

/// Blocks start at multiples of this many rows, which suits every kernel.
pub(crate) const ROW_STEP: usize = 48;

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
pub(crate) fn rounding_bound(dim: usize) -> f32 {
    (dim + 8) as f32 * f32::EPSILON * 2.0
}

fn plain_hits(level: Level, rows: RowSlice, tile: &Tile, scratch: &mut Vec<f32>, hits: &mut Vec<Hit>) {
    let (n, m) = (tile.rows.len(), tile.columns.len());
    scratch.resize(n * m, 0.0);
    let (a, b) = (rows.block(tile.rows.clone()), rows.block(tile.columns.clone()));
    product_with_transposed_at(level, a, b, scratch, rows.dim);
    for (i, (scores, &row_floor)) in scratch.chunks_exact(m).zip(tile.row_floor).enumerate() {
        scan_row(level, i, scores, row_floor, tile.column_floor, hits);
    }
}

for_this_machine! {
/// Most stretches of 16 scores hold nothing of interest: one comparison of the whole stretch says so.
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
    use crate::features::Features;
    use crate::kernels::dot;
    use crate::random::Stream;

    fn random_features(n: usize, dim: usize) -> Features {
        let stream = Stream::new(dim as u64);
        Features::new((0..n * dim).map(|i| stream.normal(i as u64)).collect(), dim).unwrap()
    }

    /// Every pair above the floors is reported, its score within the bound, and none below them.
    fn check_screen(screen: &Screen, features: &Features) {
        let n = features.len();
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
                let (i_tile, j_tile) = (i - rows.start, j - columns.start);
                let exact = dot(features.row(i), features.row(j));
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
            let features = random_features(n, dim);
            for level in Level::available() {
                check_screen(&Screen::Plain(level, features.as_slice()), &features);
                check_screen(&Screen::new(level, features.as_slice()), &features);
            }
        }
    }
}
