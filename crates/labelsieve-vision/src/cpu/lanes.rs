//! The vector units of the machine behind a few functions, so that a kernel is written once.
#![expect(unsafe_code, reason = "vector instructions; a kernel is entered only where the machine has them")]

/// A vector of `f32` in one register. All functions need the machine to have the instructions: a kernel is entered only
/// with a [`Level`](labelsieve::level::Level) that says so.
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
    /// `sum + a * b`, `a` the same for all lanes.
    unsafe fn add_scaled(sum: Self::V, a: f32, b: Self::V) -> Self::V;
    /// `a + b`.
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    /// Zero where `a` is negative.
    unsafe fn relu(a: Self::V) -> Self::V;
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
    unsafe fn add_scaled(sum: Self::V, a: f32, b: Self::V) -> Self::V {
        // SAFETY: see `zero`.
        unsafe { std::arch::x86_64::_mm512_fmadd_ps(std::arch::x86_64::_mm512_set1_ps(a), b, sum) }
    }

    #[inline(always)]
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: see `zero`.
        unsafe { std::arch::x86_64::_mm512_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn relu(a: Self::V) -> Self::V {
        // SAFETY: see `zero`.
        unsafe { std::arch::x86_64::_mm512_max_ps(a, Self::zero()) }
    }
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
    unsafe fn add_scaled(sum: Self::V, a: f32, b: Self::V) -> Self::V {
        // SAFETY: see `zero`.
        unsafe { std::arch::x86_64::_mm256_fmadd_ps(std::arch::x86_64::_mm256_set1_ps(a), b, sum) }
    }

    #[inline(always)]
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: see `zero`.
        unsafe { std::arch::x86_64::_mm256_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn relu(a: Self::V) -> Self::V {
        // SAFETY: see `zero`.
        unsafe { std::arch::x86_64::_mm256_max_ps(a, Self::zero()) }
    }
}

/// Any machine: eight numbers that the compiler puts into whatever registers there are.
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
    unsafe fn add_scaled(mut sum: Self::V, a: f32, b: Self::V) -> Self::V {
        for (s, b) in sum.iter_mut().zip(b) {
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
    unsafe fn relu(a: Self::V) -> Self::V {
        a.map(|a| a.max(0.0))
    }
}
