//! Writing Parquet files that appear only when finished.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};
use arrow_select::coalesce::BatchCoalescer;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use crate::{AtomicFile, DataError, Result};

/// A zstd-compressed Parquet file under construction; it is deleted if dropped before [`ParquetWriter::finish`].
pub struct ParquetWriter {
    path: PathBuf,
    schema: SchemaRef,
    writer: ArrowWriter<AtomicFile>,
}

impl ParquetWriter {
    /// Starts a file, with pairs of metadata.
    pub fn create(path: &Path, schema: Schema, metadata: &[(String, String)]) -> Result<ParquetWriter> {
        let mut pairs: Vec<KeyValue> =
            metadata.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone())).collect();
        pairs.sort_by(|a, b| a.key.cmp(&b.key));
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_key_value_metadata(Some(pairs))
            .build();
        let schema = Arc::new(schema);
        let writer = ArrowWriter::try_new(AtomicFile::create(path)?, schema.clone(), Some(properties))
            .map_err(|error| failed(path, error))?;
        Ok(ParquetWriter { path: path.to_path_buf(), schema, writer })
    }

    /// Adds a batch; `columns` follow the schema.
    pub fn write(&mut self, columns: Vec<ArrayRef>) -> Result<()> {
        let batch = RecordBatch::try_new(self.schema.clone(), columns)
            .map_err(|error: ArrowError| failed(&self.path, error.into()))?;
        self.write_batch(&batch)
    }

    fn write_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        self.writer.write(batch).map_err(|error| failed(&self.path, error))
    }

    /// Adds a key-value pair that is known only now.
    pub fn add_metadata(&mut self, key: String, value: String) {
        self.writer.append_key_value_metadata(KeyValue::new(key, value));
    }

    /// Writes the rows added so far as a row group, so that they need not stay in memory.
    pub fn end_group(&mut self) -> Result<()> {
        self.writer.flush().map_err(|error| failed(&self.path, error))
    }

    /// Writes the footer and gives the file its name.
    pub fn finish(self) -> Result<()> {
        self.writer.into_inner().map_err(|error| failed(&self.path, error))?.commit()
    }
}

/// A Parquet file whose bytes depend on its rows, not on the batches in which they are added: pages end where batches do, so
/// rows are written in batches of one size. A merged file is then identical to that of a single run.
pub struct SteadyParquetWriter {
    writer: ParquetWriter,
    batches: BatchCoalescer,
}

/// Rows per batch; row groups hold a multiple of it.
const STEADY_ROWS: usize = 1 << 16;

impl SteadyParquetWriter {
    /// Starts a file, with pairs of metadata.
    pub fn create(path: &Path, schema: Schema, metadata: &[(String, String)]) -> Result<SteadyParquetWriter> {
        let writer = ParquetWriter::create(path, schema, metadata)?;
        let batches = BatchCoalescer::new(writer.schema.clone(), STEADY_ROWS);
        Ok(SteadyParquetWriter { writer, batches })
    }

    /// Adds a batch; `columns` follow the schema.
    pub fn write(&mut self, columns: Vec<ArrayRef>) -> Result<()> {
        let path = &self.writer.path;
        let batch = RecordBatch::try_new(self.writer.schema.clone(), columns);
        batch.and_then(|batch| self.batches.push_batch(batch)).map_err(|error| failed(path, error.into()))?;
        self.write_completed()
    }

    /// Adds a key-value pair that is known only now.
    pub fn add_metadata(&mut self, key: String, value: String) {
        self.writer.add_metadata(key, value);
    }

    /// Writes the rest and gives the file its name.
    pub fn finish(mut self) -> Result<()> {
        let rest = self.batches.finish_buffered_batch();
        rest.map_err(|error| failed(&self.writer.path, error.into()))?;
        self.write_completed()?;
        self.writer.finish()
    }

    fn write_completed(&mut self) -> Result<()> {
        while let Some(batch) = self.batches.next_completed_batch() {
            self.writer.write_batch(&batch)?;
        }
        Ok(())
    }
}

/// The type of a column with few distinct texts.
pub fn dictionary_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// A column of few distinct texts.
pub fn dictionary_column<'a>(texts: impl Iterator<Item = &'a str>) -> ArrayRef {
    let mut builder = StringDictionaryBuilder::<Int32Type>::new();
    texts.for_each(|text| builder.append_value(text));
    Arc::new(builder.finish())
}

/// As [`dictionary_column`], with rows that have no text.
pub fn optional_dictionary_column<'a>(texts: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    let mut builder = StringDictionaryBuilder::<Int32Type>::new();
    texts.for_each(|text| builder.append_option(text));
    Arc::new(builder.finish())
}

fn failed(path: &Path, error: ParquetError) -> DataError {
    let cause = match error {
        ParquetError::External(cause) => match cause.downcast::<std::io::Error>() {
            Ok(cause) => *cause, // the system's own error, e.g. a full disk
            Err(other) => std::io::Error::other(other),
        },
        other => std::io::Error::other(other),
    };
    DataError::io("write", path)(cause)
}

#[cfg(test)]
mod tests {
    use arrow_array::StringArray;
    use arrow_schema::Field;

    use super::*;

    /// A file of `n` rows that are added in batches of `piece`.
    fn written(n: usize, piece: usize) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        let schema = Schema::new(vec![
            Field::new("id", DataType::Utf8, false),
            Field::new("class", dictionary_type(), false),
        ]);
        let metadata = [("b", "1"), ("a", "2")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        let mut writer = SteadyParquetWriter::create(&path, schema, &metadata).unwrap();
        let rows: Vec<usize> = (0..n).collect();
        for rows in rows.chunks(piece) {
            let classes: Vec<String> = rows.iter().map(|row| format!("class {}", row / 1000 % 7)).collect();
            let ids = StringArray::from_iter_values(rows.iter().map(|row| format!("photo {row}")));
            writer.write(vec![Arc::new(ids), dictionary_column(classes.iter().map(String::as_str))]).unwrap();
        }
        writer.finish().unwrap();
        std::fs::read(path).unwrap()
    }

    #[test]
    fn bytes_do_not_depend_on_the_batches_in_which_rows_are_added() {
        let n = 2 * STEADY_ROWS + 12_345;
        let whole = written(n, n);
        for piece in [777, 4096, STEADY_ROWS - 1, STEADY_ROWS] {
            assert!(written(n, piece) == whole, "pieces of {piece}");
        }
    }
}
