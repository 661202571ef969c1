//! The two inner loops of every convolution. Both keep a tile of sums in registers.
//!
//! The numbers of one row of a window are contiguous in memory (kernel columns × channels), since images are
//! stored pixel by pixel. So a window of height h is h *runs*, and a convolution is, for each output pixel, a sum over
//! runs of (numbers of the run) × (rows of up to 32 weights). No window is ever copied out.
#![expect(
    unsafe_code,
    reason = "register tiles over raw pointers; `convolution.rs` checks every offset against its buffer"
)]

#[cfg(target_arch = "x86_64")]
use labelsieve_numerics::level::{Instructions, Level};

#[cfg(target_arch = "x86_64")]
use super::lanes::{Avx2, Avx512};
use super::lanes::{Lanes, Plain};
use crate::network::Activation;

/// Output channels of a tile; the last tile of a pixel may have 8, 16 or 24.
pub(super) const BLOCK: usize = 32;

/// Every number of channels but the image's is a multiple of it.
pub(super) const NARROWEST: usize = 8;

/// Output pixels of a tile: with 32 channels they fill 28 of the 32 registers of AVX-512.
pub(super) const PIXELS: usize = 14;

/// Consecutive numbers of the input that meet consecutive rows of the packed weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Run {
    /// Where it starts, counted from the offset of the pixel.
    pub shift: usize,
    /// Its number of values.
    pub depth: usize,
}

/// The inputs and outputs of a tile of output pixels. `input + input_at[j] + run.shift + run.depth` must lie inside the input,
/// and `output + output_at[j] + width` inside the output; the same for `add`.
pub(super) struct PixelTile<'a> {
    pub input: *const f32,
    /// One for each pixel, at most [`PIXELS`].
    pub input_at: &'a [u32],
    pub runs: &'a [Run],
    /// Channels: [`BLOCK`], or fewer in multiples of [`NARROWEST`].
    pub width: usize,
    /// Σ depth rows of `width` weights.
    pub weights: *const f32,
    /// `width` numbers that every sum starts from; null for zeros.
    pub bias: *const f32,
    /// Where further numbers are added from, laid out as the output: a shortcut, or the output itself; null for none. A pixel
    /// must therefore not be computed twice.
    pub add: *const f32,
    pub activation: Activation,
    pub output: *mut f32,
    /// As many as `input_at`, all different.
    pub output_at: &'a [u32],
}

/// Computes up to 14 pixels × `width` channels.
///
/// # Safety
/// The pointers and offsets are as [`PixelTile`] says, and nothing else writes to these outputs meanwhile.
pub(super) unsafe fn pixel_tile(level: Level, tile: &PixelTile) {
    /// All pixels at once: their sums stay in registers, however many there are.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    unsafe fn avx512(tile: &PixelTile) {
        macro_rules! of_any_length {
            ($registers:literal, $whole:literal: $($n:literal)*) => {
                match tile.input_at.len() {
                    0 => (),
                    // SAFETY: as the caller guarantees.
                    $($n => unsafe { pixels::<Avx512, $registers, $n, $whole>(tile, 0) },)*
                    n => unreachable!("a tile has at most {PIXELS} pixels, not {n}"),
                }
            };
        }
        match tile.width {
            BLOCK => of_any_length!(2, true: 1 2 3 4 5 6 7 8 9 10 11 12 13 14),
            0..=16 => of_any_length!(1, false: 1 2 3 4 5 6 7 8 9 10 11 12 13 14),
            _ => of_any_length!(2, false: 1 2 3 4 5 6 7 8 9 10 11 12 13 14),
        }
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2(tile: &PixelTile) {
        // SAFETY: as the caller guarantees.
        unsafe { pixels_of_any_width::<Avx2>(tile) }
    }
    debug_assert!(tile.input_at.len() <= PIXELS && tile.input_at.len() == tile.output_at.len());
    // SAFETY: as the caller guarantees; the machine has the instructions of every `Level` there is.
    unsafe {
        match level.instructions() {
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512 => avx512(tile),
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => avx2(tile),
            _ => pixels_of_any_width::<Plain>(tile),
        }
    }
}

/// All pixels of a tile for registers of eight numbers: the narrower the tile, the more pixels at a time.
#[inline(always)]
unsafe fn pixels_of_any_width<L: Lanes>(tile: &PixelTile) {
    // SAFETY: as the caller guarantees.
    unsafe {
        match tile.width / NARROWEST {
            4 => pixels_by::<L, 4, 2>(tile),
            3 => pixels_by::<L, 3, 3>(tile),
            2 => pixels_by::<L, 2, 5>(tile),
            _ => pixels_by::<L, 1, 7>(tile),
        }
    }
}

/// All pixels of a tile, `M` at a time, then one by one.
#[inline(always)]
unsafe fn pixels_by<L: Lanes, const R: usize, const M: usize>(tile: &PixelTile) {
    let n = tile.input_at.len();
    let mut first = 0;
    // SAFETY: as the caller guarantees; pixels stay below `n`.
    unsafe {
        while first + M <= n {
            pixels::<L, R, M, true>(tile, first);
            first += M;
        }
        while first < n {
            pixels::<L, R, 1, true>(tile, first);
            first += 1;
        }
    }
}

/// `M` pixels from the `first`, `R` registers of channels each, of which the last is full if `WHOLE`.
#[inline(always)]
unsafe fn pixels<L: Lanes, const R: usize, const M: usize, const WHOLE: bool>(
    tile: &PixelTile,
    first: usize,
) {
    // SAFETY: all offsets lie inside their buffers, as the caller guarantees; of a register that is not full, only as many
    // numbers as there are channels are read and written.
    unsafe {
        let last = tile.width - (R - 1) * L::N;
        let load = |from: *const f32, r: usize| {
            if WHOLE || r + 1 < R {
                L::load(from.add(r * L::N))
            } else {
                L::load_some(from.add(r * L::N), last)
            }
        };
        let mut sums = [[L::zero(); R]; M];
        if !tile.bias.is_null() {
            for sums in &mut sums {
                for (r, sum) in sums.iter_mut().enumerate() {
                    *sum = load(tile.bias, r);
                }
            }
        }
        if !tile.add.is_null() {
            for (j, sums) in sums.iter_mut().enumerate() {
                let add = tile.add.add(tile.output_at[first + j] as usize);
                for (r, sum) in sums.iter_mut().enumerate() {
                    *sum = L::add(*sum, load(add, r));
                }
            }
        }
        let mut weights = tile.weights;
        for run in tile.runs {
            let mut input = [tile.input; M];
            for (j, input) in input.iter_mut().enumerate() {
                *input = input.add(tile.input_at[first + j] as usize + run.shift);
            }
            for k in 0..run.depth {
                let mut row = [L::zero(); R];
                for (r, row) in row.iter_mut().enumerate() {
                    *row = load(weights, r);
                }
                for (sums, input) in sums.iter_mut().zip(&input) {
                    let a = *input.add(k);
                    for (sum, row) in sums.iter_mut().zip(row) {
                        *sum = L::add_scaled(*sum, a, row);
                    }
                }
                weights = weights.add(tile.width);
            }
        }
        for (j, sums) in sums.into_iter().enumerate() {
            let output = tile.output.add(tile.output_at[first + j] as usize);
            for (r, sum) in sums.into_iter().enumerate() {
                let value = match tile.activation {
                    Activation::Linear => sum,
                    other => {
                        let (low, high) = other.range();
                        L::clamp(sum, low, high)
                    }
                };
                if WHOLE || r + 1 < R {
                    L::store(output.add(r * L::N), value)
                } else {
                    L::store_some(output.add(r * L::N), value, last)
                }
            }
        }
    }
}

/// The inputs and outputs of a tile of weight gradients: `depth` rows of `width` sums at `sums`, each the sum over pixels of
/// `input[input_at[p] + row] * by_output[p]`.
pub(super) struct WeightTile<'a> {
    pub input: *const f32,
    pub input_at: &'a [u32],
    /// Channels, as in [`PixelTile`].
    pub width: usize,
    /// One row of `width` gradients per pixel.
    pub by_output: *const f32,
    /// Added to.
    pub sums: *mut f32,
    pub depth: usize,
}

/// Adds the gradients of `depth` rows of `width` weights.
///
/// # Safety
/// `input + input_at[p] + depth` lies inside the input for each pixel, `by_output` holds `width` numbers per pixel and `sums` as
/// many per row; nothing else writes to the sums meanwhile.
pub(super) unsafe fn weight_tile(level: Level, tile: &WeightTile) {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    unsafe fn avx512(tile: &WeightTile) {
        // SAFETY: as the caller guarantees.
        unsafe {
            match tile.width {
                BLOCK => weight_rows::<Avx512, 2, 12, true>(tile),
                0..=16 => weight_rows::<Avx512, 1, 12, false>(tile),
                _ => weight_rows::<Avx512, 2, 12, false>(tile),
            }
        }
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2(tile: &WeightTile) {
        // SAFETY: as the caller guarantees.
        unsafe { weight_rows_of_any_width::<Avx2>(tile) }
    }
    // SAFETY: as the caller guarantees; the machine has the instructions of every `Level` there is.
    unsafe {
        match level.instructions() {
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512 => avx512(tile),
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => avx2(tile),
            _ => weight_rows_of_any_width::<Plain>(tile),
        }
    }
}

/// As [`pixels_of_any_width`].
#[inline(always)]
unsafe fn weight_rows_of_any_width<L: Lanes>(tile: &WeightTile) {
    // SAFETY: as the caller guarantees.
    unsafe {
        match tile.width / NARROWEST {
            4 => weight_rows::<L, 4, 2, true>(tile),
            3 => weight_rows::<L, 3, 3, true>(tile),
            2 => weight_rows::<L, 2, 4, true>(tile),
            _ => weight_rows::<L, 1, 4, true>(tile),
        }
    }
}

/// All rows of a tile, `M` at a time, then 4, then one by one.
#[inline(always)]
unsafe fn weight_rows<L: Lanes, const R: usize, const M: usize, const WHOLE: bool>(tile: &WeightTile) {
    let mut row = 0;
    // SAFETY: rows stay below `depth`.
    unsafe {
        while row + M <= tile.depth {
            some_weight_rows::<L, R, M, WHOLE>(tile, row);
            row += M;
        }
        while row + 4 <= tile.depth && M > 4 {
            some_weight_rows::<L, R, 4, WHOLE>(tile, row);
            row += 4;
        }
        while row < tile.depth {
            some_weight_rows::<L, R, 1, WHOLE>(tile, row);
            row += 1;
        }
    }
}

#[inline(always)]
unsafe fn some_weight_rows<L: Lanes, const R: usize, const M: usize, const WHOLE: bool>(
    tile: &WeightTile,
    first: usize,
) {
    // SAFETY: see `pixels`.
    unsafe {
        let last = tile.width - (R - 1) * L::N;
        let load = |from: *const f32, r: usize| {
            if WHOLE || r + 1 < R {
                L::load(from.add(r * L::N))
            } else {
                L::load_some(from.add(r * L::N), last)
            }
        };
        let mut sums = [[L::zero(); R]; M];
        let mut by_output = tile.by_output;
        let input = tile.input.add(first);
        for &at in tile.input_at {
            let input = input.add(at as usize);
            let mut row = [L::zero(); R];
            for (r, row) in row.iter_mut().enumerate() {
                *row = load(by_output, r);
            }
            for (j, sums) in sums.iter_mut().enumerate() {
                let a = *input.add(j);
                for (sum, row) in sums.iter_mut().zip(row) {
                    *sum = L::add_scaled(*sum, a, row);
                }
            }
            by_output = by_output.add(tile.width);
        }
        for (j, sums) in sums.into_iter().enumerate() {
            for (r, sum) in sums.into_iter().enumerate() {
                let row = tile.sums.add((first + j) * tile.width);
                let sum = L::add(load(row, r), sum);
                if WHOLE || r + 1 < R {
                    L::store(row.add(r * L::N), sum)
                } else {
                    L::store_some(row.add(r * L::N), sum, last)
                }
            }
        }
    }
}
