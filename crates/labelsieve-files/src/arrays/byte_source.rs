//! Bytes that can be read at any offset by many threads at once.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::OnceLock;

use crate::arrays::mapped::MappedFloats;

/// A range of an open file, or bytes in memory.
#[derive(Debug)]
pub enum ByteSource {
    /// A range of a file.
    File {
        /// The file.
        file: File,
        /// The first byte.
        start: u64,
        /// Number of bytes.
        len: u64,
    },
    /// Bytes in memory.
    Memory(Vec<u8>),
}

/// The expected CRC-32 of a range of bytes. It is verified once, at the first read of an element, so reading only the header
/// costs nothing.
#[derive(Debug)]
pub struct Checksum {
    expected: u32,
    found: OnceLock<Result<u32, (io::ErrorKind, String)>>,
}

impl Checksum {
    /// Expects this checksum.
    pub fn new(expected: u32) -> Checksum {
        Checksum { expected, found: OnceLock::new() }
    }

    /// Whether the bytes match; if not, both checksums.
    pub fn check(&self, bytes: &ByteSource) -> io::Result<Result<(), (u32, u32)>> {
        let found = self.found.get_or_init(|| bytes.crc32().map_err(|e| (e.kind(), e.to_string())));
        match found {
            Ok(found) if *found == self.expected => Ok(Ok(())),
            Ok(found) => Ok(Err((self.expected, *found))),
            Err((kind, message)) => Err(io::Error::new(*kind, message.clone())),
        }
    }
}

impl ByteSource {
    /// Number of bytes.
    pub fn len(&self) -> u64 {
        match self {
            ByteSource::File { len, .. } => *len,
            ByteSource::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// The CRC-32 of all bytes, in one pass.
    fn crc32(&self) -> io::Result<u32> {
        const PIECE: u64 = 1 << 20;
        let mut hasher = crc32fast::Hasher::new();
        let mut piece = Vec::new();
        for offset in (0..self.len()).step_by(PIECE as usize) {
            piece.resize((self.len() - offset).min(PIECE) as usize, 0);
            self.read_exact_at(offset, &mut piece)?;
            hasher.update(&piece);
        }
        Ok(hasher.finalize())
    }

    /// Memory-maps a range of a file as floats, where the platform supports it.
    pub fn map_floats(&self, range: Range<u64>) -> Option<MappedFloats> {
        match self {
            ByteSource::File { file, start, len } if range.end <= *len => {
                MappedFloats::new(file, start + range.start..start + range.end).ok()?
            }
            _ => None,
        }
    }

    /// Fills `out` with the bytes from `offset`.
    pub fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(out.len() as u64).filter(|&end| end <= self.len());
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        match self {
            ByteSource::File { file, start, .. } => read_file_at(file, start + offset, out),
            ByteSource::Memory(bytes) => {
                out.copy_from_slice(&bytes[offset as usize..end as usize]);
                Ok(())
            }
        }
    }
}

#[cfg(unix)]
fn read_file_at(file: &File, offset: u64, out: &mut [u8]) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    file.read_exact_at(out, offset)
}

#[cfg(windows)]
fn read_file_at(file: &File, mut offset: u64, mut out: &mut [u8]) -> io::Result<()> {
    use std::os::windows::fs::FileExt;
    while !out.is_empty() {
        match file.seek_read(out, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                out = &mut out[n..];
                offset += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_past_the_end_fails_without_touching_the_file_behind() {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, b"..inside..").unwrap();
        for source in [ByteSource::File { file, start: 2, len: 6 }, ByteSource::Memory(b"inside".to_vec())] {
            let mut out = [0; 4];
            source.read_exact_at(2, &mut out).unwrap();
            assert_eq!(&out, b"side");
            assert!(source.read_exact_at(3, &mut out).is_err());
            assert!(source.read_exact_at(u64::MAX, &mut out).is_err());
        }
    }
}
