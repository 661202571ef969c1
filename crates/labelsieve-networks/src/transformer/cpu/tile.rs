//! The inner loop of linear layers: a tile of sums that stays in registers.
#![expect(unsafe_code, reason = "register tiles over raw pointers; `product.rs` checks every length")]

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use labelsieve_numerics::level::{Instructions, Level};

#[cfg(target_arch = "x86_64")]
use crate::cpu::lanes::{Avx2, Avx512};
use crate::cpu::lanes::{Lanes, Plain};

/// Rows and columns of a tile: as many sums as the registers of a level hold, beside what is read meanwhile. A narrow tile has
/// one register of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TileShape {
    pub rows: usize,
    pub columns: usize,
    pub narrow: usize,
}

/// The most rows and columns of any level.
pub(super) const MAX_TILE: TileShape = TileShape { rows: 14, columns: 32, narrow: 16 };

impl TileShape {
    pub fn of(level: Level) -> TileShape {
        match level.instructions() {
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512 => TileShape { rows: 14, columns: 32, narrow: 16 },
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => TileShape { rows: 6, columns: 16, narrow: 8 },
            #[cfg(target_arch = "aarch64")]
            Instructions::Neon => TileShape { rows: 6, columns: 16, narrow: 8 },
            _ => TileShape { rows: 4, columns: 8, narrow: 8 },
        }
    }
}

/// How the sums of a tile are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Store {
    /// They replace what is there.
    Replace,
    /// They are added to it.
    Add,
}

/// A tile: `sums[row][column] (+)= bias[column] + Σ over k of rows[row][k] · panel[k][column]`.
pub(super) struct Tile {
    /// The first of `n_rows` rows, at most those of [`TileShape::of`]; `depth` numbers each, rows `row_stride` apart.
    pub rows: *const f32,
    pub row_stride: usize,
    pub n_rows: usize,
    /// `depth` times `width` numbers, the columns or the narrow columns of [`TileShape::of`].
    pub panel: *const f32,
    pub depth: usize,
    pub width: usize,
    /// `width` numbers, or null for zeros.
    pub bias: *const f32,
    /// As many rows as `rows`, `width` numbers each, `stride` apart.
    pub sums: *mut f32,
    pub stride: usize,
    pub store: Store,
    /// The next data to read: each step of a tile prefetches `ahead_step` numbers of it.
    pub ahead: *const f32,
    pub ahead_step: usize,
}

/// Computes a tile.
///
/// # Safety
/// The pointers hold what [`Tile`] says, and nothing else reads or writes `sums` meanwhile.
pub(super) unsafe fn compute(level: Level, tile: &Tile) {
    macro_rules! of_any_length {
        ($lanes:ty, $registers:literal, $tile:ident: $($n:literal)*) => {
            match $tile.n_rows {
                $($n => tile_of::<$lanes, $registers, $n>($tile),)*
                n => debug_assert!(n == 0, "more rows than a tile has: {n}"),
            }
        };
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    unsafe fn avx512(tile: &Tile) {
        // SAFETY: as the caller guarantees.
        unsafe {
            match tile.width {
                32 => of_any_length!(Avx512, 2, tile: 14 1 2 3 4 5 6 7 8 9 10 11 12 13),
                _ => of_any_length!(Avx512, 1, tile: 14 1 2 3 4 5 6 7 8 9 10 11 12 13),
            }
        }
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2(tile: &Tile) {
        // SAFETY: as the caller guarantees.
        unsafe {
            match tile.width {
                16 => of_any_length!(Avx2, 2, tile: 6 1 2 3 4 5),
                _ => of_any_length!(Avx2, 1, tile: 6 1 2 3 4 5),
            }
        }
    }
    // SAFETY: as the caller guarantees; the machine has the instructions of every `Level` there is.
    unsafe {
        match level.instructions() {
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512 => avx512(tile),
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => avx2(tile),
            // The compiler makes two NEON registers of eight numbers, and fuses.
            #[cfg(target_arch = "aarch64")]
            Instructions::Neon => match tile.width {
                16 => of_any_length!(Plain, 2, tile: 6 1 2 3 4 5),
                _ => of_any_length!(Plain, 1, tile: 6 1 2 3 4 5),
            },
            _ => of_any_length!(Plain, 1, tile: 4 1 2 3),
        }
    }
}

/// `M` rows of `R` registers each.
#[inline(always)]
unsafe fn tile_of<L: Lanes, const R: usize, const M: usize>(tile: &Tile) {
    let Tile { rows, row_stride, mut panel, depth, bias, sums: to, stride, store, .. } = *tile;
    let mut ahead = tile.ahead;
    // SAFETY: all offsets lie inside what the caller guarantees.
    unsafe {
        let mut sums = [[L::zero(); R]; M];
        if !bias.is_null() {
            for row in &mut sums {
                for (r, sum) in row.iter_mut().enumerate() {
                    *sum = L::load(bias.add(r * L::N));
                }
            }
        }
        for k in 0..depth {
            let mut columns = [L::zero(); R];
            for (r, column) in columns.iter_mut().enumerate() {
                *column = L::load(panel.add(r * L::N));
            }
            for (j, row) in sums.iter_mut().enumerate() {
                let factor = *rows.add(j * row_stride + k);
                for (sum, column) in row.iter_mut().zip(columns) {
                    *sum = L::add_scaled(*sum, factor, column);
                }
            }
            panel = panel.add(R * L::N);
            L::prefetch(ahead);
            ahead = ahead.wrapping_add(tile.ahead_step);
        }
        for (j, row) in sums.into_iter().enumerate() {
            for (r, sum) in row.into_iter().enumerate() {
                let to = to.add(j * stride + r * L::N);
                let sum = if store == Store::Add { L::add(L::load(to), sum) } else { sum };
                L::store(to, sum);
            }
        }
    }
}
