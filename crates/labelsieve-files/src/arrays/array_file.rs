//! One NumPy array in a file: a whole `.npy`, or a member of an `.npz`.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use half::f16;

use crate::arrays::byte_source::{ByteSource, Checksum};
use crate::arrays::mapped::MappedFloats;
use crate::arrays::npy::{Dtype, NPY_HEAD_LIMIT, NpyHeader};
use crate::storage::input::open_seekable;
use crate::{DataError, Result};

/// Maximum number of bytes per read.
pub const CHUNK_BYTES: usize = 8 << 20;

/// A NumPy array that is read in place, in pieces, from any number of threads.
#[derive(Debug)]
pub struct ArrayFile {
    path: PathBuf,
    header: NpyHeader,
    bytes: ByteSource,
    /// In an archive, the checksum that the bytes should have.
    checksum: Option<Checksum>,
}

impl ArrayFile {
    /// Opens a `.npy` file and checks its header; no element is read yet.
    pub fn open(path: impl AsRef<Path>) -> Result<ArrayFile> {
        let path = path.as_ref();
        ArrayFile::from_file(path, open_seekable(path)?)
    }

    /// As [`ArrayFile::open`], for an open file; `path` is its name in messages.
    pub fn from_file(path: &Path, file: File) -> Result<ArrayFile> {
        let len = file.metadata().map_err(DataError::io("read", path))?.len();
        ArrayFile::new(path.to_path_buf(), ByteSource::File { file, start: 0, len })
    }

    /// `bytes` holds a whole `.npy`; `path` is its name in messages.
    pub fn new(path: PathBuf, bytes: ByteSource) -> Result<ArrayFile> {
        let mut head = vec![0; bytes.len().min(NPY_HEAD_LIMIT as u64) as usize];
        bytes.read_exact_at(0, &mut head).map_err(DataError::io("read", &path))?;
        let header = NpyHeader::parse(&path, &head, bytes.len())?;
        Ok(ArrayFile { path, header, bytes, checksum: None })
    }

    /// A file without a header: little-endian elements in this shape.
    pub fn without_header(path: &Path, file: File, dtype: Dtype, shape: Vec<usize>) -> Result<ArrayFile> {
        let len = file.metadata().map_err(DataError::io("read", path))?.len();
        let header = NpyHeader { dtype, fortran: false, shape, data_offset: 0 };
        let bytes = ByteSource::File { file, start: 0, len };
        Ok(ArrayFile { path: path.to_path_buf(), header, bytes, checksum: None })
    }

    /// Adds a checksum, which is verified before the first element is returned.
    pub fn with_checksum(self, crc32: u32) -> ArrayFile {
        ArrayFile { checksum: Some(Checksum::new(crc32)), ..self }
    }

    /// The file; for a member of an archive, `archive.npz/member.npy`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Element type and shape.
    pub fn header(&self) -> &NpyHeader {
        &self.header
    }

    /// The number of bytes in memory: nonzero only for a member of a compressed archive.
    pub fn bytes_in_memory(&self) -> u64 {
        match &self.bytes {
            ByteSource::File { .. } => 0,
            ByteSource::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// All elements of a one-dimensional array of integers. Floats are accepted if each is an integer.
    pub fn read_ints(&self) -> Result<Vec<i64>> {
        match self.header.shape[..] {
            [_] => self.read_flat_ints(),
            _ => Err(self.wrong_shape("one axis")),
        }
    }

    /// All elements in file order.
    pub fn read_flat_ints(&self) -> Result<Vec<i64>> {
        let size = self.header.dtype.size();
        let mut values = Vec::with_capacity(self.header.len());
        let mut chunk = Vec::new();
        while values.len() < self.header.len() {
            let n_elements = (self.header.len() - values.len()).min(CHUNK_BYTES / size);
            chunk.resize(n_elements * size, 0);
            self.read_elements(values.len(), &mut chunk)?;
            for element in chunk.chunks_exact(size) {
                let value = decode_int(self.header.dtype, element).map_err(|found| {
                    DataError::malformed(
                        &self.path,
                        format!("element {}", values.len()),
                        "a 64-bit integer",
                        found,
                    )
                })?;
                values.push(value);
            }
        }
        Ok(values)
    }

    /// Fills `out` with the raw bytes of the elements from `first` on.
    pub fn read_elements(&self, first: usize, out: &mut [u8]) -> Result<()> {
        if let Some(checksum) = &self.checksum {
            let checked = checksum.check(&self.bytes).map_err(DataError::io("read", &self.path))?;
            checked.map_err(|(expected, found)| {
                let expected = format!("{expected:08x}");
                let found = format!("{found:08x}: file is corrupt");
                DataError::malformed(&self.path, "checksum", expected, found)
            })?;
        }
        let offset = self.header.data_offset + (first * self.header.dtype.size()) as u64;
        self.bytes.read_exact_at(offset, out).map_err(DataError::io("read", &self.path))
    }

    /// Memory-maps some of the elements. Only for 32-bit floats outside an archive: the members of one must be verified first.
    pub fn map_floats(&self, elements: Range<usize>) -> Option<MappedFloats> {
        if self.header.dtype != Dtype::F32 || self.checksum.is_some() || elements.is_empty() {
            return None;
        }
        let offset = |element: usize| self.header.data_offset + (element * size_of::<f32>()) as u64;
        self.bytes.map_floats(offset(elements.start)..offset(elements.end))
    }

    /// The error for an array of another shape than `expected`.
    pub fn wrong_shape(&self, expected: &str) -> DataError {
        DataError::malformed(&self.path, "npy shape", expected, format!("{:?}", self.header.shape))
    }
}

/// All elements of a one-dimensional `.npy` of integers.
pub fn read_ints(path: impl AsRef<Path>) -> Result<Vec<i64>> {
    ArrayFile::open(path)?.read_ints()
}

/// The integer in `bytes`; the error is the value that is not one.
fn decode_int(dtype: Dtype, bytes: &[u8]) -> std::result::Result<i64, String> {
    let mut raw = [0; 8];
    raw[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(raw);
    Ok(match dtype {
        Dtype::Bool | Dtype::U8 | Dtype::U16 | Dtype::U32 => bits as i64,
        Dtype::I8 => i64::from(bits as i8),
        Dtype::I16 => i64::from(bits as i16),
        Dtype::I32 => i64::from(bits as i32),
        Dtype::I64 => bits as i64,
        Dtype::U64 => return i64::try_from(bits).map_err(|_| bits.to_string()),
        Dtype::F16 => return integer(f16::from_bits(bits as u16).to_f64()),
        Dtype::F32 => return integer(f64::from(f32::from_bits(bits as u32))),
        Dtype::F64 => return integer(f64::from_bits(bits)),
    })
}

fn integer(value: f64) -> std::result::Result<i64, String> {
    const EXACT: f64 = 9_007_199_254_740_992.0; // above 2^53 a float no longer identifies one integer
    if value.fract() == 0.0 && value.abs() <= EXACT { Ok(value as i64) } else { Err(value.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::npy_write::{write_npy_f32, write_npy_i64};

    fn array(write: impl Fn(&mut Vec<u8>) -> std::io::Result<()>) -> Result<ArrayFile> {
        let mut bytes = Vec::new();
        write(&mut bytes).unwrap();
        ArrayFile::new("a.npy".into(), ByteSource::Memory(bytes))
    }

    #[test]
    fn integers_come_back_from_ints_and_floats() {
        let ints = array(|bytes| write_npy_i64(bytes, &[3], &[-1, 0, i64::MAX])).unwrap();
        assert_eq!(ints.read_ints().unwrap(), [-1, 0, i64::MAX]);
        let floats = array(|bytes| write_npy_f32(bytes, &[2], &[4.0, -7.0])).unwrap();
        assert_eq!(floats.read_ints().unwrap(), [4, -7]);
    }

    #[test]
    fn a_fraction_among_the_labels_is_named_with_its_place() {
        let floats = array(|bytes| write_npy_f32(bytes, &[3], &[4.0, 0.5, 1.0])).unwrap();
        let error = floats.read_ints().unwrap_err().to_string();
        assert_eq!(error, "`a.npy`: element 1: expected a 64-bit integer, found 0.5");
    }

    #[test]
    fn a_matrix_is_not_a_list_of_labels() {
        let matrix = array(|bytes| write_npy_i64(bytes, &[2, 2], &[1; 4])).unwrap();
        let error = matrix.read_ints().unwrap_err().to_string();
        assert_eq!(error, "`a.npy`: npy shape: expected one axis, found [2, 2]");
    }

    #[test]
    fn every_integer_type_keeps_its_sign() {
        let check = |dtype, bytes: &[u8], expected: i64| assert_eq!(decode_int(dtype, bytes), Ok(expected));
        check(Dtype::I8, &[0xff], -1);
        check(Dtype::U8, &[0xff], 255);
        check(Dtype::I16, &[0xfe, 0xff], -2);
        check(Dtype::U16, &[0xfe, 0xff], 65534);
        check(Dtype::I32, &[0xfd, 0xff, 0xff, 0xff], -3);
        check(Dtype::U32, &[0xff; 4], 4_294_967_295);
        check(Dtype::Bool, &[1], 1);
        check(Dtype::F16, &[0x00, 0x48], 8);
        assert_eq!(decode_int(Dtype::U64, &[0xff; 8]), Err(u64::MAX.to_string()));
        assert_eq!(decode_int(Dtype::F64, &f64::NAN.to_le_bytes()), Err("NaN".to_owned()));
    }
}
