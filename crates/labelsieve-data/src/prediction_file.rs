//! What a classifier says of each example: one row per example and rank.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{Float32Array, StringArray, UInt32Array};
use arrow_schema::{DataType, Field, Schema};

use crate::Result;
use crate::parquet_write::{ParquetWriter, dictionary_column, dictionary_type};

/// One guess about one example.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictionRow {
    /// The example.
    pub id: String,
    /// 1 for the best guess.
    pub rank: u32,
    /// The class.
    pub class: String,
    /// Its score.
    pub score: f32,
}

/// Writes predictions as they are made; the file appears in [`PredictionWriter::finish`].
pub struct PredictionWriter {
    writer: ParquetWriter,
}

impl PredictionWriter {
    /// Starts a Parquet file that will be called `path`.
    pub fn create(path: impl AsRef<Path>) -> Result<PredictionWriter> {
        let schema = Schema::new(vec![
            Field::new("id", DataType::Utf8, false),
            Field::new("rank", DataType::UInt32, false),
            Field::new("class", dictionary_type(), false),
            Field::new("score", DataType::Float32, false),
        ]);
        Ok(PredictionWriter { writer: ParquetWriter::create(path.as_ref(), schema, &[])? })
    }

    /// Adds rows.
    pub fn write(&mut self, rows: &[PredictionRow]) -> Result<()> {
        self.writer.write(vec![
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.id))),
            Arc::new(UInt32Array::from_iter_values(rows.iter().map(|row| row.rank))),
            dictionary_column(rows.iter().map(|row| row.class.as_str())),
            Arc::new(Float32Array::from_iter_values(rows.iter().map(|row| row.score))),
        ])
    }

    /// Completes the file and gives it its name.
    pub fn finish(self) -> Result<()> {
        self.writer.finish()
    }
}
