//! The vector units of the machine behind a few functions, so that a kernel is written once.
#![expect(unsafe_code, reason = "vector instructions; a kernel is entered only where the machine has them")]

/// A vector of `f32` in one register. All functions need the machine to have the instructions: a kernel is entered only
/// with a [`Level`](labelsieve_numerics::level::Level) that says so.
pub(crate) trait Lanes {
    /// The register.
    type V: Copy;
    /// Numbers in it.
    const N: usize;

    /// Zeros.
    unsafe fn zero() -> Self::V;
    /// The `N` numbers at `from`.
    unsafe fn load(from: *const f32) -> Self::V;
    /// Writes `N` numbers.
    unsafe fn store(to: *mut f32, value: Self::V);
    /// The first `count` numbers at `from`, a multiple of 8, and zeros.
    unsafe fn load_some(from: *const f32, count: usize) -> Self::V;
    /// Writes the first `count` numbers, a multiple of 8.
    unsafe fn store_some(to: *mut f32, value: Self::V, count: usize);
    /// `sum + a * b`, `a` the same for all lanes.
    unsafe fn add_scaled(sum: Self::V, a: f32, b: Self::V) -> Self::V;
    /// `sum + a * b`.
    unsafe fn add_product(sum: Self::V, a: Self::V, b: Self::V) -> Self::V;
    /// `a + b`.
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    /// `low` where `a` is less, `high` where it is more.
    unsafe fn clamp(a: Self::V, low: f32, high: f32) -> Self::V;
    /// Prefetches `from` into the second-level cache; any address is allowed.
    #[inline(always)]
    fn prefetch(from: *const f32) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every x86-64 machine has it, and it reads nothing that the program could see.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T1>(from.cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = from;
    }
}

/// AVX-512.
#[cfg(target_arch = "x86_64")]
pub(crate) struct Avx512;

#[cfg(target_arch = "x86_64")]
impl Lanes for Avx512 {
    type V = std::arch::x86_64::__m512;
    const N: usize = 16;

    #[inline(always)]
    unsafe fn zero() -> Self::V {
        // SAFETY: the caller checked for AVX-512; the same for the functions below, whose pointers the caller guarantees.
        unsafe { std::arch::x86_64::_mm512_setzero_ps() }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self::V {
        // SAFETY: see `zero`.
        unsafe { std::arch::x86_64::_mm512_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, value: Self::V) {
        // SAFETY: see `zero`.
        unsafe { std::arch::x86_64::_mm512_storeu_ps(to, value) }
    }

    #[inline(always)]
    unsafe fn load_some(from: *const f32, count: usize) -> Self::V {
        // SAFETY: see `zero`; masked lanes are not read.
        unsafe { std::arch::x86_64::_mm512_maskz_loadu_ps(first_lanes(count), from) }
    }

    #[inline(always)]
    unsafe fn store_some(to: *mut f32, value: Self::V, count: usize) {
        // SAFETY: see `zero`; masked lanes are not written.
        unsafe { std::arch::x86_64::_mm512_mask_storeu_ps(to, first_lanes(count), value) }
    }

    #[inline(always)]
    unsafe fn add_scaled(sum: Self::V, a: f32, b: Self::V) -> Self::V {
        // SAFETY: see `zero`.
        unsafe { std::arch::x86_64::_mm512_fmadd_ps(std::arch::x86_64::_mm512_set1_ps(a), b, sum) }
    }

    #[inline(always)]
    unsafe fn add_product(sum: Self::V, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: see `zero`.
        unsafe { std::arch::x86_64::_mm512_fmadd_ps(a, b, sum) }
    }

    #[inline(always)]
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: see `zero`.
        unsafe { std::arch::x86_64::_mm512_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn clamp(a: Self::V, low: f32, high: f32) -> Self::V {
        use std::arch::x86_64::{_mm512_max_ps, _mm512_min_ps, _mm512_set1_ps};
        // SAFETY: see `zero`.
        unsafe { _mm512_min_ps(_mm512_max_ps(a, _mm512_set1_ps(low)), _mm512_set1_ps(high)) }
    }
}

/// The lanes below `count`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn first_lanes(count: usize) -> u16 {
    ((1u32 << count.min(16)) - 1) as u16
}

/// AVX2 with fused multiply-add.
#[cfg(target_arch = "x86_64")]
pub(crate) struct Avx2;

#[cfg(target_arch = "x86_64")]
impl Lanes for Avx2 {
    type V = std::arch::x86_64::__m256;
    const N: usize = 8;

    #[inline(always)]
    unsafe fn zero() -> Self::V {
        // SAFETY: the caller checked for AVX2; the same for the functions below, whose pointers the caller guarantees.
        unsafe { std::arch::x86_64::_mm256_setzero_ps() }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self::V {
        // SAFETY: see `zero`.
        unsafe { std::arch::x86_64::_mm256_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, value: Self::V) {
        // SAFETY: see `zero`.
        unsafe { std::arch::x86_64::_mm256_storeu_ps(to, value) }
    }

    #[inline(always)]
    unsafe fn load_some(from: *const f32, _: usize) -> Self::V {
        // SAFETY: see `zero`; a multiple of eight is the whole register.
        unsafe { Self::load(from) }
    }

    #[inline(always)]
    unsafe fn store_some(to: *mut f32, value: Self::V, _: usize) {
        // SAFETY: see `load_some`.
        unsafe { Self::store(to, value) }
    }

    #[inline(always)]
    unsafe fn add_scaled(sum: Self::V, a: f32, b: Self::V) -> Self::V {
        // SAFETY: see `zero`.
        unsafe { std::arch::x86_64::_mm256_fmadd_ps(std::arch::x86_64::_mm256_set1_ps(a), b, sum) }
    }

    #[inline(always)]
    unsafe fn add_product(sum: Self::V, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: see `zero`.
        unsafe { std::arch::x86_64::_mm256_fmadd_ps(a, b, sum) }
    }

    #[inline(always)]
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: see `zero`.
        unsafe { std::arch::x86_64::_mm256_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn clamp(a: Self::V, low: f32, high: f32) -> Self::V {
        use std::arch::x86_64::{_mm256_max_ps, _mm256_min_ps, _mm256_set1_ps};
        // SAFETY: see `zero`.
        unsafe { _mm256_min_ps(_mm256_max_ps(a, _mm256_set1_ps(low)), _mm256_set1_ps(high)) }
    }
}

/// Any machine: eight numbers, in registers that the compiler chooses.
pub(crate) struct Plain;

impl Lanes for Plain {
    type V = [f32; 8];
    const N: usize = 8;

    #[inline(always)]
    unsafe fn zero() -> Self::V {
        [0.0; 8]
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self::V {
        // SAFETY: the caller guarantees eight numbers at `from`.
        unsafe { from.cast::<[f32; 8]>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, value: Self::V) {
        // SAFETY: the caller guarantees space for eight numbers at `to`.
        unsafe { to.cast::<[f32; 8]>().write_unaligned(value) }
    }

    #[inline(always)]
    unsafe fn load_some(from: *const f32, _: usize) -> Self::V {
        // SAFETY: as for `load`; a multiple of eight is all of them.
        unsafe { Self::load(from) }
    }

    #[inline(always)]
    unsafe fn store_some(to: *mut f32, value: Self::V, _: usize) {
        // SAFETY: as for `load_some`.
        unsafe { Self::store(to, value) }
    }

    #[inline(always)]
    unsafe fn add_scaled(sum: Self::V, a: f32, b: Self::V) -> Self::V {
        // SAFETY: nothing is read.
        unsafe { Self::add_product(sum, [a; 8], b) }
    }

    #[inline(always)]
    unsafe fn add_product(mut sum: Self::V, a: Self::V, b: Self::V) -> Self::V {
        for (s, (a, b)) in sum.iter_mut().zip(a.into_iter().zip(b)) {
            // Rounded once where every machine has the instruction, as with AVX2 and AVX-512; emulated it would be slow.
            *s = if cfg!(target_arch = "aarch64") { a.mul_add(b, *s) } else { *s + a * b };
        }
        sum
    }

    #[inline(always)]
    unsafe fn add(mut a: Self::V, b: Self::V) -> Self::V {
        for (a, b) in a.iter_mut().zip(b) {
            *a += b;
        }
        a
    }

    #[inline(always)]
    unsafe fn clamp(a: Self::V, low: f32, high: f32) -> Self::V {
        a.map(|a| a.max(low).min(high))
    }
}
