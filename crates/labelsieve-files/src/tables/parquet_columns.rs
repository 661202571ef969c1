//! Reading chosen columns of a Parquet file, batch by batch, with errors that name the row.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use crate::storage::input::open_seekable;
use crate::tables::column_values::numbers;
use crate::{ColumnRole, DataError, ExpectedFile, Result, Texts};

/// Rows per batch: few enough for embeddings of a few thousand columns to stay in cache.
const BATCH_ROWS: usize = 4096;

/// More than the ids of any table take. Repeated values take no space in a small file, but each does in memory.
const MAX_TEXT_BYTES: usize = 32 << 30;

/// An open Parquet file of which only the metadata has been read.
pub struct ParquetFile {
    pub(super) path: PathBuf,
    pub(super) builder: ParquetRecordBatchReaderBuilder<File>,
    file_len: u64,
}

/// One column of one batch, with its place for messages.
pub struct Column<'a> {
    /// The file.
    pub path: &'a Path,
    /// Its name.
    pub name: &'a str,
    /// The row number in the file of the first value.
    pub first_row: usize,
    /// The values.
    pub array: &'a ArrayRef,
}

impl ParquetFile {
    /// Opens a file.
    pub fn open(path: &Path) -> Result<ParquetFile> {
        ParquetFile::from_file(path, open_seekable(path)?)
    }

    /// As [`ParquetFile::open`], for an open file; `path` is its name in messages.
    pub fn from_file(path: &Path, file: File) -> Result<ParquetFile> {
        let file_len = file.metadata().map_err(DataError::io("read", path))?.len();
        let builder = guarded(path, || ParquetRecordBatchReaderBuilder::try_new(file));
        let builder = builder.map_err(DataError::unless_other_kind(path, ExpectedFile::Parquet))?;
        Ok(ParquetFile { path: path.to_path_buf(), builder, file_len })
    }

    /// The columns of the file.
    pub fn schema(&self) -> &SchemaRef {
        self.builder.schema()
    }

    /// The size of the file.
    pub fn file_len(&self) -> u64 {
        self.file_len
    }

    /// The number of rows according to the file, which has not been verified.
    pub fn claimed_rows(&self) -> usize {
        usize::try_from(self.builder.metadata().file_metadata().num_rows()).unwrap_or(0)
    }

    /// The key-value pairs that the writer attached, without Arrow's own.
    pub fn metadata(&self) -> BTreeMap<String, String> {
        let pairs = self.builder.metadata().file_metadata().key_value_metadata().into_iter().flatten();
        let pairs = pairs.filter(|pair| pair.key != "ARROW:schema");
        pairs.map(|pair| (pair.key.clone(), pair.value.clone().unwrap_or_default())).collect()
    }

    /// The column called `wanted`, or the first of `defaults` that exists.
    pub fn find(&self, wanted: Option<&str>, defaults: &[&str]) -> Result<Option<String>> {
        match wanted {
            Some(name) if self.schema().index_of(name).is_ok() => Ok(Some(name.to_owned())),
            Some(name) => Err(self.without(name)),
            None => Ok(defaults
                .iter()
                .find(|name| self.schema().index_of(name).is_ok())
                .map(|&name| name.to_owned())),
        }
    }

    /// The error for a missing column.
    pub fn missing(&self, expected: &str) -> DataError {
        DataError::MissingColumn {
            path: self.path.clone(),
            role: ColumnRole::Fixed,
            asked: None,
            expected: expected.to_owned(),
            present: self.schema().fields().iter().map(|field| field.name().clone()).collect(),
        }
    }

    /// The error for a missing column that was requested by name.
    fn without(&self, name: &str) -> DataError {
        match self.missing(&format!("`{name}`")) {
            DataError::MissingColumn { path, role, expected, present, .. } => {
                DataError::MissingColumn { path, role, asked: Some(name.to_owned()), expected, present }
            }
            other => other,
        }
    }

    /// Decodes only `names` and passes every batch to `visit`, one [`Column`] per name, in the order of `names`.
    pub fn for_each_batch(
        self,
        names: &[&str],
        mut visit: impl FnMut(&[Column<'_>]) -> Result<()>,
    ) -> Result<()> {
        self.for_each_batch_with_nulls(names, |columns| {
            columns.iter().try_for_each(Column::check_nulls)?;
            visit(columns)
        })
    }

    /// As [`ParquetFile::for_each_batch`], for columns with null values.
    pub fn for_each_batch_with_nulls(
        self,
        names: &[&str],
        mut visit: impl FnMut(&[Column<'_>]) -> Result<()>,
    ) -> Result<()> {
        let batches = self.batches(names, BATCH_ROWS)?;
        let path = batches.path.clone();
        let mut first_row = 0;
        batches.for_each(|batch| {
            let columns: Result<Vec<_>> =
                names.iter().map(|name| Column::of(&path, name, first_row, &batch)).collect();
            visit(&columns?)?;
            first_row += batch.num_rows();
            Ok(())
        })
    }

    /// The projection to the columns `names`.
    pub(super) fn mask(&self, names: &[&str]) -> Result<ProjectionMask> {
        let mut roots = Vec::with_capacity(names.len());
        for name in names {
            roots.push(self.schema().index_of(name).map_err(|_| self.without(name))?);
        }
        Ok(ProjectionMask::roots(self.builder.parquet_schema(), roots))
    }

    /// Decodes only `names`, at most `batch_rows` rows at a time.
    pub fn batches(self, names: &[&str], batch_rows: usize) -> Result<Batches> {
        let mask = self.mask(names)?;
        let builder = self.builder.with_projection(mask).with_batch_size(batch_rows);
        let reader = guarded(&self.path, || builder.build())?;
        Ok(Batches { path: self.path, reader })
    }
}

/// The chosen columns of a file, a few rows at a time.
pub struct Batches {
    pub(super) path: PathBuf,
    pub(super) reader: ParquetRecordBatchReader,
}

impl Batches {
    /// The next rows.
    #[expect(clippy::should_implement_trait, reason = "callers stop at the first error")]
    pub fn next(&mut self) -> Result<Option<RecordBatch>> {
        guarded(&self.path, || self.reader.next().transpose())
    }

    /// Passes the batches to `visit` in order. The next one is decoded on another thread meanwhile.
    fn for_each(mut self, mut visit: impl FnMut(RecordBatch) -> Result<()>) -> Result<()> {
        std::thread::scope(|scope| {
            let (sender, receiver) = sync_channel(1);
            scope.spawn(move || {
                while let Some(batch) = self.next().transpose() {
                    let is_last = batch.is_err();
                    if sender.send(batch).is_err() || is_last {
                        break; // refused by the visitor, or damaged
                    }
                }
            });
            receiver.into_iter().try_for_each(|batch| visit(batch?))
        })
    }
}

impl<'a> Column<'a> {
    fn of(path: &'a Path, name: &'a str, first_row: usize, batch: &'a RecordBatch) -> Result<Column<'a>> {
        let array = batch.column_by_name(name);
        let array =
            array.ok_or_else(|| DataError::undecodable(path, "Parquet", format!("no column `{name}`")))?;
        Ok(Column { path, name, first_row, array })
    }

    /// Refuses a column with a null value.
    pub fn check_nulls(&self) -> Result<()> {
        match self.array.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
            Some(nulls) => {
                let row = (0..nulls.len()).find(|&row| nulls.is_null(row)).unwrap_or(0);
                Err(self.bad_row(row, "a value", "null"))
            }
            None => Ok(()),
        }
    }

    /// The error for row `row` of this batch.
    pub fn bad_row(&self, row: usize, expected: impl Into<String>, found: impl Into<String>) -> DataError {
        let place = format!("column `{}`, row {}", self.name, self.first_row + row);
        DataError::malformed(self.path, place, expected, found)
    }

    /// The error for a column of another type.
    pub fn bad_type(&self, expected: &str) -> DataError {
        let place = format!("column `{}`", self.name);
        DataError::malformed(self.path, place, expected, self.array.data_type().to_string())
    }

    /// As [`Column::for_each_text`]; fails on null values.
    pub fn for_each_given_text(&self, visit: &mut dyn FnMut(&str)) -> Result<()> {
        self.check_nulls()?;
        self.for_each_text(visit)
    }

    /// Adds all values to `texts`; fails on null values.
    pub fn append_texts(&self, texts: &mut Texts) -> Result<()> {
        self.for_each_given_text(&mut |text| texts.push(text))?;
        if texts.n_bytes() > MAX_TEXT_BYTES {
            Err(self.bad_row(0, format!("at most {MAX_TEXT_BYTES} bytes of text"), "more"))
        } else {
            Ok(())
        }
    }

    /// Calls `visit` with every value as text; integers are written in decimal.
    pub fn for_each_text(&self, visit: &mut dyn FnMut(&str)) -> Result<()> {
        if for_each_text(self.array, visit) { Ok(()) } else { Err(self.bad_type("text or integers")) }
    }

    /// All values as texts, `None` for null.
    pub fn optional_texts(&self) -> Result<Vec<Option<String>>> {
        let mut texts = Vec::with_capacity(self.array.len());
        self.for_each_text(&mut |text| texts.push(Some(text.to_owned())))?;
        texts.resize(self.array.len(), None); // a dictionary without entries gives no texts
        if let Some(nulls) = self.array.logical_nulls() {
            (0..nulls.len()).filter(|&row| nulls.is_null(row)).for_each(|row| texts[row] = None);
        }
        Ok(texts)
    }
}

/// Columns of texts or integers, as texts; one vector per name, in the order of `names`.
pub fn read_text_columns(path: impl AsRef<Path>, names: &[&str]) -> Result<Vec<Vec<String>>> {
    let mut texts = vec![Vec::new(); names.len()];
    ParquetFile::open(path.as_ref())?.for_each_batch(names, |columns| {
        let mut pairs = columns.iter().zip(&mut texts);
        pairs.try_for_each(|(column, texts)| column.for_each_text(&mut |text| texts.push(text.to_owned())))
    })?;
    Ok(texts)
}

/// Returns false, without a visit, for a type without a textual form. A null is visited with an arbitrary text: callers have
/// refused nulls, or check where they are.
fn for_each_text(array: &ArrayRef, visit: &mut dyn FnMut(&str)) -> bool {
    match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().iter().for_each(|text| visit(text.unwrap_or_default())),
        DataType::LargeUtf8 => {
            array.as_string::<i64>().iter().for_each(|text| visit(text.unwrap_or_default()))
        }
        DataType::Utf8View => array.as_string_view().iter().for_each(|text| visit(text.unwrap_or_default())),
        DataType::Int8 => for_each_number::<Int8Type>(array, visit),
        DataType::Int16 => for_each_number::<Int16Type>(array, visit),
        DataType::Int32 => for_each_number::<Int32Type>(array, visit),
        DataType::Int64 => for_each_number::<Int64Type>(array, visit),
        DataType::UInt8 => for_each_number::<UInt8Type>(array, visit),
        DataType::UInt16 => for_each_number::<UInt16Type>(array, visit),
        DataType::UInt32 => for_each_number::<UInt32Type>(array, visit),
        DataType::UInt64 => for_each_number::<UInt64Type>(array, visit),
        // pandas writes integers as floats when some are missing.
        DataType::Float32 | DataType::Float64 => {
            let numbers = numbers(array).unwrap_or_default();
            let is_whole = |number: &f64| number.fract() == 0.0 && number.abs() < 9e15;
            if !numbers.iter().flatten().all(is_whole) {
                return false;
            }
            numbers.iter().for_each(|number| visit(&format!("{:.0}", number.unwrap_or(0.0))));
        }
        DataType::Null => (0..array.len()).for_each(|_| visit("")),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let mut entries = Vec::with_capacity(dictionary.values().len());
            if !for_each_text(dictionary.values(), &mut |text| entries.push(text.to_owned())) {
                return false;
            }
            if !entries.is_empty() {
                dictionary.normalized_keys().into_iter().for_each(|key| visit(&entries[key]));
            }
        }
        _ => return false,
    }
    true
}

fn for_each_number<T: ArrowPrimitiveType>(array: &ArrayRef, visit: &mut dyn FnMut(&str))
where
    T::Native: Display,
{
    array.as_primitive::<T>().values().iter().for_each(|value| visit(&value.to_string()));
}

/// Runs a step of the Parquet library, which panics on some damaged files instead of returning an error.
pub fn guarded<T, E: Display>(path: &Path, step: impl FnOnce() -> std::result::Result<T, E>) -> Result<T> {
    // Unwind safety: after a panic the reader is dropped with the error, so its inconsistent state is never observed.
    match catch_unwind(AssertUnwindSafe(step)) {
        Ok(result) => result.map_err(|error| DataError::undecodable(path, "Parquet", error)),
        Err(_) => Err(DataError::undecodable(path, "Parquet", "file is corrupt")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{DictionaryArray, Float32Array, StringArray, StringViewArray, UInt64Array};

    use super::*;

    fn texts(array: ArrayRef) -> Result<Vec<String>> {
        let batch = RecordBatch::try_from_iter([("c", array)]).unwrap();
        let mut texts = Vec::new();
        let column = Column::of(Path::new("a.parquet"), "c", 100, &batch)?;
        column.check_nulls()?;
        column.for_each_text(&mut |text| texts.push(text.to_owned()))?;
        Ok(texts)
    }

    #[test]
    fn text_numbers_and_dictionaries_all_become_text() {
        assert_eq!(texts(Arc::new(StringArray::from(vec!["a", "b"]))).unwrap(), ["a", "b"]);
        assert_eq!(texts(Arc::new(StringViewArray::from(vec!["a", "b"]))).unwrap(), ["a", "b"]);
        assert_eq!(texts(Arc::new(UInt64Array::from(vec![u64::MAX]))).unwrap(), [u64::MAX.to_string()]);
        let dictionary: DictionaryArray<Int8Type> = ["b", "a", "b"].into_iter().collect();
        assert_eq!(texts(Arc::new(dictionary)).unwrap(), ["b", "a", "b"]);
    }

    #[test]
    fn a_null_is_named_with_its_row_in_the_file() {
        let message = "`a.parquet`: column `c`, row 101: expected a value, found null";
        let plain = StringArray::from(vec![Some("a"), None]);
        assert_eq!(texts(Arc::new(plain)).unwrap_err().to_string(), message);
        let dictionary: DictionaryArray<Int8Type> = [Some("a"), None].into_iter().collect();
        assert_eq!(texts(Arc::new(dictionary)).unwrap_err().to_string(), message);
    }

    #[test]
    fn missing_texts_are_told_from_empty_ones_where_they_are_allowed() {
        let optional = |array: ArrayRef| {
            let batch = RecordBatch::try_from_iter([("c", array)]).unwrap();
            Column::of(Path::new("a.parquet"), "c", 0, &batch).unwrap().optional_texts().unwrap()
        };
        let texts = [Some("a".to_owned()), None, Some(String::new())];
        assert_eq!(optional(Arc::new(StringArray::from(vec![Some("a"), None, Some("")]))), texts);
        let dictionary: DictionaryArray<Int8Type> = [Some("a"), None, Some("")].into_iter().collect();
        assert_eq!(optional(Arc::new(dictionary)), texts);
        let nothing: DictionaryArray<Int8Type> = [None::<&str>, None].into_iter().collect();
        assert_eq!(optional(Arc::new(nothing)), [None, None]);
    }

    #[test]
    fn a_column_without_textual_form_is_named_with_its_type() {
        let error = texts(Arc::new(Float32Array::from(vec![0.5]))).unwrap_err().to_string();
        assert_eq!(error, "`a.parquet`: column `c`: expected text or integers, found Float32");
    }
}
