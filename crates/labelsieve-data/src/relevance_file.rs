//! The result: one Parquet row per example and class, with its relevance and the reasons for it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, UInt32Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Float32Array, StringArray, UInt32Array};
use arrow_schema::{DataType, Field, Schema};

use crate::labels::LabelsBuilder;
use crate::parquet_columns::{Column, ParquetFile};
use crate::parquet_write::{ParquetWriter, dictionary_column, dictionary_type};
use crate::{DataError, Labels, Result};

/// One example judged for one class.
#[derive(Clone, Debug, PartialEq)]
pub struct RelevanceRow {
    /// The example.
    pub id: String,
    /// The class it was judged for.
    pub class: String,
    /// How much it belongs to the class, from 0 to 1.
    pub relevance: f32,
    /// Whether it is one of the examples that were given as clean.
    pub is_clean: bool,
    /// The class name that was found in its text.
    pub matched_name: Option<String>,
    /// The clean example most similar to it.
    pub best_clean: Option<String>,
    /// The similarity to that clean example.
    pub best_clean_similarity: Option<f32>,
    /// With how many examples it shares a place among each other's nearest neighbours.
    pub reciprocal_neighbours: Option<u32>,
}

/// Writes relevance rows as they come; the file appears in [`RelevanceWriter::finish`].
pub struct RelevanceWriter {
    path: PathBuf,
    rows_written: usize,
    writer: ParquetWriter,
}

impl RelevanceWriter {
    /// Starts a file that will be called `path`. `metadata` is kept in it as key-value pairs.
    pub fn create(path: impl AsRef<Path>, metadata: &[(String, String)]) -> Result<RelevanceWriter> {
        let path = path.as_ref().to_path_buf();
        let schema = Schema::new(vec![
            Field::new("id", DataType::Utf8, false),
            Field::new("class", dictionary_type(), false),
            Field::new("relevance", DataType::Float32, false),
            Field::new("is_clean", DataType::Boolean, false),
            Field::new("matched_name", DataType::Utf8, true),
            Field::new("best_clean", DataType::Utf8, true),
            Field::new("best_clean_similarity", DataType::Float32, true),
            Field::new("reciprocal_neighbours", DataType::UInt32, true),
        ]);
        let writer = ParquetWriter::create(&path, schema, metadata)?;
        Ok(RelevanceWriter { path, rows_written: 0, writer })
    }

    /// Adds rows. A relevance outside 0 to 1 is refused.
    pub fn write(&mut self, rows: &[RelevanceRow]) -> Result<()> {
        if let Some(at) = rows.iter().position(|row| !is_relevance(row.relevance)) {
            let place = format!("row {}", self.rows_written + at);
            return Err(bad_relevance(&self.path, place, rows[at].relevance));
        }
        self.writer.write(vec![
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.id))),
            dictionary_column(rows.iter().map(|row| row.class.as_str())),
            Arc::new(Float32Array::from_iter_values(rows.iter().map(|row| row.relevance))),
            Arc::new(BooleanArray::from_iter(rows.iter().map(|row| Some(row.is_clean)))),
            Arc::new(StringArray::from_iter(rows.iter().map(|row| row.matched_name.as_deref()))),
            Arc::new(StringArray::from_iter(rows.iter().map(|row| row.best_clean.as_deref()))),
            Arc::new(Float32Array::from_iter(rows.iter().map(|row| row.best_clean_similarity))),
            Arc::new(UInt32Array::from_iter(rows.iter().map(|row| row.reciprocal_neighbours))),
        ])?;
        self.rows_written += rows.len();
        Ok(())
    }

    /// Completes the file and gives it its name.
    pub fn finish(self) -> Result<()> {
        self.writer.finish()
    }
}

/// A relevance file without its reason columns; all vectors have one entry per row.
#[derive(Clone, Debug, PartialEq)]
pub struct RelevanceTable {
    /// The file.
    pub path: PathBuf,
    /// The examples.
    pub ids: Vec<String>,
    /// The classes they were judged for.
    pub classes: Labels,
    /// How much each belongs to its class, from 0 to 1.
    pub relevance: Vec<f32>,
    /// Which were given as clean.
    pub is_clean: Vec<bool>,
    /// What the writer said about the run.
    pub metadata: BTreeMap<String, String>,
}

/// Reads a relevance file and checks every relevance.
pub fn read_relevance(path: impl AsRef<Path>) -> Result<RelevanceTable> {
    let path = path.as_ref();
    let file = ParquetFile::open(path)?;
    let metadata = file.metadata();
    let (mut ids, mut classes) = (Vec::new(), LabelsBuilder::default());
    let (mut relevance, mut is_clean) = (Vec::new(), Vec::new());
    file.for_each_batch(&["id", "class", "relevance", "is_clean"], |columns| {
        let [id, class, score, clean] = columns else { unreachable!("as many columns as names") };
        id.for_each_text(&mut |text| ids.push(text.to_owned()))?;
        class.for_each_text(&mut |text| classes.push(text))?;
        append_relevance(score, &mut relevance)?;
        let flags = clean.array.as_boolean_opt().ok_or_else(|| clean.bad_type("true or false"))?;
        is_clean.extend(flags.values());
        Ok(())
    })?;
    Ok(RelevanceTable {
        path: path.to_path_buf(),
        ids,
        classes: classes.finish(),
        relevance,
        is_clean,
        metadata,
    })
}

/// Why an example has its relevance; the columns that [`RelevanceTable`] leaves out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RelevanceReasons {
    /// The class name that was found in its text.
    pub matched_name: Option<String>,
    /// The clean example most similar to it.
    pub best_clean: Option<String>,
    /// The similarity to that clean example.
    pub best_clean_similarity: Option<f32>,
    /// With how many examples it shares a place among each other's nearest neighbours.
    pub reciprocal_neighbours: Option<u32>,
}

/// Reads the reasons of chosen rows: `rows` ascending, one entry of the result for each. Files without some of the
/// columns are fine.
pub fn read_relevance_reasons(path: impl AsRef<Path>, rows: &[usize]) -> Result<Vec<RelevanceReasons>> {
    const COLUMNS: [&str; 4] =
        ["matched_name", "best_clean", "best_clean_similarity", "reciprocal_neighbours"];
    let path = path.as_ref();
    let file = ParquetFile::open(path)?;
    let names: Vec<&str> = COLUMNS.into_iter().filter(|name| file.schema().index_of(name).is_ok()).collect();
    let mut reasons = vec![RelevanceReasons::default(); rows.len()];
    if names.is_empty() || rows.is_empty() {
        return Ok(reasons);
    }
    file.for_each_batch_with_nulls(&names, |columns| {
        for column in columns {
            let range = column.first_row..column.first_row + column.array.len();
            let wanted =
                rows.partition_point(|&row| row < range.start)..rows.partition_point(|&row| row < range.end);
            if !wanted.is_empty() {
                let rows: Vec<usize> = rows[wanted.clone()].iter().map(|row| row - range.start).collect();
                fill_reasons(column, &rows, &mut reasons[wanted])?;
            }
        }
        Ok(())
    })?;
    Ok(reasons)
}

/// Fills one field of the reasons of `rows` from its column.
fn fill_reasons(column: &Column<'_>, rows: &[usize], reasons: &mut [RelevanceReasons]) -> Result<()> {
    match column.name {
        "best_clean_similarity" => {
            let values = column.array.as_primitive_opt::<Float32Type>();
            let values = values.ok_or_else(|| column.bad_type("numbers of type Float32"))?;
            for (reasons, &row) in reasons.iter_mut().zip(rows) {
                reasons.best_clean_similarity = values.is_valid(row).then(|| values.value(row));
            }
        }
        "reciprocal_neighbours" => {
            let values = column.array.as_primitive_opt::<UInt32Type>();
            let values = values.ok_or_else(|| column.bad_type("numbers of type UInt32"))?;
            for (reasons, &row) in reasons.iter_mut().zip(rows) {
                reasons.reciprocal_neighbours = values.is_valid(row).then(|| values.value(row));
            }
        }
        name => {
            let mut texts = column.optional_texts()?;
            for (reasons, &row) in reasons.iter_mut().zip(rows) {
                let text = texts[row].take();
                if name == "best_clean" { reasons.best_clean = text } else { reasons.matched_name = text }
            }
        }
    }
    Ok(())
}

fn append_relevance(column: &Column<'_>, out: &mut Vec<f32>) -> Result<()> {
    let array: &ArrayRef = column.array;
    let start = out.len();
    match array.data_type() {
        DataType::Float32 => out.extend(array.as_primitive::<Float32Type>().values()),
        DataType::Float64 => {
            out.extend(array.as_primitive::<Float64Type>().values().iter().map(|&v| v as f32))
        }
        _ => return Err(column.bad_type("numbers from 0 to 1")),
    }
    match out[start..].iter().position(|&value| !is_relevance(value)) {
        Some(row) => Err(column.bad_row(row, "a number from 0 to 1", out[start + row].to_string())),
        None => Ok(()),
    }
}

fn is_relevance(value: f32) -> bool {
    (0.0..=1.0).contains(&value) // false for NaN
}

fn bad_relevance(path: &Path, place: String, value: f32) -> DataError {
    DataError::malformed(path, place, "a relevance from 0 to 1", value.to_string())
}

#[cfg(test)]
#[path = "relevance_file_tests.rs"]
mod tests;
