//! Relevance files: one row per example and class, with its relevance and the reasons for it.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float32Array, StringArray, UInt32Array};
use arrow_schema::{DataType, Field, Schema};
use labelsieve::Decision;

use crate::tables::labels::LabelsBuilder;
use crate::tables::parquet_columns::Column;
use crate::tables::parquet_write::{dictionary_column, dictionary_type};
use crate::tables::table_read::{Kind, TableFile};
use crate::tables::table_write::{TableFormat, TableWriter};
use crate::{DataError, Labels, Result, Texts};

/// One example scored for one class.
#[derive(Clone, Debug, PartialEq)]
pub struct RelevanceRow {
    /// The example.
    pub id: String,
    /// The class it was scored for.
    pub class: String,
    /// How much it belongs to the class, in [0, 1].
    pub relevance: f32,
    /// The probability that it belongs to the class, where the method estimates it.
    pub probability: Option<f32>,
    /// Whether it is one of the examples that were given as clean.
    pub is_clean: bool,
    /// The class name that was found in its text.
    pub matched_name: Option<String>,
    /// The clean example most similar to it.
    pub best_clean: Option<String>,
    /// The similarity to that clean example.
    pub best_clean_similarity: Option<f32>,
    /// Its number of reciprocal nearest neighbours.
    pub reciprocal_neighbours: Option<u32>,
}

/// Columns that not every relevance file has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OptionalColumns {
    /// `probability`, beside `relevance`: where the method estimates it.
    pub probability: bool,
    /// `decision`, at the end: for relevance that was computed with decisions.
    pub decision: bool,
}

/// Writes relevance rows one batch at a time; the file appears in [`RelevanceWriter::finish`].
pub struct RelevanceWriter {
    path: PathBuf,
    rows_written: usize,
    optional: OptionalColumns,
    writer: TableWriter,
}

impl RelevanceWriter {
    /// Starts a file that will be called `path`; its ending decides between Parquet and CSV. `metadata` is kept in a
    /// Parquet file as key-value pairs.
    pub fn create(path: impl AsRef<Path>, metadata: &[(String, String)]) -> Result<RelevanceWriter> {
        RelevanceWriter::create_with(path, OptionalColumns::default(), metadata)
    }

    /// As [`RelevanceWriter::create`], with optional columns.
    pub fn create_with(
        path: impl AsRef<Path>,
        optional: OptionalColumns,
        metadata: &[(String, String)],
    ) -> Result<RelevanceWriter> {
        let path = path.as_ref().to_path_buf();
        let writer = TableWriter::create(&path, schema(optional), metadata)?;
        Ok(RelevanceWriter { path, rows_written: 0, optional, writer })
    }

    /// Writes rows to `stream` as CSV.
    pub fn to_stream(stream: Box<dyn Write + Send>, optional: OptionalColumns) -> RelevanceWriter {
        let writer = TableWriter::to_stream(stream, TableFormat::Csv, &schema(optional));
        RelevanceWriter { path: PathBuf::from("-"), rows_written: 0, optional, writer }
    }

    /// Adds rows without decisions. A relevance or a probability outside [0, 1] is refused.
    pub fn write(&mut self, rows: &[RelevanceRow]) -> Result<()> {
        self.write_decided(rows, &[])
    }

    /// Adds rows with their decisions, where the file has a column for it; `decisions` may be shorter than `rows`.
    pub fn write_decided(&mut self, rows: &[RelevanceRow], decisions: &[Option<Decision>]) -> Result<()> {
        for (at, row) in rows.iter().enumerate() {
            for (what, value) in [("relevance", Some(row.relevance)), ("probability", row.probability)] {
                if let Some(value) = value.filter(|&value| !is_in_range(value)) {
                    let place = format!("row {}", self.rows_written + at);
                    let expected = format!("a {what} in [0, 1]");
                    return Err(DataError::malformed(&self.path, place, expected, value.to_string()));
                }
            }
        }
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.id))),
            dictionary_column(rows.iter().map(|row| row.class.as_str())),
            Arc::new(Float32Array::from_iter_values(rows.iter().map(|row| row.relevance))),
            Arc::new(BooleanArray::from_iter(rows.iter().map(|row| Some(row.is_clean)))),
            Arc::new(StringArray::from_iter(rows.iter().map(|row| row.matched_name.as_deref()))),
            Arc::new(StringArray::from_iter(rows.iter().map(|row| row.best_clean.as_deref()))),
            Arc::new(Float32Array::from_iter(rows.iter().map(|row| row.best_clean_similarity))),
            Arc::new(UInt32Array::from_iter(rows.iter().map(|row| row.reciprocal_neighbours))),
        ];
        if self.optional.probability {
            let probability = rows.iter().map(|row| row.probability);
            columns.insert(PROBABILITY, Arc::new(Float32Array::from_iter(probability)));
        }
        if self.optional.decision {
            let decision = |i| decisions.get(i).copied().flatten().map(Decision::name);
            columns.push(Arc::new(StringArray::from_iter((0..rows.len()).map(decision))));
        }
        self.writer.write(columns)?;
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
    pub ids: Texts,
    /// The classes they were scored for.
    pub classes: Labels,
    /// How much each belongs to its class, in [0, 1].
    pub relevance: Vec<f32>,
    /// The probability that each belongs to its class; `None` for a file without the column.
    pub probability: Option<Vec<Option<f32>>>,
    /// Which were given as clean.
    pub is_clean: Vec<bool>,
    /// The decision about each when the file was made; `None` for a file made without decisions.
    pub decisions: Option<Vec<Option<Decision>>>,
    /// The metadata of the run.
    pub metadata: BTreeMap<String, String>,
}

/// Reads a relevance file, Parquet or CSV, and checks every relevance and probability. A row without `is_clean` is a
/// candidate.
pub fn read_relevance(path: impl AsRef<Path>) -> Result<RelevanceTable> {
    let path = path.as_ref();
    let file = TableFile::open(path)?;
    let metadata = file.metadata();
    let mut ids = Texts::default();
    let mut classes = LabelsBuilder::default();
    let mut relevance = Vec::new();
    let mut is_clean = Vec::new();
    let has_probability = file.has("probability");
    let has_decisions = file.has("decision");
    let mut probability = Vec::new();
    let mut decisions = Vec::new();
    let mut wanted = vec![("id", Kind::Text), ("class", Kind::Text), ("relevance", Kind::Float)];
    wanted.extend(file.has("is_clean").then_some(("is_clean", Kind::Flag)));
    wanted.extend(has_probability.then_some(("probability", Kind::Float)));
    wanted.extend(has_decisions.then_some(("decision", Kind::OptionalText)));
    file.for_each_batch(&wanted, |columns| {
        let [id, class, score, others @ ..] = columns else { unreachable!("as many columns as names") };
        id.append_texts(&mut ids)?;
        class.for_each_given_text(&mut |text| classes.push(text))?;
        append_relevance(score, &mut relevance)?;
        for column in others {
            match column.name {
                "probability" => append_probability(column, &mut probability)?,
                "decision" => append_decisions(column, &mut decisions)?,
                _ => is_clean.extend(column.flags()?.into_iter().map(|flag| flag.unwrap_or(false))),
            }
        }
        is_clean.resize(relevance.len(), false);
        Ok(())
    })?;
    Ok(RelevanceTable {
        path: path.to_path_buf(),
        ids,
        classes: classes.finish(),
        relevance,
        probability: has_probability.then_some(probability),
        is_clean,
        decisions: has_decisions.then_some(decisions),
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
    /// Its number of reciprocal nearest neighbours.
    pub reciprocal_neighbours: Option<u32>,
}

/// Reads the reasons of chosen rows: `rows` ascending, one entry of the result for each. Any of the columns may be missing.
pub fn read_relevance_reasons(path: impl AsRef<Path>, rows: &[usize]) -> Result<Vec<RelevanceReasons>> {
    const COLUMNS: [(&str, Kind); 4] = [
        ("matched_name", Kind::OptionalText),
        ("best_clean", Kind::OptionalText),
        ("best_clean_similarity", Kind::Float),
        ("reciprocal_neighbours", Kind::Integer),
    ];
    let file = TableFile::open(path.as_ref())?;
    let wanted: Vec<(&str, Kind)> = COLUMNS.into_iter().filter(|(name, _)| file.has(name)).collect();
    let mut reasons = vec![RelevanceReasons::default(); rows.len()];
    if wanted.is_empty() || rows.is_empty() {
        return Ok(reasons);
    }
    file.for_each_batch(&wanted, |columns| {
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
            let values = column.floats("numbers")?;
            for (reasons, &row) in reasons.iter_mut().zip(rows) {
                reasons.best_clean_similarity = values[row].filter(|value| !value.is_nan());
            }
        }
        "reciprocal_neighbours" => {
            let values = column.integers()?;
            for (reasons, &row) in reasons.iter_mut().zip(rows) {
                reasons.reciprocal_neighbours = values[row];
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
    let start = out.len();
    let values = column.floats("numbers in [0, 1]")?;
    column.check_nulls()?;
    out.extend(values.into_iter().flatten());
    match out[start..].iter().position(|&value| !is_in_range(value)) {
        Some(row) => Err(column.bad_row(row, "a number in [0, 1]", out[start + row].to_string())),
        None => Ok(()),
    }
}

fn append_probability(column: &Column<'_>, out: &mut Vec<Option<f32>>) -> Result<()> {
    let values = column.floats("numbers in [0, 1]")?;
    match values.iter().position(|value| value.is_some_and(|value| !is_in_range(value))) {
        Some(row) => {
            let found = values[row].map_or(String::new(), |value| value.to_string());
            Err(column.bad_row(row, "a number in [0, 1], or nothing", found))
        }
        None => {
            out.extend(values);
            Ok(())
        }
    }
}

fn append_decisions(column: &Column<'_>, out: &mut Vec<Option<Decision>>) -> Result<()> {
    for (row, word) in column.optional_texts()?.into_iter().enumerate() {
        let decision = word.as_deref().map(str::trim).filter(|word| !word.is_empty()).map(|word| {
            word.parse().map_err(|_| {
                column.bad_row(row, "`accept`, `reject`, `unsure` or nothing", format!("`{word}`"))
            })
        });
        out.push(decision.transpose()?);
    }
    Ok(())
}

/// The position of `probability` among the columns: directly after `relevance`.
const PROBABILITY: usize = 3;

fn schema(optional: OptionalColumns) -> Schema {
    let mut fields = vec![
        Field::new("id", DataType::Utf8, false),
        Field::new("class", dictionary_type(), false),
        Field::new("relevance", DataType::Float32, false),
        Field::new("is_clean", DataType::Boolean, false),
        Field::new("matched_name", DataType::Utf8, true),
        Field::new("best_clean", DataType::Utf8, true),
        Field::new("best_clean_similarity", DataType::Float32, true),
        Field::new("reciprocal_neighbours", DataType::UInt32, true),
    ];
    if optional.probability {
        fields.insert(PROBABILITY, Field::new("probability", DataType::Float32, true));
    }
    if optional.decision {
        fields.push(Field::new("decision", DataType::Utf8, true));
    }
    Schema::new(fields)
}

fn is_in_range(value: f32) -> bool {
    (0.0..=1.0).contains(&value) // false for NaN
}

#[cfg(test)]
#[path = "relevance_file_tests.rs"]
mod tests;
