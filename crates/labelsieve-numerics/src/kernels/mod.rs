//! The hot loops, written for the vector units of the machine.
//!
//! All functions take plain slices. [`dot`] defines the similarity of two rows for the whole crate:
//! faster products only *screen*, and pairs that pass are measured again with [`dot`].

mod aligned;
mod cholesky;
mod dot;
mod fixed_point;
#[cfg(target_arch = "aarch64")]
mod float_screen;
mod fused;
pub mod matrix;
mod product;
mod scatter;
mod screen;
mod thin;

pub use aligned::Aligned;
pub use cholesky::Cholesky;
pub use dot::{dot, dot_at};
pub use product::{add_transposed_product, product, product_with_transposed};
pub use scatter::Scatter;
pub use screen::{Hit, ROW_STEP, RowSlice, Screen, Tile, rounding_bound};
pub use thin::{BLOCK, COLUMNS, add_gradients, thin_product};

use crate::level::Level;

/// Compiles a function three times, for plain x86-64, AVX2 and AVX-512. The resulting function takes the level as an additional
/// first argument. Its loops are ordinary ones that the compiler vectorises; products and sums are rounded separately, so all
/// three versions give the same bits. The functions it calls must be `#[inline(always)]`.
#[macro_export]
macro_rules! for_this_machine {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $type:ty),* $(,)?) $body:block) => {
        $(#[$meta])*
        #[cfg_attr(
            not(target_arch = "x86_64"),
            expect(unused_variables, reason = "elsewhere the compiler may use all instructions anyway")
        )]
        $vis fn $name(level: $crate::level::Level, $($arg: $type),*) {
            #[inline(always)]
            fn work($($arg: $type),*) $body

            #[cfg(target_arch = "x86_64")]
            {
                use $crate::level::Instructions;

                #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
                fn avx512($($arg: $type),*) {
                    work($($arg),*)
                }

                #[target_feature(enable = "avx2")]
                fn avx2($($arg: $type),*) {
                    work($($arg),*)
                }

                match level.instructions() {
                    // SAFETY: the machine has the instructions of every `Level` there is.
                    Instructions::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    Instructions::Avx2 => return unsafe { avx2($($arg),*) },
                    Instructions::Plain | Instructions::Neon => (),
                }
            }
            work($($arg),*)
        }
    };
}
pub use crate::for_this_machine;

/// Prefetches a row that will be read soon.
#[inline(always)]
pub fn prefetch(row: &[f32]) {
    #[cfg(target_arch = "x86_64")]
    for line in row.chunks(16) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint; it reads nothing and cannot fault. Every x86-64 machine has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    for line in row.chunks(16) {
        // SAFETY: as above; every arm64 machine has it.
        unsafe { std::arch::asm!("prfm pldl1keep, [{}]", in(reg) line.as_ptr(), options(nostack, readonly)) };
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = row;
}

for_this_machine! {
    /// `out += weight * row`, element by element.
    pub fn add_scaled_at(out: &mut [f32], weight: f32, row: &[f32]) {
        for (o, r) in out.iter_mut().zip(row) {
            *o += weight * r;
        }
    }
}

for_this_machine! {
    /// `out += row`, element by element.
    pub fn add_at(out: &mut [f32], row: &[f32]) {
        for (o, r) in out.iter_mut().zip(row) {
            *o += r;
        }
    }
}

/// [`add_scaled_at`] with the level of this process.
#[inline]
pub fn add_scaled(out: &mut [f32], weight: f32, row: &[f32]) {
    add_scaled_at(Level::current(), out, weight, row);
}

/// [`add_at`] with the level of this process.
#[inline]
pub fn add(out: &mut [f32], row: &[f32]) {
    add_at(Level::current(), out, row);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    #[test]
    fn sums_of_rows_have_the_bits_of_the_plain_loop_at_every_level_and_length() {
        let stream = Stream::new(2);
        let draw =
            |label: u64, n: u64| -> Vec<f32> { (0..n).map(|i| stream.branch(label).normal(i)).collect() };
        for n in 0..70 {
            let start = draw(0, n);
            let row = draw(1, n);
            let sum: Vec<f32> = start.iter().zip(&row).map(|(o, r)| o + r).collect();
            let scaled: Vec<f32> = start.iter().zip(&row).map(|(o, r)| o + 0.3 * r).collect();
            for level in Level::available() {
                let mut out = start.clone();
                add_at(level, &mut out, &row);
                assert_eq!(out, sum, "{level}");
                let mut out = start.clone();
                add_scaled_at(level, &mut out, 0.3, &row);
                assert_eq!(out, scaled, "{level}");
            }
        }
    }
}
