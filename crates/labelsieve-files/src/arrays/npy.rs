//! The header of a NumPy `.npy` file.
//!
//! Layout: `\x93NUMPY`, two version bytes, the header length (two bytes in version 1, four in 2 and 3), then a Python
//! dictionary such as `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }` and the elements. Every length is
//! checked against the length of the file before it is used.

use std::fmt;
use std::path::Path;

use crate::arrays::npy_dictionary::{Dictionary, shorten};
use crate::{DataError, Result};

/// The number of leading bytes that [`NpyHeader::parse`] needs at most. Headers of plain number arrays are 118 bytes long.
pub const NPY_HEAD_LIMIT: usize = 64 << 10;

/// The first bytes of every `.npy` file.
pub const MAGIC: &[u8] = b"\x93NUMPY";

/// The element types that can be read: little-endian numbers and booleans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum Dtype {
    F16,
    F32,
    F64,
    I32,
    I64,
    U32,
    U64,
    I8,
    U8,
    I16,
    U16,
    Bool,
}

impl Dtype {
    const ALL: [(&str, Dtype, usize); 12] = [
        ("f2", Dtype::F16, 2),
        ("f4", Dtype::F32, 4),
        ("f8", Dtype::F64, 8),
        ("i4", Dtype::I32, 4),
        ("i8", Dtype::I64, 8),
        ("u4", Dtype::U32, 4),
        ("u8", Dtype::U64, 8),
        ("i1", Dtype::I8, 1),
        ("u1", Dtype::U8, 1),
        ("i2", Dtype::I16, 2),
        ("u2", Dtype::U16, 2),
        ("b1", Dtype::Bool, 1),
    ];

    /// Bytes per element.
    pub fn size(self) -> usize {
        self.entry().2
    }

    fn entry(self) -> &'static (&'static str, Dtype, usize) {
        Dtype::ALL.iter().find(|entry| entry.1 == self).expect("the table lists every variant")
    }

    /// Parses NumPy's name for a type, e.g. `<f4`; the error describes the unsupported type.
    pub fn from_descr(descr: &str) -> std::result::Result<Dtype, String> {
        let order = descr.chars().next().unwrap_or(' ');
        let known = Dtype::ALL.iter().find(|entry| Some(entry.0) == descr.get(1..));
        match (order, known) {
            ('<' | '|' | '=', Some(entry)) => Ok(entry.1),
            ('>', Some(_)) => Err(format!("big-endian `{descr}`")),
            _ if descr.ends_with('O') => Err(format!("Python objects (`{descr}`)")),
            _ => Err(format!("`{}`", shorten(descr))),
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.entry().0)
    }
}

/// The header of a `.npy` file, checked against the length of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NpyHeader {
    /// The element type.
    pub dtype: Dtype,
    /// Whether columns instead of rows are contiguous.
    pub fortran: bool,
    /// The lengths of the axes; empty for a single number.
    pub shape: Vec<usize>,
    /// The offset of the first element.
    pub data_offset: u64,
}

impl NpyHeader {
    /// Reads the header from `head`, the first bytes (at least [`NPY_HEAD_LIMIT`], or all) of a file of `file_len` bytes.
    ///
    /// `path` is used only in error messages. The elements must fill the rest of the file exactly.
    pub fn parse(path: &Path, head: &[u8], file_len: u64) -> Result<NpyHeader> {
        let (start, length) = locate_dictionary(path, head, file_len)?;
        let text = head
            .get(start..start + length)
            .and_then(|bytes| std::str::from_utf8(bytes).ok())
            .ok_or_else(|| DataError::malformed(path, "npy header", "text in UTF-8", "other bytes"))?;
        let (dtype, fortran, shape) = Dictionary::new(path, text).read()?;
        let header = NpyHeader { dtype, fortran, shape, data_offset: (start + length) as u64 };
        header.check_payload(path, file_len.saturating_sub(header.data_offset))?;
        Ok(header)
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn check_payload(&self, path: &Path, payload: u64) -> Result<()> {
        // Zero axes count as one here, so that `(0, 2**62)` cannot smuggle in an absurd number of columns.
        let extent = self.shape.iter().try_fold(self.dtype.size(), |n, &axis| n.checked_mul(axis.max(1)));
        if extent.is_none_or(|bytes| bytes > isize::MAX as usize) {
            let found = format!("{:?} of {}", self.shape, self.dtype);
            return Err(DataError::malformed(path, "npy shape", "an array that fits in memory", found));
        }
        let needed = (self.len() * self.dtype.size()) as u64;
        if payload != needed {
            let expected = format!("{needed} bytes for shape {:?} of {}", self.shape, self.dtype);
            return Err(DataError::malformed(path, "npy elements", expected, format!("{payload} bytes")));
        }
        Ok(())
    }
}

/// The start and the length of the dictionary.
fn locate_dictionary(path: &Path, head: &[u8], file_len: u64) -> Result<(usize, usize)> {
    if !head.starts_with(MAGIC) {
        let found = format!("a file of {file_len} bytes that starts differently");
        return Err(DataError::malformed(path, "npy header", "`\\x93NUMPY`", found));
    }
    let (start, length) = match head[MAGIC.len()..] {
        [1, _, a, b, ..] => (10, u64::from(u16::from_le_bytes([a, b]))),
        [2 | 3, _, a, b, c, d, ..] => (12, u64::from(u32::from_le_bytes([a, b, c, d]))),
        [version, _, ..] if !(1..=3).contains(&version) => {
            return Err(DataError::malformed(path, "npy version", "1, 2 or 3", version.to_string()));
        }
        _ => {
            let found = format!("a file of {file_len} bytes");
            return Err(DataError::malformed(path, "npy header", "at least 10 bytes", found));
        }
    };
    let limit = file_len.saturating_sub(start as u64).min((NPY_HEAD_LIMIT - start) as u64);
    if length > limit {
        return Err(DataError::malformed(
            path,
            "npy header",
            format!("at most {limit} bytes"),
            length.to_string(),
        ));
    }
    Ok((start, length as usize))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::npy_write::write_npy_f32;

    fn check(bytes: &[u8], message: &str) {
        let error = NpyHeader::parse(Path::new("a.npy"), bytes, bytes.len() as u64).unwrap_err().to_string();
        assert!(error.starts_with("`a.npy`: "), "{error}");
        assert!(error.contains(message), "{error}");
    }

    fn with_dictionary(version: u8, dictionary: &str, payload: usize) -> Vec<u8> {
        let mut bytes = [MAGIC, &[version, 0]].concat();
        match version {
            1 => bytes.extend((dictionary.len() as u16).to_le_bytes()),
            _ => bytes.extend((dictionary.len() as u32).to_le_bytes()),
        }
        bytes.extend(dictionary.as_bytes());
        bytes.resize(bytes.len() + payload, 0);
        bytes
    }

    #[test]
    fn all_three_versions_are_read() {
        let dictionary = "{'descr': '<f2', 'fortran_order': True, 'shape': (3, 2L), }  \n";
        for version in 1..=3 {
            let bytes = with_dictionary(version, dictionary, 12);
            let header = NpyHeader::parse(Path::new("a.npy"), &bytes, bytes.len() as u64).unwrap();
            assert_eq!((header.dtype, header.fortran, &header.shape[..]), (Dtype::F16, true, &[3, 2][..]));
            assert_eq!(header.data_offset, bytes.len() as u64 - 12);
        }
        check(&with_dictionary(9, dictionary, 12), "npy version: expected 1, 2 or 3, found 9");
    }

    #[test]
    fn a_file_cut_at_any_length_is_refused() {
        let mut whole = Vec::new();
        write_npy_f32(&mut whole, &[5, 3], &[1.0; 15]).unwrap();
        for length in 0..whole.len() {
            check(&whole[..length], "expected");
        }
        check(
            &whole[..whole.len() - 4],
            "npy elements: expected 60 bytes for shape [5, 3] of f4, found 56 bytes",
        );
        whole.push(0);
        check(&whole, "npy elements: expected 60 bytes for shape [5, 3] of f4, found 61 bytes");
    }

    #[test]
    fn an_absurd_header_length_is_refused() {
        let mut bytes = [MAGIC, &[2, 0]].concat();
        bytes.extend(u32::MAX.to_le_bytes());
        bytes.resize(100, b' ');
        check(&bytes, "npy header: expected at most 88 bytes, found 4294967295");
        // Even where the file is long enough: no plain array has a header of 64 KiB.
        let error = NpyHeader::parse(Path::new("a.npy"), &bytes, u64::MAX).unwrap_err().to_string();
        assert!(error.contains("expected at most 65524 bytes, found 4294967295"), "{error}");
    }

    #[test]
    fn a_shape_that_overflows_is_refused() {
        for shape in ["(4294967296, 4294967296)", "(0, 4611686018427387904)", "(9223372036854775807,)"] {
            let dictionary = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
            check(&with_dictionary(1, &dictionary, 0), "npy shape: expected an array that fits in memory");
        }
        let dictionary = "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }";
        check(&with_dictionary(1, dictionary, 0), "npy header: expected a dictionary");
    }

    #[test]
    fn element_types_that_cannot_be_read_are_named() {
        for (descr, found) in [
            ("'|O'", "Python objects (`|O`)"),
            ("'>f4'", "big-endian `>f4`"),
            ("'<U12'", "`<U12`"),
            ("[('f0', '<u8'), ('f1', '<u8')]", "a structured type"),
        ] {
            let dictionary = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (1,), }}");
            let message = format!("npy type: expected little-endian numbers, found {found}");
            check(&with_dictionary(1, &dictionary, 8), &message);
        }
    }
}
