//! Memory-mapped numbers.

#![expect(unsafe_code, reason = "mapping a file into memory is unsafe")]

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::ops::Range;

use labelsieve_numerics::{Access, BorrowedArray, Pages};
use memmap2::{Mmap, MmapMut, MmapOptions};

/// A memory-mapped range of a file, as `f32`. The system reads pages on first use and drops them when memory runs low.
pub struct MappedFloats {
    map: Mmap,
}

impl MappedFloats {
    /// Maps these bytes of a file of little-endian floats; `None` if they are not aligned.
    pub fn new(file: &File, bytes: Range<u64>) -> io::Result<Option<MappedFloats>> {
        let len = usize::try_from(bytes.end - bytes.start).map_err(io::Error::other)?;
        if file.metadata()?.len() < bytes.end {
            return Err(io::ErrorKind::UnexpectedEof.into()); // it is shorter than when it was opened
        }
        // SAFETY: the map is only read. It cannot be ensured here that no other process writes to the file; the manual asks for it.
        let map = unsafe { MmapOptions::new().offset(bytes.start).len(len).map(file)? };
        let mapped = MappedFloats { map };
        let fits = cfg!(target_endian = "little") && size_of_val(mapped.as_ref()) == len;
        Ok(fits.then_some(mapped))
    }
}

impl AsRef<[f32]> for MappedFloats {
    fn as_ref(&self) -> &[f32] {
        // SAFETY: any four bytes are an `f32`.
        let (before, floats, _) = unsafe { self.map.align_to::<f32>() };
        if before.is_empty() { floats } else { &[] }
    }
}

impl BorrowedArray<f32> for MappedFloats {
    #[cfg(unix)]
    fn fetch(&self, part: Range<usize>) {
        let bytes = bytes_of::<f32>(part);
        let _ = self.map.advise_range(memmap2::Advice::WillNeed, bytes.start, bytes.len()); // a hint
    }

    #[cfg(unix)]
    fn release(&self, part: Range<usize>) {
        let bytes = bytes_of::<f32>(part);
        let advice = memmap2::UncheckedAdvice::DontNeed;
        // SAFETY: the map shares the file's pages, so what is dropped is read again from the file.
        let _ = unsafe { self.map.unchecked_advise_range(advice, bytes.start, bytes.len()) };
    }
}

/// A number of four bytes, for which every bit pattern is valid.
pub trait Number: Send + Sync + 'static {}
impl Number for f32 {}
impl Number for u32 {}

/// A memory-mapped scratch file, as numbers to read and write.
pub struct MappedPages<T> {
    map: MmapMut,
    len: usize,
    numbers: PhantomData<fn() -> T>,
}

impl<T: Number> MappedPages<T> {
    /// Maps the first `len` numbers of a file that is long enough.
    pub fn new(file: &File, len: usize) -> io::Result<MappedPages<T>> {
        let n_bytes = len.checked_mul(size_of::<T>()).ok_or(io::ErrorKind::OutOfMemory)?;
        if file.metadata()?.len() < n_bytes as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // SAFETY: the file has no name and no other user, so it is neither changed nor truncated.
        let map = unsafe { MmapOptions::new().len(n_bytes).map_mut(file)? };
        Ok(MappedPages { map, len, numbers: PhantomData })
    }
}

impl<T: Number> AsRef<[T]> for MappedPages<T> {
    #[inline(always)]
    fn as_ref(&self) -> &[T] {
        // SAFETY: a map starts at a page, which suits any number, and has `len` of them; any bytes are such a number.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast(), self.len) }
    }
}

impl<T: Number> AsMut<[T]> for MappedPages<T> {
    #[inline(always)]
    fn as_mut(&mut self) -> &mut [T] {
        // SAFETY: as above; the map is borrowed as long as the numbers are.
        unsafe { std::slice::from_raw_parts_mut(self.map.as_mut_ptr().cast(), self.len) }
    }
}

impl<T: Number> BorrowedArray<T> for MappedPages<T> {
    #[cfg(unix)]
    fn fetch(&self, part: Range<usize>) {
        let bytes = bytes_of::<T>(part);
        let _ = self.map.advise_range(memmap2::Advice::WillNeed, bytes.start, bytes.len()); // a hint
    }

    #[cfg(unix)]
    fn expect(&self, access: Access) {
        let advice = match access {
            Access::InOrder => memmap2::Advice::Normal,
            Access::Scattered => memmap2::Advice::Random,
        };
        let _ = self.map.advise(advice); // a hint
    }

    #[cfg(unix)]
    fn release(&self, part: Range<usize>) {
        let bytes = bytes_of::<T>(part);
        let advice = memmap2::UncheckedAdvice::DontNeed;
        // SAFETY: the map shares the file's pages: what was written stays in them, and is read again from there.
        let _ = unsafe { self.map.unchecked_advise_range(advice, bytes.start, bytes.len()) };
    }
}

impl<T: Number> Pages<T> for MappedPages<T> {}

#[cfg(unix)]
fn bytes_of<T>(part: Range<usize>) -> Range<usize> {
    part.start * size_of::<T>()..part.end * size_of::<T>()
}
