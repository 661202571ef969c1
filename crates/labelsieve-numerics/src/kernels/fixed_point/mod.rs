//! A screen in 16-bit integers: the same products at twice the speed, with a measured error.
//!
//! Numbers of a unit row lie in [-1, 1] and become whole multiples of 1/32767. One instruction multiplies pairs of them and
//! sums in 32 bits, exactly: no partial sum can pass 32767², by Cauchy and Schwarz. The error of a score is bounded before
//! the first product: rounding moves row i by eᵢ = ‖vᵢ − v̂ᵢ‖, and |a·b − â·b̂| ≤ ‖a‖·‖b − b̂‖ + ‖a − â‖·‖b̂‖. Sixteen-bit
//! floats are as fast but eight times less exact, and every doubtful pair costs an inner product later.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

use rayon::prelude::*;

use super::for_this_machine;
use super::screen::{Corner, Hit, ROW_STEP, RowSlice, Tile, rounding_bound};
use crate::level::Level;

/// Rows in groups of 16: for each pair of columns, the 16 rows' two numbers, so that one load brings a vector of rows
/// and any single row can be broadcast from the same place.
pub struct FixedPointScreen {
    multiply: Multiply,
    words: Vec<u32>,
    /// Pairs of columns.
    depth: usize,
    error: f32,
}

const GROUP: usize = 16;
const GROUPS: usize = ROW_STEP / GROUP;
/// Rows of one register tile.
const ROWS: usize = 8;
/// The fixed-point form of 1.
const ONE: f32 = 32767.0;

/// The sums of one register tile.
type Sums = [[i32; ROW_STEP]; ROWS];
/// One bit for each sum that reaches the floor of its row or of its column.
type Masks = [[u16; GROUPS]; ROWS];

/// Multiplies 8 rows with 48 columns. Writes the vectors of sums that have a bit in the masks; the others are left as they are.
///
/// # Safety
/// The machine must have the instructions; `columns` holds three groups of `depth` × 16 words, `rows` one, of which the words
/// 0..8 of each 16 are read.
type Multiply = unsafe fn(
    rows: &[u32],
    columns: &[u32],
    depth: usize,
    row_floor: &[i32; ROWS],
    column_floor: &[i32; ROW_STEP],
    sums: &mut Sums,
) -> Masks;

impl FixedPointScreen {
    /// Rounds and packs all rows, the last block padded with zero rows; none where `level` lacks the instruction.
    pub fn new(level: Level, rows: RowSlice) -> Option<FixedPointScreen> {
        let multiply = kernel(level)?;
        let depth = rows.dim.div_ceil(2);
        let n_groups = rows.len().next_multiple_of(ROW_STEP) / GROUP;
        let mut words = vec![0u32; n_groups * depth * GROUP];
        let largest_move = words
            .par_chunks_mut(depth * GROUP)
            .enumerate()
            .map(|(group, words)| pack_group(level, rows, group * GROUP, words))
            .reduce(|| 0.0, f32::max);
        // Lengths stay below 1.01 after rounding; turning the sum into a float rounds once more.
        let error = 2.0 * 1.01 * largest_move + rounding_bound(rows.dim);
        Some(FixedPointScreen { multiply, words, depth, error })
    }

    /// A bound on the error of every score.
    pub fn error_bound(&self) -> f32 {
        self.error
    }

    /// See [`super::Screen::hits`]. Ranges start at multiples of [`ROW_STEP`].
    pub fn hits(&self, tile: &Tile, hits: &mut Vec<Hit>) {
        let aligned = |start: usize| start.is_multiple_of(ROW_STEP);
        assert!(aligned(tile.rows.start) && aligned(tile.columns.start), "unaligned tile");
        assert!(tile.rows.len() == tile.row_floor.len() && tile.columns.len() == tile.column_floor.len());
        let mut sums = [[0; ROW_STEP]; ROWS];
        let row_floors = whole_floors(tile.row_floor);
        let column_floors = whole_floors(tile.column_floor);
        for j in (0..tile.columns.len()).step_by(ROW_STEP) {
            let m = ROW_STEP.min(tile.columns.len() - j);
            let column_floor = &column_floors[j / ROW_STEP];
            let columns = self.group_words(tile.columns.start + j, ROW_STEP);
            for i in (0..tile.rows.len()).step_by(ROWS) {
                let n = ROWS.min(tile.rows.len() - i);
                let row_floor = &row_floors[i / ROWS];
                let row = tile.rows.start + i;
                let rows = &self.group_words(row / GROUP * GROUP, GROUP)[row % GROUP..];
                // SAFETY: `kernel` gave this one for a level that the machine has. `columns` holds three whole groups of
                // `depth` vectors; `rows` starts at most 8 words into a group of them, and 8 words are read from each.
                let found =
                    unsafe { (self.multiply)(rows, columns, self.depth, row_floor, column_floor, &mut sums) };
                collect_hits(&found, &sums, Corner { row: i, column: j }, n, m, hits);
            }
        }
    }

    fn group_words(&self, row: usize, n_rows: usize) -> &[u32] {
        let width = self.depth * GROUP;
        &self.words[row / GROUP * width..(row + n_rows) / GROUP * width]
    }
}

/// The fastest kernel of `level`, if it has one.
#[cfg(target_arch = "x86_64")]
fn kernel(level: Level) -> Option<Multiply> {
    use crate::level::Instructions;
    match (level.instructions(), level.adds_products()) {
        (Instructions::Avx512, true) => Some(avx512::multiply),
        (Instructions::Avx2, true) => Some(avx2::vnni::multiply),
        (Instructions::Avx512 | Instructions::Avx2, false) => Some(avx2::plain::multiply),
        (Instructions::Plain | Instructions::Neon, _) => None,
    }
}

/// Always none: other machines multiply floats as fast.
#[cfg(not(target_arch = "x86_64"))]
fn kernel(_level: Level) -> Option<Multiply> {
    None
}

/// Floors in fixed point, rounded up, in blocks of N; padded with a floor that no sum reaches.
fn whole_floors<const N: usize>(floors: &[f32]) -> Vec<[i32; N]> {
    let whole = |floor: f32| {
        let exact = f64::from(floor) * f64::from(ONE) * f64::from(ONE);
        let cut = exact as i32; // saturates at infinities
        if f64::from(cut) < exact { cut.saturating_add(1) } else { cut }
    };
    let block = |floors: &[f32]| {
        let mut block = [i32::MAX; N];
        block.iter_mut().zip(floors).for_each(|(out, &floor)| *out = whole(floor));
        block
    };
    floors.chunks(N).map(block).collect()
}

/// Packs up to 16 rows and returns the largest distance by which rounding moved one.
fn pack_group(level: Level, rows: RowSlice, first_row: usize, words: &mut [u32]) -> f32 {
    let mut largest_move = 0f64;
    let mut packed = vec![0u32; rows.dim.next_multiple_of(GROUP) / 2];
    for lane in 0..GROUP.min(rows.len().saturating_sub(first_row)) {
        let mut square = 0.0;
        pack_row(level, rows.row(first_row + lane), &mut packed, &mut square);
        words.iter_mut().skip(lane).step_by(GROUP).zip(&packed).for_each(|(word, &pair)| *word = pair);
        largest_move = largest_move.max(square);
    }
    (largest_move.sqrt() / f64::from(ONE) * 1.000_001) as f32
}

for_this_machine! {
/// Rounds a row to two numbers per word and adds the squared distance to the exact row to `square`, in units of 1/32767.
fn pack_row(row: &[f32], words: &mut [u32], square: &mut f64) {
    let mut squares = [0f64; GROUP];
    let mut pack = |values: &[f32; GROUP], words: &mut [u32; GROUP / 2]| {
        let mut whole = [0i32; GROUP];
        for i in 0..GROUP {
            let exact = values[i] * ONE;
            let rounded = exact.round_ties_even().clamp(-ONE, ONE);
            squares[i] += f64::from(exact - rounded) * f64::from(exact - rounded);
            whole[i] = rounded as i32;
        }
        for (word, pair) in words.iter_mut().zip(whole.as_chunks::<2>().0) {
            *word = (pair[0] as u32 & 0xffff) | (pair[1] as u32) << 16;
        }
    };
    let (blocks, rest) = row.as_chunks::<GROUP>();
    let (words, _) = words.as_chunks_mut::<{ GROUP / 2 }>();
    blocks.iter().zip(&mut *words).for_each(|(values, words)| pack(values, words));
    if let Some(words) = words.get_mut(blocks.len()) {
        let mut values = [0f32; GROUP];
        values[..rest.len()].copy_from_slice(rest);
        pack(&values, words);
    }
    *square += squares.iter().sum::<f64>();
}
}

/// Turns the masks of one register tile into hits; pairs beyond `n_rows` × `n_columns` are padding.
fn collect_hits(
    found: &Masks,
    sums: &Sums,
    corner: Corner,
    n_rows: usize,
    n_columns: usize,
    hits: &mut Vec<Hit>,
) {
    for (a, (masks, sums)) in found.iter().zip(sums).take(n_rows).enumerate() {
        for (g, &mask) in masks.iter().enumerate() {
            let mut mask = mask;
            while mask != 0 {
                let b = g * GROUP + mask.trailing_zeros() as usize;
                if b < n_columns {
                    let score = sums[b] as f32 * (1.0 / (ONE * ONE));
                    hits.push(Hit { i: (corner.row + a) as u32, j: (corner.column + b) as u32, score });
                }
                mask &= mask - 1;
            }
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::kernels::dot;
    use crate::random::Stream;
    use crate::unit_rows;

    #[test]
    fn rows_are_rounded_to_the_nearest_and_how_far_that_moves_them_is_known() {
        let stream = Stream::new(8);
        for dim in [1, 2, 15, 16, 17, 37, 512] {
            let row: Vec<f32> = (0..dim).map(|i| 2.0 * stream.uniform(i) - 1.0).collect();
            for level in Level::available() {
                let mut words = vec![0; row.len().next_multiple_of(GROUP) / 2];
                let mut square = 0.0;
                pack_row(level, &row, &mut words, &mut square);
                let whole = words.iter().flat_map(|&word| [word as u16 as i16, (word >> 16) as u16 as i16]);
                let moved: Vec<f64> = (whole.clone().zip(&row))
                    .map(|(whole, &value)| f64::from(value) * f64::from(ONE) - f64::from(whole))
                    .collect();
                assert!(moved.len() == row.len() && moved.iter().all(|by| by.abs() < 0.502), "{level}");
                assert!(whole.skip(row.len()).all(|padding| padding == 0));
                let exact: f64 = moved.iter().map(|by| by * by).sum();
                assert!((square - exact).abs() < 1e-2 * exact, "{dim} numbers, {level}: {square}, {exact}");
            }
        }
    }

    /// A machine with VNNI would never run the kernel for those without it.
    #[test]
    fn avx2_finds_the_same_without_vnni() {
        let n = 100;
        let dim = 37;
        let stream = Stream::new(3);
        let rows: Vec<f32> = (0..n * dim).map(|i| stream.normal(i as u64)).collect();
        let (unit, _) = unit_rows(&rows, dim, |row| dot(row, row).sqrt());
        for level in Level::available() {
            let Some(mut screen) = FixedPointScreen::new(level, RowSlice { values: &unit, dim }) else {
                continue;
            };
            let floors = vec![0.1; n];
            let tile = Tile { rows: 0..n, columns: 0..n, row_floor: &floors, column_floor: &floors };
            let mut hits = [Vec::new(), Vec::new()];
            screen.hits(&tile, &mut hits[0]);
            screen.multiply = avx2::plain::multiply; // every level that has a kernel has AVX2
            screen.hits(&tile, &mut hits[1]);
            assert!(hits[0].len() > n && hits[0] == hits[1], "{level}");
        }
    }
}
