//! The few loops where the time goes, written for the machine's vector units.
//!
//! Everything here is a plain function of slices. [`dot`] defines the similarity of two rows for the whole crate:
//! faster products only *screen*, and whatever they let through is measured again with [`dot`].

mod dot;
mod fixed_point;
mod product;
mod screen;
mod thin;

pub(crate) use dot::dot;
pub(crate) use product::{add_transposed_product, product, product_with_transposed};
pub(crate) use screen::{Hit, ROW_STEP, Screen, Tile, rounding_bound};
pub(crate) use thin::{COLUMNS, thin_product, thin_transposed_product};

/// Compiles a function three times, for plain x86-64, AVX2 and AVX-512, and calls the best that the machine has. The
/// loops inside are ordinary ones that the compiler turns into vector instructions; products and sums stay rounded one
/// by one, so all three give the same bits. What the function calls must be `#[inline(always)]`.
#[doc(hidden)] // for our own crates
#[macro_export]
macro_rules! for_this_machine {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $type:ty),* $(,)?) $body:block) => {
        $(#[$meta])*
        $vis fn $name($($arg: $type),*) {
            #[inline(always)]
            fn work($($arg: $type),*) $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
                fn avx512($($arg: $type),*) {
                    work($($arg),*)
                }

                #[target_feature(enable = "avx2")]
                fn avx2($($arg: $type),*) {
                    work($($arg),*)
                }

                if is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                {
                    // SAFETY: the machine has the features.
                    return unsafe { avx512($($arg),*) };
                }
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: the machine has the feature.
                    return unsafe { avx2($($arg),*) };
                }
            }
            work($($arg),*)
        }
    };
}
pub(crate) use for_this_machine;

/// Asks the memory for a row that will be read soon.
#[inline(always)]
pub(crate) fn prefetch(row: &[f32]) {
    #[cfg(target_arch = "x86_64")]
    for line in row.chunks(16) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint; it reads nothing and cannot fault. Every x86-64 machine has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = row;
}

for_this_machine! {
    /// `out += weight * row`, element by element.
    pub(crate) fn add_scaled(out: &mut [f32], weight: f32, row: &[f32]) {
        for (o, r) in out.iter_mut().zip(row) {
            *o += weight * r;
        }
    }
}

for_this_machine! {
    /// `out += row`, element by element.
    pub(crate) fn add(out: &mut [f32], row: &[f32]) {
        for (o, r) in out.iter_mut().zip(row) {
            *o += r;
        }
    }
}
