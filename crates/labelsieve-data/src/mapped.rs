//! Numbers that stay in their file and are used as memory.

#![expect(unsafe_code, reason = "a file can be mapped into memory in no other way")]

use std::fs::File;
use std::io;
use std::ops::Range;

use memmap2::{Mmap, MmapOptions};

/// A range of an open file, as `f32`. Its pages are the system's: read when they are first used, and dropped when memory
/// gets short.
pub(crate) struct MappedFloats {
    map: Mmap,
}

impl MappedFloats {
    /// Maps these bytes of a file of little-endian floats; nothing where they do not lie as such numbers do in memory.
    pub(crate) fn new(file: &File, bytes: Range<u64>) -> io::Result<Option<MappedFloats>> {
        let len = usize::try_from(bytes.end - bytes.start).map_err(io::Error::other)?;
        if file.metadata()?.len() < bytes.end {
            return Err(io::ErrorKind::UnexpectedEof.into()); // it is shorter than when it was opened
        }
        // SAFETY: the map is only read. That nobody writes to the file meanwhile cannot be made sure of here; the manual asks for it.
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
