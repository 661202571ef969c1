//! The table of decisions as Parquet, CSV or TSV: columns `id`, `class`, `decision`, and `by` and `at` where known.

use std::path::Path;
use std::sync::Arc;

use arrow_array::StringArray;
use arrow_schema::{DataType, Field, Schema};

use super::log::LoggedRows;
use super::spelling::{decision_word, parse};
use super::{DecisionRow, DecisionTable};
use crate::tables::parquet_columns::Column;
use crate::tables::parquet_write::{dictionary_column, dictionary_type};
use crate::tables::table_read::{Kind, TableFile};
use crate::tables::table_write::{TableFormat, TableWriter};
use crate::{DataError, Result};

const COLUMNS: [&str; 5] = ["id", "class", "decision", "by", "at"];

/// More decisions than people make. Repeated values take no space in a small file, but each does in memory.
const MAX_ROWS: usize = 20_000_000;

/// The values of the column `decision`.
const EXPECTED: &str = "`accept`, `reject`, `unsure` or `undecided`";

/// Reads decisions from a `.parquet`, `.csv` or `.tsv` file, and from the `FILE.log` of a review that is in progress or was
/// killed. Other columns are ignored; a missing decision counts as `undecided`.
pub fn read_decisions(path: impl AsRef<Path>) -> Result<DecisionTable> {
    let path = path.as_ref();
    // The log comes first: if a review moves its rows into the table meanwhile, they are read twice and recognised.
    let logged = LoggedRows::read(path)?;
    Ok(DecisionTable { path: path.to_path_buf(), rows: logged.after(read_table(path)?) })
}

/// The table without its log.
pub(super) fn read_table(path: &Path) -> Result<Vec<DecisionRow>> {
    TableFormat::of(path)?;
    let file = TableFile::open(path)?;
    let mut wanted = vec![("id", Kind::Text), ("class", Kind::Text), ("decision", Kind::OptionalText)];
    wanted.extend(
        ["by", "at"].into_iter().filter(|name| file.has(name)).map(|name| (name, Kind::OptionalText)),
    );
    let mut rows: Vec<DecisionRow> = Vec::new();
    file.for_each_batch(&wanted, |columns| {
        let [id, class, decision, notes @ ..] = columns else { unreachable!("as many columns as names") };
        let start = rows.len();
        let new = DecisionRow {
            id: String::new(),
            class: String::new(),
            decision: None,
            by: String::new(),
            at: String::new(),
        };
        if start + id.array.len() > MAX_ROWS {
            return Err(id.bad_row(0, format!("at most {MAX_ROWS} decisions"), "more"));
        }
        rows.resize(start + id.array.len(), new);
        let new = &mut rows[start..];
        fill(id, new, |row| &mut row.id)?;
        fill(class, new, |row| &mut row.class)?;
        for (at, word) in decision.optional_texts()?.into_iter().enumerate() {
            let word = word.unwrap_or_default();
            new[at].decision =
                parse(&word).ok_or_else(|| decision.bad_row(at, EXPECTED, format!("`{word}`")))?;
        }
        for column in notes {
            for (row, text) in new.iter_mut().zip(column.optional_texts()?) {
                let text = text.unwrap_or_default();
                if column.name == "by" { row.by = text } else { row.at = text }
            }
        }
        Ok(())
    })?;
    Ok(rows)
}

/// Writes the table; it appears whole or not at all.
pub(super) fn write_table(path: &Path, rows: &[DecisionRow]) -> Result<()> {
    let text = |name| Field::new(name, DataType::Utf8, false);
    let few_texts = |name| Field::new(name, dictionary_type(), false);
    let [id, class, decision, by, at] = COLUMNS;
    let fields = vec![text(id), few_texts(class), few_texts(decision), few_texts(by), text(at)];
    let mut writer = TableWriter::create(path, Schema::new(fields), &[])?;
    if !rows.is_empty() {
        writer.write(vec![
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.id))),
            dictionary_column(rows.iter().map(|row| row.class.as_str())),
            dictionary_column(rows.iter().map(|row| decision_word(row.decision))),
            dictionary_column(rows.iter().map(|row| row.by.as_str())),
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.at))),
        ])?;
    }
    writer.finish()
}

/// Refuses a table with columns that rewriting it would lose.
pub(super) fn check_columns(path: &Path) -> Result<()> {
    let columns = TableFile::open(path)?.columns();
    match columns.iter().find(|name| !COLUMNS.contains(&name.as_str())) {
        Some(other) => {
            let expected = format!("only {}", COLUMNS.join(", "));
            Err(DataError::malformed(path, "columns", expected, format!("`{other}`")))
        }
        None => Ok(()),
    }
}

fn fill(
    column: &Column<'_>,
    rows: &mut [DecisionRow],
    field: impl Fn(&mut DecisionRow) -> &mut String,
) -> Result<()> {
    let mut rows = rows.iter_mut();
    column.for_each_given_text(&mut |text| {
        if let Some(row) = rows.next() {
            text.clone_into(field(row));
        }
    })
}

#[cfg(test)]
#[path = "table_file_tests.rs"]
mod tests;
