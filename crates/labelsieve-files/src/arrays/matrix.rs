//! An N×d matrix of features whose rows are read from its file on demand.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use half::f16;
use half::slice::HalfFloatSliceExt;
use labelsieve::SharedNumbers;

use crate::arrays::array_file::{ArrayFile, CHUNK_BYTES};
use crate::arrays::npy::Dtype;
use crate::{DataError, Result};

/// More columns than any backbone produces; a file that claims more is corrupt.
const MAX_COLUMNS: usize = 1 << 20;
/// Smaller matrices are copied: that is quick, and a copy no longer depends on the file.
const MIN_LENT_BYTES: usize = 1 << 30;

/// A matrix whose rows are read on demand as `f32`, from any number of threads.
#[derive(Debug)]
pub struct Matrix {
    path: PathBuf,
    rows: usize,
    cols: usize,
    storage: Storage,
}

#[derive(Debug)]
enum Storage {
    File(ArrayFile),
    Memory(Arc<Vec<f32>>),
    /// Matrices stacked row-wise; `starts[i]` is the first row of `parts[i]`.
    Parts {
        starts: Vec<usize>,
        parts: Vec<Matrix>,
    },
}

impl Matrix {
    /// Opens a two-dimensional `.npy` of 16-, 32- or 64-bit floats.
    pub fn open(path: impl AsRef<Path>) -> Result<Matrix> {
        Matrix::from_array(ArrayFile::open(path)?)
    }

    /// A matrix over an array of 16-, 32- or 64-bit floats with two axes, rows first.
    pub fn from_array(array: ArrayFile) -> Result<Matrix> {
        let header = array.header();
        if !matches!(header.dtype, Dtype::F16 | Dtype::F32 | Dtype::F64) {
            let found = header.dtype.to_string();
            return Err(DataError::malformed(array.path(), "npy type", "f2, f4 or f8 features", found));
        }
        let [rows, cols] = header.shape[..] else {
            return Err(array.wrong_shape("two axes (rows, columns)"));
        };
        if !(1..=MAX_COLUMNS).contains(&cols) {
            return Err(array.wrong_shape(&format!("1 to {MAX_COLUMNS} columns")));
        }
        if header.fortran {
            let expected = "contiguous rows (save `np.ascontiguousarray(x)`)";
            return Err(DataError::malformed(array.path(), "npy order", expected, "Fortran order"));
        }
        Ok(Matrix { path: array.path().to_path_buf(), rows, cols, storage: Storage::File(array) })
    }

    /// A matrix in memory, row by row; `path` is its origin.
    ///
    /// # Panics
    /// When `values` is not a whole number of rows.
    pub fn in_memory(path: impl AsRef<Path>, cols: usize, values: Vec<f32>) -> Matrix {
        let rows = values.len().checked_div(cols).unwrap_or(0);
        assert_eq!(rows * cols, values.len(), "{} values do not make rows of {cols}", values.len());
        Matrix { path: path.as_ref().to_path_buf(), rows, cols, storage: Storage::Memory(Arc::new(values)) }
    }

    /// Stacks matrices with the same number of columns; `path` names the result.
    pub fn stack(path: &Path, parts: Vec<Matrix>) -> Result<Matrix> {
        let mut starts = Vec::with_capacity(parts.len());
        let mut rows = 0;
        let cols = parts.first().map_or(0, Matrix::cols);
        for part in &parts {
            if part.cols != cols {
                let expected = format!("{cols} columns as in `{}`", parts[0].path.display());
                return Err(DataError::malformed(&part.path, "npy shape", expected, part.cols.to_string()));
            }
            starts.push(rows);
            rows += part.rows;
        }
        Ok(Matrix { path: path.to_path_buf(), rows, cols, storage: Storage::Parts { starts, parts } })
    }

    /// The file it comes from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// The number of bytes held in memory: all of a Parquet file or a compressed archive, none of a file that is read in
    /// place.
    pub fn bytes_in_memory(&self) -> u64 {
        match &self.storage {
            Storage::File(array) => array.bytes_in_memory(),
            Storage::Memory(values) => (values.len() * size_of::<f32>()) as u64,
            Storage::Parts { parts, .. } => parts.iter().map(Matrix::bytes_in_memory).sum(),
        }
    }

    /// Borrows the given rows without a copy, if they are many and consecutive: in a file of 32-bit floats, or all rows of a
    /// matrix in memory. The numbers are not checked for being finite.
    pub fn lend(&self, rows: &[usize]) -> Option<SharedNumbers> {
        self.lend_from(rows, MIN_LENT_BYTES)
    }

    /// As [`Matrix::lend`], for any number of rows.
    pub fn lend_in_place(&self, rows: &[usize]) -> Option<SharedNumbers> {
        self.lend_from(rows, 0)
    }

    fn lend_from(&self, rows: &[usize], min_bytes: usize) -> Option<SharedNumbers> {
        let &first = rows.first()?;
        let &last = rows.last()?;
        let in_order = rows.is_sorted_by(|&a, &b| b == a + 1) && last < self.rows;
        if !in_order || rows.len() * self.cols * size_of::<f32>() < min_bytes {
            return None;
        }
        match &self.storage {
            Storage::File(array) => {
                let mapped = array.map_floats(first * self.cols..(last + 1) * self.cols)?;
                Some(Arc::new(mapped))
            }
            Storage::Memory(values) if rows.len() == self.rows => Some(Arc::clone(values) as SharedNumbers),
            _ => None,
        }
    }

    /// Copies the given rows, in that order, into `out`. Consecutive row numbers become one large read.
    ///
    /// Fails on a row number beyond the end and on a value that is not finite.
    ///
    /// # Panics
    /// When `out` does not hold exactly these rows.
    pub fn read_rows(&self, rows: &[usize], out: &mut [f32]) -> Result<()> {
        assert_eq!(out.len(), rows.len() * self.cols, "a buffer for {} rows of {}", rows.len(), self.cols);
        if let Some(row) = rows.iter().find(|&&row| row >= self.rows) {
            let expected = format!("a row number below {}", self.rows);
            return Err(DataError::malformed(&self.path, "rows", expected, row.to_string()));
        }
        match &self.storage {
            Storage::File(array) => self.read_from_file(array, rows, out),
            Storage::Memory(values) => {
                for (&row, out) in rows.iter().zip(out.chunks_exact_mut(self.cols)) {
                    out.copy_from_slice(&values[row * self.cols..][..self.cols]);
                    self.check_finite(row, out)?;
                }
                Ok(())
            }
            Storage::Parts { starts, parts } => self.read_from_parts(starts, parts, rows, out),
        }
    }

    fn read_from_file(&self, array: &ArrayFile, rows: &[usize], mut out: &mut [f32]) -> Result<()> {
        let dtype = array.header().dtype;
        let row_bytes = self.cols * dtype.size();
        let rows_per_read = (CHUNK_BYTES / row_bytes).max(1);
        let mut bytes = Vec::new();
        for run in rows.chunk_by(|&a, &b| b == a + 1) {
            for piece in run.chunks(rows_per_read) {
                bytes.resize(piece.len() * row_bytes, 0);
                array.read_elements(piece[0] * self.cols, &mut bytes)?;
                let (values, rest) = out.split_at_mut(piece.len() * self.cols);
                decode_floats(dtype, &bytes, values);
                self.check_finite(piece[0], values)?;
                out = rest;
            }
        }
        Ok(())
    }

    fn read_from_parts(
        &self,
        starts: &[usize],
        parts: &[Matrix],
        rows: &[usize],
        mut out: &mut [f32],
    ) -> Result<()> {
        let part_of = |row: usize| starts.partition_point(|&start| start <= row) - 1;
        for group in rows.chunk_by(|&a, &b| part_of(a) == part_of(b)) {
            let part = part_of(group[0]);
            let local: Vec<usize> = group.iter().map(|row| row - starts[part]).collect();
            let (values, rest) = out.split_at_mut(group.len() * self.cols);
            parts[part].read_rows(&local, values)?;
            out = rest;
        }
        Ok(())
    }

    /// `values` are whole rows from `first_row` on.
    fn check_finite(&self, first_row: usize, values: &[f32]) -> Result<()> {
        if values.iter().fold(true, |finite, value| finite & value.is_finite()) {
            return Ok(()); // the common case, without a branch per value
        }
        let at = values.iter().position(|value| !value.is_finite()).unwrap_or(0);
        let place = format!("row {}, column {}", first_row + at / self.cols, at % self.cols);
        Err(DataError::malformed(&self.path, place, "a finite number", values[at].to_string()))
    }
}

/// Decodes little-endian floats as `f32`; the caller has checked the type.
fn decode_floats(dtype: Dtype, bytes: &[u8], out: &mut [f32]) {
    match dtype {
        Dtype::F16 => {
            let (pairs, _) = bytes.as_chunks::<2>();
            let halves: Vec<f16> = pairs.iter().map(|&pair| f16::from_le_bytes(pair)).collect();
            halves.convert_to_f32_slice(out);
        }
        Dtype::F32 => {
            let (quads, _) = bytes.as_chunks::<4>();
            out.iter_mut().zip(quads).for_each(|(out, &quad)| *out = f32::from_le_bytes(quad));
        }
        _ => {
            let (octets, _) = bytes.as_chunks::<8>();
            out.iter_mut().zip(octets).for_each(|(out, &octet)| *out = f64::from_le_bytes(octet) as f32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::byte_source::ByteSource;
    use crate::arrays::npy_write::{write_npy_f32, write_npy_i64};

    fn npy(descr: &str, fortran: &str, shape: &str, payload: &[u8]) -> Result<Matrix> {
        let dictionary = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((dictionary.len() as u16).to_le_bytes());
        bytes.extend(dictionary.as_bytes());
        bytes.extend(payload);
        Matrix::from_array(ArrayFile::new("a.npy".into(), ByteSource::Memory(bytes))?)
    }

    fn rows_of(matrix: &Matrix, rows: &[usize]) -> Vec<f32> {
        let mut out = vec![0.0; rows.len() * matrix.cols()];
        matrix.read_rows(rows, &mut out).unwrap();
        out
    }

    #[test]
    fn halves_singles_and_doubles_give_the_same_numbers() {
        let values = [1.5, -2.0, 0.25, 8.0, 0.0, -0.5];
        let halves: Vec<u8> = values.iter().flat_map(|&v| f16::from_f64(v).to_le_bytes()).collect();
        let singles: Vec<u8> = values.iter().flat_map(|&v| (v as f32).to_le_bytes()).collect();
        let doubles: Vec<u8> = values.iter().flat_map(|&v| v.to_le_bytes()).collect();
        for (descr, payload) in [("<f2", halves), ("<f4", singles), ("<f8", doubles)] {
            let matrix = npy(descr, "False", "(3, 2)", &payload).unwrap();
            assert_eq!(rows_of(&matrix, &[2, 0, 1]), [0.0, -0.5, 1.5, -2.0, 0.25, 8.0]);
        }
    }

    #[test]
    fn runs_and_jumps_in_a_real_file_give_what_memory_gives() {
        let n = 40_000;
        let d = 64; // 10 MB: a run longer than one read
        let values: Vec<f32> = (0..n * d).map(|i| i as f32).collect();
        let file = tempfile::NamedTempFile::new().unwrap();
        write_npy_f32(&file, &[n, d], &values).unwrap();
        let on_disk = Matrix::open(file.path()).unwrap();
        let in_memory = Matrix::in_memory("memory", d, values);
        let jumps = [5, 6, 7, 2, 2, n - 1, 0];
        let all: Vec<usize> = (0..n).collect();
        for rows in [&jumps[..], &all[..], &[]] {
            assert_eq!(rows_of(&on_disk, rows), rows_of(&in_memory, rows));
        }
    }

    #[test]
    fn rows_in_order_are_lent_and_are_those_that_are_read() {
        let n = 100;
        let d = 3;
        let values: Vec<f32> = (0..n * d).map(|i| i as f32).collect();
        let file = tempfile::NamedTempFile::new().unwrap();
        write_npy_f32(&file, &[n, d], &values).unwrap();
        let on_disk = Matrix::open(file.path()).unwrap();
        let all: Vec<usize> = (0..n).collect();
        for rows in [&all[..], &all[7..50], &all[99..]] {
            let lent = on_disk.lend_from(rows, 0).unwrap();
            assert_eq!((*lent).as_ref(), rows_of(&on_disk, rows));
        }
        assert!(on_disk.lend(&all).is_none(), "too few to be worth it");
        for rows in [&[][..], &[1, 0], &[0, 2], &[4, 4], &[99, 100]] {
            assert!(on_disk.lend_from(rows, 0).is_none(), "{rows:?}");
        }
        let in_memory = Matrix::in_memory("memory", d, values.clone());
        assert_eq!((*in_memory.lend_from(&all, 0).unwrap()).as_ref(), values);
        assert!(in_memory.lend_from(&all[1..], 0).is_none());
        let halves = npy("<f2", "False", "(1, 2)", &[0; 4]).unwrap();
        assert!(halves.lend_from(&[0], 0).is_none());
    }

    #[test]
    fn stacked_parts_are_read_as_one() {
        let part = |from: usize, rows: usize| {
            Matrix::in_memory("part", 2, (from * 2..(from + rows) * 2).map(|i| i as f32).collect())
        };
        let whole = Matrix::stack(Path::new("whole"), vec![part(0, 3), part(3, 0), part(3, 2)]).unwrap();
        assert_eq!((whole.rows(), whole.cols()), (5, 2));
        assert_eq!(rows_of(&whole, &[4, 2, 3, 0]), [8.0, 9.0, 4.0, 5.0, 6.0, 7.0, 0.0, 1.0]);
        let wide = Matrix::in_memory("wide", 3, vec![0.0; 3]);
        let error = Matrix::stack(Path::new("whole"), vec![part(0, 1), wide]).unwrap_err().to_string();
        assert_eq!(error, "`wide`: npy shape: expected 2 columns as in `part`, found 3");
    }

    #[test]
    fn anything_but_a_matrix_of_floats_is_refused() {
        let check = |matrix: Result<Matrix>, message: &str| {
            assert_eq!(matrix.unwrap_err().to_string(), format!("`a.npy`: {message}"));
        };
        check(npy("<i4", "False", "(1, 1)", &[0; 4]), "npy type: expected f2, f4 or f8 features, found i4");
        check(
            npy("<f4", "False", "(2,)", &[0; 8]),
            "npy shape: expected two axes (rows, columns), found [2]",
        );
        check(npy("<f4", "False", "(2, 0)", &[]), "npy shape: expected 1 to 1048576 columns, found [2, 0]");
        let message =
            "npy order: expected contiguous rows (save `np.ascontiguousarray(x)`), found Fortran order";
        check(npy("<f4", "True", "(1, 2)", &[0; 8]), message);
        let file = tempfile::NamedTempFile::new().unwrap();
        write_npy_i64(&file, &[2], &[1, 2]).unwrap();
        assert!(Matrix::open(file.path()).unwrap_err().to_string().contains("npy type"));
    }

    #[test]
    fn missing_rows_and_values_that_are_no_numbers_are_named() {
        let matrix = Matrix::in_memory("a.parquet", 2, vec![0.0, 1.0, f32::NAN, 3.0]);
        let mut out = [0.0; 2];
        let error = matrix.read_rows(&[2], &mut out).unwrap_err().to_string();
        assert_eq!(error, "`a.parquet`: rows: expected a row number below 2, found 2");
        let error = matrix.read_rows(&[1], &mut out).unwrap_err().to_string();
        assert_eq!(error, "`a.parquet`: row 1, column 0: expected a finite number, found NaN");
        let huge = npy("<f8", "False", "(1, 1)", &1e300f64.to_le_bytes()).unwrap();
        assert!(huge.read_rows(&[0], &mut out[..1]).unwrap_err().to_string().contains("found inf"));
    }
}
