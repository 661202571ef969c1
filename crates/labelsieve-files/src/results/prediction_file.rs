//! Predictions of a classifier: one row per example and rank.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{Float32Array, StringArray, UInt32Array};
use arrow_schema::{DataType, Field, Schema};

use crate::Result;
use crate::tables::parquet_write::{dictionary_type, optional_dictionary_column};
use crate::tables::table_write::{TableFormat, TableWriter};

/// One predicted class of one example.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictionRow {
    /// The example.
    pub id: String,
    /// 1 for the best class.
    pub rank: u32,
    /// The class; `None` for an example that was rejected.
    pub class: Option<String>,
    /// Its score.
    pub score: f32,
    /// The probability of the class, given that the example belongs to one of them.
    pub probability: f32,
    /// The share of examples of the classes that are as far from their best class, or farther; where that is known.
    pub typicality: Option<f32>,
}

/// Writes predictions as they are made; the file appears in [`PredictionWriter::finish`].
pub struct PredictionWriter {
    writer: TableWriter,
}

impl PredictionWriter {
    /// Starts a file that will be called `path`; its ending decides between Parquet, CSV and TSV.
    pub fn create(path: impl AsRef<Path>) -> Result<PredictionWriter> {
        Ok(PredictionWriter { writer: TableWriter::create(path.as_ref(), schema(), &[])? })
    }

    /// Writes rows to `stream` as CSV or TSV.
    pub fn to_stream(stream: Box<dyn Write + Send>, format: TableFormat) -> PredictionWriter {
        PredictionWriter { writer: TableWriter::to_stream(stream, format, &schema()) }
    }

    /// Adds rows.
    pub fn write(&mut self, rows: &[PredictionRow]) -> Result<()> {
        self.writer.write(vec![
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.id))),
            Arc::new(UInt32Array::from_iter_values(rows.iter().map(|row| row.rank))),
            optional_dictionary_column(rows.iter().map(|row| row.class.as_deref())),
            Arc::new(Float32Array::from_iter_values(rows.iter().map(|row| row.score))),
            Arc::new(Float32Array::from_iter_values(rows.iter().map(|row| row.probability))),
            Arc::new(Float32Array::from_iter(rows.iter().map(|row| row.typicality))),
        ])
    }

    /// Completes the file and gives it its name.
    pub fn finish(self) -> Result<()> {
        self.writer.finish()
    }
}

fn schema() -> Schema {
    Schema::new(vec![
        Field::new("id", DataType::Utf8, false),
        Field::new("rank", DataType::UInt32, false),
        Field::new("class", dictionary_type(), true),
        Field::new("score", DataType::Float32, false),
        Field::new("probability", DataType::Float32, false),
        Field::new("typicality", DataType::Float32, true),
    ])
}
