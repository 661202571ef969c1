//! The inner loop of linear layers: a tile of sums that stays in registers.
#![expect(unsafe_code, reason = "register tiles over raw pointers; `product.rs` checks every length")]

#[cfg(target_arch = "x86_64")]
use labelsieve::level::Instructions;
use labelsieve::level::Level;

#[cfg(target_arch = "x86_64")]
use crate::cpu::lanes::{Avx2, Avx512};
use crate::cpu::lanes::{Lanes, Plain};

/// Rows and columns of a tile: as many sums as the registers of a level hold, beside what is read meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TileShape {
    pub rows: usize,
    pub columns: usize,
}

/// The most rows and columns of any level.
pub(super) const MOST: TileShape = TileShape { rows: 14, columns: 32 };

impl TileShape {
    pub fn of(level: Level) -> TileShape {
        match level.instructions() {
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512 => TileShape { rows: 14, columns: 32 },
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => TileShape { rows: 6, columns: 16 },
            _ => TileShape { rows: 4, columns: 8 },
        }
    }
}

/// Adds the products of packed rows and packed columns to `rows` × `columns` sums, as many as [`TileShape::of`] says.
///
/// # Safety
/// For each of `depth` steps, `a` has a number per row and `b` one per column; `sums` has `columns` numbers per row, rows
/// `stride` apart, and nothing else reads or writes them meanwhile.
pub(super) unsafe fn add_product(
    level: Level,
    (a, b, depth): (*const f32, *const f32, usize),
    (sums, stride): (*mut f32, usize),
) {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    unsafe fn avx512(a: *const f32, b: *const f32, depth: usize, sums: *mut f32, stride: usize) {
        // SAFETY: as the caller guarantees.
        unsafe { tile::<Avx512, 2, 14>(a, b, depth, sums, stride) }
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2(a: *const f32, b: *const f32, depth: usize, sums: *mut f32, stride: usize) {
        // SAFETY: as the caller guarantees.
        unsafe { tile::<Avx2, 2, 6>(a, b, depth, sums, stride) }
    }
    // SAFETY: as the caller guarantees; the machine has the instructions of every `Level` there is.
    unsafe {
        match level.instructions() {
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512 => avx512(a, b, depth, sums, stride),
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => avx2(a, b, depth, sums, stride),
            _ => tile::<Plain, 1, 4>(a, b, depth, sums, stride),
        }
    }
}

/// `M` rows of `R` registers each.
#[inline(always)]
unsafe fn tile<L: Lanes, const R: usize, const M: usize>(
    mut a: *const f32,
    mut b: *const f32,
    depth: usize,
    sums: *mut f32,
    stride: usize,
) {
    // SAFETY: all offsets lie inside what the caller guarantees.
    unsafe {
        let mut tile = [[L::zero(); R]; M];
        for _ in 0..depth {
            let mut columns = [L::zero(); R];
            for (r, column) in columns.iter_mut().enumerate() {
                *column = L::load(b.add(r * L::N));
            }
            for (j, row) in tile.iter_mut().enumerate() {
                let a = *a.add(j);
                for (sum, column) in row.iter_mut().zip(columns) {
                    *sum = L::add_scaled(*sum, a, column);
                }
            }
            a = a.add(M);
            b = b.add(R * L::N);
        }
        for (j, row) in tile.into_iter().enumerate() {
            for (r, sum) in row.into_iter().enumerate() {
                let to = sums.add(j * stride + r * L::N);
                L::store(to, L::add(L::load(to), sum));
            }
        }
    }
}
