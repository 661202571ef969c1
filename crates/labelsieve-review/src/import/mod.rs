//! Decisions made in other tools: Label Studio, FiftyOne, or any table.

mod fiftyone;
mod label_studio;
mod moment;
mod table;
mod words;

use std::path::{Path, PathBuf};

use labelsieve_files::{DataError, DecisionRow, Result, TableFormat};
use serde_json::Value;

pub use moment::is_moment;
pub(crate) use table::COLUMNS;
pub use words::DecisionWords;

/// Where decisions come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum DecisionSource {
    /// An export of Label Studio as JSON
    LabelStudio,
    /// An export of FiftyOne: its folder, samples.json or labels.json
    #[cfg_attr(feature = "clap", value(name = "fiftyone"))]
    FiftyOne,
    /// A table with a row per example: .csv, .tsv or .parquet
    Csv,
}

/// How to read them.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// The tool, if the file does not show it.
    pub source: Option<DecisionSource>,
    /// The column or field of ids, if not `id` (for FiftyOne `example`).
    pub id: Option<String>,
    /// The column or field of classes, if not `class`.
    pub class: Option<String>,
    /// The column or field of decisions, if not `decision`.
    pub decision: Option<String>,
    /// The words of answers.
    pub words: DecisionWords,
}

/// The contents of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportedDecisions {
    /// The decisions, and those that were withdrawn, earliest first.
    pub rows: Vec<DecisionRow>,
    /// Examples without a decision, and decisions that were withdrawn.
    pub n_undecided: usize,
    /// Answers that their author took back or skipped.
    pub n_cancelled: usize,
    /// Entries that were not understood: their place and content.
    pub not_understood: Vec<String>,
}

impl ImportedDecisions {
    fn push(&mut self, row: DecisionRow) {
        self.n_undecided += usize::from(row.decision.is_none());
        self.rows.push(row);
    }

    /// Adds what another file says.
    pub fn extend(&mut self, other: ImportedDecisions) {
        self.rows.extend(other.rows);
        self.n_undecided += other.n_undecided;
        self.n_cancelled += other.n_cancelled;
        self.not_understood.extend(other.not_understood);
    }
}

/// Reads the decisions in a file of another tool.
pub fn import_decisions(path: impl AsRef<Path>, options: &ImportOptions) -> Result<ImportedDecisions> {
    let path = file_in(path.as_ref());
    let is_table = TableFormat::of(&path).is_ok();
    match (options.source, is_table) {
        (Some(DecisionSource::Csv), _) | (None, true) => table::read(&path, options),
        (source, _) => {
            let value = read_json(&path)?;
            match source.or_else(|| guess(&value)) {
                Some(DecisionSource::LabelStudio) => label_studio::read(&path, &value, options),
                Some(DecisionSource::FiftyOne) => fiftyone::read(&path, &value, options),
                _ => Err(DataError::UnknownFormat {
                    path,
                    expected: "JSON from Label Studio or FiftyOne, .csv, .tsv or .parquet",
                }),
            }
        }
    }
}

/// The file that matters in a folder of FiftyOne's.
fn file_in(path: &Path) -> PathBuf {
    let inside = ["samples.json", "labels.json"].map(|name| path.join(name));
    inside.into_iter().find(|file| file.is_file()).unwrap_or_else(|| path.to_path_buf())
}

fn read_json(path: &Path) -> Result<Value> {
    let bytes = labelsieve_files::storage::input::read(path)?;
    serde_json::from_slice(&bytes).map_err(|error| DataError::undecodable(path, "JSON", error))
}

/// By what only one of the tools writes.
fn guess(value: &Value) -> Option<DecisionSource> {
    let is_task = |value: &Value| value.get("annotations").is_some() || value.get("data").is_some();
    match value {
        Value::Array(tasks) if tasks.first().is_some_and(is_task) => Some(DecisionSource::LabelStudio),
        Value::Object(_) if value.get("samples").is_some_and(Value::is_array) => {
            Some(DecisionSource::FiftyOne)
        }
        Value::Object(_) if value.get("labels").is_some_and(Value::is_object) => {
            Some(DecisionSource::FiftyOne)
        }
        _ => None,
    }
}

/// A text, or a number as one: ids may be either.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
