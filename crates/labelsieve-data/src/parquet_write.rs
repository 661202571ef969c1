//! Writing Parquet files that appear only when finished.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use crate::{AtomicFile, DataError, Result};

/// A zstd-compressed Parquet file under construction; dropped before [`ParquetWriter::finish`], it vanishes.
pub(crate) struct ParquetWriter {
    path: PathBuf,
    schema: SchemaRef,
    writer: ArrowWriter<AtomicFile>,
}

impl ParquetWriter {
    pub(crate) fn create(
        path: &Path,
        schema: Schema,
        metadata: &[(String, String)],
    ) -> Result<ParquetWriter> {
        let pairs = metadata.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone())).collect();
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
    pub(crate) fn write(&mut self, columns: Vec<ArrayRef>) -> Result<()> {
        let batch = RecordBatch::try_new(self.schema.clone(), columns)
            .map_err(|error: ArrowError| failed(&self.path, error.into()))?;
        self.writer.write(&batch).map_err(|error| failed(&self.path, error))
    }

    /// Writes what was added so far as a group of rows, so that it need not stay in memory.
    pub(crate) fn end_group(&mut self) -> Result<()> {
        self.writer.flush().map_err(|error| failed(&self.path, error))
    }

    pub(crate) fn finish(self) -> Result<()> {
        self.writer.into_inner().map_err(|error| failed(&self.path, error))?.commit()
    }
}

/// The type of a column with few distinct texts.
pub(crate) fn dictionary_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// A column of few distinct texts.
pub(crate) fn dictionary_column<'a>(texts: impl Iterator<Item = &'a str>) -> ArrayRef {
    let mut builder = StringDictionaryBuilder::<Int32Type>::new();
    texts.for_each(|text| builder.append_value(text));
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
