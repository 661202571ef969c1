//! The cells of a pool: jobs that share its noisy rows and train together. Where their numbers lie, as `network.cu` reads them.

use cudarc::driver::DeviceRepr;
use labelsieve::relevance::Training;

use crate::memory::Carver;

pub(crate) const HIDDEN: usize = 16;
/// Columns of X that lie together; its width is a multiple of them.
const SLICE: usize = 32;
/// Cells that a block of a wide product takes, and the most that share a group.
const CHUNK: usize = 8;
pub(crate) const MAX_CELLS: usize = 32;
/// Rows of a tile of the sparse products, and of a block of `forward`.
pub(crate) const TILE: usize = 256;
pub(crate) const ROWS: usize = 128;
/// Rows of a slab of a cell's own rows.
pub(crate) const OWN_SLAB: usize = 512;
/// In the job of a tile: the cell's own rows.
pub(crate) const OWN: usize = 1 << 31;
/// What X is multiplied with before it is cut into halves.
pub(crate) const X_SCALE: f32 = 16384.0;
const NOBODY: u32 = u32::MAX;

/// Laid out as in `network.cu`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Cell {
    parameters: u64,
    theta: u64,
    partial: u64,
    bias_partial: u64,
    pub probability: u64,
    pub loss_weights: u64,
    pub x: u64,
    pub rows: u64,
    pub row_keys: u64,
    pub offsets: u64,
    pub columns: u64,
    pub weights: u64,
    pub inverse_degree: u64,
    active: u64,
    gradients: u64,
    pub weight_key: u64,
    pub dropout_key: u64,
    pub shared_scale: f32,
    pub own_scale: f32,
    pub clean_weight: f32,
    pub noisy_weight: f32,
    pub group: u32,
    pub slot: u32,
    pub n_own: u32,
    pub n_clean: u32,
    n_shared_slabs: u32,
    n_slabs: u32,
    n_shared_tiles: u32,
    n_tiles: u32,
}

/// Laid out as in `network.cu`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Group {
    pub x: u64,
    pub row_keys: u64,
    pub offsets: u64,
    pub columns: u64,
    pub weights: u64,
    pub inverse_degree: u64,
    pub touched: u64,
    support: u64,
    gradient_over_degree: u64,
    active: u64,
    gradients: u64,
    pub n: u32,
    dim: u32,
    pub width: u32,
    pub slots: u32,
    pub n_chunks: u32,
    slab: u32,
    pub cells: [u32; MAX_CELLS],
}

#[expect(unsafe_code, reason = "structs of plain numbers, handed to kernels")]
// SAFETY: `repr(C)`, and the kernels declare the same fields.
unsafe impl DeviceRepr for Cell {}
#[expect(unsafe_code, reason = "structs of plain numbers, handed to kernels")]
// SAFETY: as above.
unsafe impl DeviceRepr for Group {}

/// Columns of X with the padding.
pub(crate) fn width_of(dim: usize) -> usize {
    dim.next_multiple_of(SLICE)
}

/// Bytes of `n` rows of X in halves.
pub(crate) fn x_bytes(n: usize, dim: usize) -> usize {
    n * width_of(dim) * 4
}

/// Rows of the pool whose products with X are summed at a time: enough slabs for a GPU, few enough to add them up.
fn slab_of(n: usize) -> usize {
    n.div_ceil(64).next_multiple_of(SLICE).clamp(256, 2048)
}

/// How the cells of a group share its slots: chunks as even as can be, a single cell by itself.
struct Slots {
    n: usize,
    n_chunks: usize,
    of_cells: Vec<usize>,
}

impl Slots {
    fn new(n_cells: usize) -> Slots {
        if n_cells == 1 {
            return Slots { n: 1, n_chunks: 1, of_cells: vec![0] };
        }
        let n_chunks = n_cells.div_ceil(CHUNK);
        let mut of_cells = Vec::with_capacity(n_cells);
        for chunk in 0..n_chunks {
            let size = n_cells / n_chunks + usize::from(chunk < n_cells % n_chunks);
            // Warps take pairs of places; the first of every pair comes first, so that all of them have work.
            of_cells.extend((0..size).map(|i| chunk * CHUNK + i % 4 * 2 + i / 4));
        }
        Slots { n: (n_chunks * CHUNK).next_power_of_two(), n_chunks, of_cells }
    }
}

/// Numbers that every row has for each slot: s and D⁻¹ ∂L/∂a, behind which the clean rows have theirs; ∂s, active units.
fn slot_bytes(carver: &mut Carver, n: usize, max_clean: usize, slots: usize) -> [u64; 4] {
    let with_clean = (n + max_clean) * slots;
    [with_clean * 4, with_clean * 4, n * slots * 4, n * slots * 2].map(|bytes| carver.take(bytes))
}

impl Group {
    /// A group of `n_cells` cells over `n` noisy rows: what it keeps in memory from `base`, where its cells sit, and the bytes.
    pub fn lay_out(
        base: u64,
        n: usize,
        dim: usize,
        max_clean: usize,
        n_cells: usize,
    ) -> (Group, Vec<usize>, usize) {
        let slots = Slots::new(n_cells);
        let mut carver = Carver::new(base);
        let [support, gradient_over_degree, gradients, active] =
            slot_bytes(&mut carver, n, max_clean, slots.n);
        let mut cells = [NOBODY; MAX_CELLS];
        slots.of_cells.iter().enumerate().for_each(|(cell, &slot)| cells[slot] = cell as u32);
        let group = Group {
            touched: carver.take(n * 4),
            support,
            gradient_over_degree,
            active,
            gradients,
            n: n as u32,
            dim: dim as u32,
            width: width_of(dim) as u32,
            slots: slots.n as u32,
            n_chunks: slots.n_chunks as u32,
            slab: slab_of(n) as u32,
            cells,
            ..Group::default()
        };
        (group, slots.of_cells, carver.taken())
    }

    /// Makes the numbers of its cells those of the whole batch, where its first is `first`.
    pub fn numbered(mut self, first: usize) -> Group {
        self.cells.iter_mut().filter(|cell| **cell != NOBODY).for_each(|cell| *cell += first as u32);
        self
    }

    /// A group of a single cell is trained as the cell's own rows are.
    pub fn is_narrow(&self) -> bool {
        self.slots == 1
    }

    pub fn n_row_blocks(&self) -> usize {
        (self.n as usize).div_ceil(ROWS)
    }

    /// Slabs times blocks of columns.
    pub fn n_slab_blocks(&self) -> usize {
        (self.n as usize).div_ceil(self.slab as usize) * self.n_column_blocks()
    }

    pub fn n_column_blocks(&self) -> usize {
        (self.width as usize).div_ceil(ROWS)
    }
}

impl Cell {
    /// A cell with `n_own` rows and `n_edges` edges of its own beside `n` shared rows: what it keeps in memory from `base`, and
    /// the bytes that takes.
    pub fn lay_out(base: u64, n: usize, n_own: usize, n_edges: usize, dim: usize) -> (Cell, usize) {
        let n_shared_slabs = n.div_ceil(slab_of(n));
        let n_shared_tiles = n.div_ceil(TILE);
        let n_slabs = n_shared_slabs + n_own.div_ceil(OWN_SLAB);
        let n_tiles = n_shared_tiles + n_own.div_ceil(TILE);
        let width = width_of(dim);
        let mut carver = Carver::new(base);
        let mut words = |count: usize| carver.take(count * 4);
        let cell = Cell {
            parameters: words(3 * n_parameters(dim)),
            theta: words(width * HIDDEN),
            partial: words(n_slabs * (width + 1) * HIDDEN),
            bias_partial: words(2 * n_tiles),
            x: words(x_bytes(n_own, dim) / 4),
            columns: words(n_edges),
            weights: words(n_edges),
            inverse_degree: words(n_own),
            active: words(n_own.div_ceil(2)),
            gradients: words(n_own),
            n_own: n_own as u32,
            n_shared_slabs: n_shared_slabs as u32,
            n_slabs: n_slabs as u32,
            n_shared_tiles: n_shared_tiles as u32,
            n_tiles: n_tiles as u32,
            ..Cell::default()
        };
        (cell, carver.taken())
    }

    pub fn of_group(&self, group: u32) -> Cell {
        Cell { group, ..*self }
    }
}

/// Numbers of Θ₁ with its padding, b₁, Θ₂ and b₂.
pub(crate) fn n_parameters(dim: usize) -> usize {
    width_of(dim) * HIDDEN + 2 * HIDDEN + 1
}

/// Bytes that a cell takes of its group's numbers, whatever its company: two cells may take eight slots.
pub(crate) fn max_slot_bytes(n: usize, k: usize) -> usize {
    let mut carver = Carver::new(0);
    slot_bytes(&mut carver, n, k, CHUNK / 2);
    carver.taken()
}

/// The power of two that takes numbers of up to `most` to at most 2¹⁵, where halves are safe.
pub(crate) fn scale_of_halves(largest: f32) -> f32 {
    let exponent = if largest > 0.0 { 15 - largest.log2().ceil() as i32 } else { 0 };
    2f32.powi(exponent.clamp(-100, 100))
}

/// A bound of |Θ₁|: it starts in ±1/4, and by Cauchy and Schwarz no step of Adam is longer than (1 - β₁) / √((1 - β₂)(1 - β₁²/β₂))
/// = 7.3 times the rate.
pub(crate) fn max_theta(training: &Training) -> f32 {
    (0..training.iterations).map(|i| 8.0 * rate_of(training, i)).sum::<f32>() + 0.25
}

/// The learning rate of an iteration.
pub(crate) fn rate_of(training: &Training, iteration: usize) -> f32 {
    training.learning_rate * 0.1f32.powi((iteration / training.decay_every) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_even_and_no_two_cells_share_a_slot() {
        for n_cells in 1..=MAX_CELLS {
            let slots = Slots::new(n_cells);
            assert!(slots.n == 1 || [8, 16, 32].contains(&slots.n), "a row's slots are a part of a warp");
            let mut taken = slots.of_cells.clone();
            taken.sort_unstable();
            taken.dedup();
            assert_eq!(taken.len(), n_cells);
            assert!(taken.iter().all(|&slot| slot < slots.n));
            let sizes: Vec<usize> = (0..slots.n_chunks)
                .map(|chunk| taken.iter().filter(|&&slot| slot / CHUNK == chunk).count())
                .collect();
            assert_eq!(sizes.iter().sum::<usize>(), n_cells);
            assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{sizes:?}");
        }
    }

    #[test]
    fn company_takes_no_more_of_the_slots_than_was_planned() {
        for n_cells in 1..=MAX_CELLS {
            let n = 5_000;
            let k = 20;
            let (_, _, bytes) = Group::lay_out(0, n, 64, k, n_cells);
            assert!(bytes - n.next_multiple_of(64) * 4 <= n_cells * max_slot_bytes(n, k), "{n_cells}");
        }
    }

    #[test]
    fn scaled_numbers_stay_in_the_range_of_halves() {
        for largest in [1e-30f32, 1e-6, 0.1, 0.5, 1.0, 24.9, 3e4, 1e20] {
            let scaled = largest * scale_of_halves(largest);
            assert!(scaled <= 32768.0 && (scaled > 8192.0 || largest < 1e-20), "{largest}: {scaled}");
        }
        assert_eq!(scale_of_halves(0.0), 1.0);
    }

    /// The longest way Adam can go: gradients that grow so fast that each step forgets the ones before.
    #[test]
    fn no_step_of_adam_leaves_the_bound() {
        let training = Training { iterations: 200, decay_every: 1000, ..Training::default() };
        for growth in [0.9f64, 1.0, 1.1, 1.11, 1.2, 2.0] {
            let mut mean = 0.0f64;
            let mut square = 0.0f64;
            let mut way = 0.0f64;
            for i in 0..training.iterations {
                let gradient = growth.powi(i as i32);
                mean = 0.9 * mean + 0.1 * gradient;
                square = 0.999 * square + 0.001 * gradient * gradient;
                let step = i as i32 + 1;
                let corrected = (square / (1.0 - 0.999f64.powi(step))).sqrt();
                way += f64::from(rate_of(&training, i)) * mean / (1.0 - 0.9f64.powi(step)) / corrected;
            }
            assert!(0.25 + way <= f64::from(max_theta(&training)), "{growth}: {way}");
        }
    }
}
