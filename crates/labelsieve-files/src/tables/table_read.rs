//! Reading columns of a table by name, from Parquet, CSV or TSV, a few thousand rows at a time.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float32Array, StringArray, UInt32Array};
use csv::StringRecord;

use crate::tables::column_values::parse_flag;
use crate::tables::parquet_columns::{Column, ParquetFile};
use crate::tables::table_write::{TableFormat, unescape};
use crate::{DataError, Result};

/// Rows per batch.
const BATCH_ROWS: usize = 4096;

/// More rows than any table of this kind has; a small file can claim any number, since repeated values take no space.
const MAX_ROWS: usize = 1_000_000_000;

/// The type of a column, which CSV does not specify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A text in every row.
    Text,
    /// A text, or nothing.
    OptionalText,
    /// Numbers.
    Float,
    /// Whole numbers.
    Integer,
    /// True or false.
    Flag,
}

/// An open table of which only the header has been read.
pub struct TableFile {
    path: PathBuf,
    source: Source,
}

enum Source {
    Parquet(ParquetFile),
    Lines { reader: Box<csv::Reader<File>>, header: Vec<String>, format: TableFormat },
}

impl TableFile {
    /// Opens `.csv` and `.tsv` as text with a header, everything else as Parquet.
    pub fn open(path: &Path) -> Result<TableFile> {
        let source = match TableFormat::of(path) {
            Ok(format @ (TableFormat::Csv | TableFormat::Tsv)) => open_lines(path, format)?,
            _ => {
                let file = ParquetFile::open(path)?;
                check_rows(path, file.claimed_rows())?;
                Source::Parquet(file)
            }
        };
        Ok(TableFile { path: path.to_path_buf(), source })
    }

    /// The metadata of the run; empty for CSV and TSV.
    pub fn metadata(&self) -> BTreeMap<String, String> {
        match &self.source {
            Source::Parquet(file) => file.metadata(),
            Source::Lines { .. } => BTreeMap::new(),
        }
    }

    /// The names of the columns.
    pub fn columns(&self) -> Vec<String> {
        match &self.source {
            Source::Parquet(file) => {
                file.schema().fields().iter().map(|field| field.name().clone()).collect()
            }
            Source::Lines { header, .. } => header.clone(),
        }
    }

    /// Whether there is such a column.
    pub fn has(&self, name: &str) -> bool {
        match &self.source {
            Source::Parquet(file) => file.schema().index_of(name).is_ok(),
            Source::Lines { header, .. } => header.iter().any(|column| column == name),
        }
    }

    /// Passes every batch to `visit`, one [`Column`] per wanted one, in the same order. Values may be null.
    pub fn for_each_batch(
        self,
        wanted: &[(&str, Kind)],
        mut visit: impl FnMut(&[Column<'_>]) -> Result<()>,
    ) -> Result<()> {
        let path = self.path;
        match self.source {
            Source::Parquet(file) => {
                let names: Vec<&str> = wanted.iter().map(|(name, _)| *name).collect();
                file.for_each_batch_with_nulls(&names, |columns| {
                    let end = columns.first().map_or(0, |column| column.first_row + column.array.len());
                    check_rows(&path, end)?;
                    visit(columns)
                })
            }
            Source::Lines { reader, header, format } => {
                read_lines(&path, *reader, &header, format, wanted, visit)
            }
        }
    }
}

fn check_rows(path: &Path, rows: usize) -> Result<()> {
    if rows > MAX_ROWS {
        Err(DataError::malformed(path, "rows", format!("at most {MAX_ROWS}"), rows.to_string()))
    } else {
        Ok(())
    }
}

fn open_lines(path: &Path, format: TableFormat) -> Result<Source> {
    let file = File::open(path).map_err(DataError::io("open", path))?;
    let mut builder = csv::ReaderBuilder::new();
    builder.has_headers(true).buffer_capacity(1 << 20);
    if format == TableFormat::Tsv {
        builder.delimiter(b'\t').quoting(false); // as we write it: quotes are ordinary characters
    }
    let mut reader = builder.from_reader(file);
    let header = reader.headers().map_err(|error| bad_csv(path, error))?;
    if header.is_empty() {
        return Err(DataError::malformed(path, "line 1", "a header with column names", "an empty file"));
    }
    let header = header.iter().map(|name| name.trim().trim_start_matches('\u{feff}').to_owned()).collect();
    Ok(Source::Lines { reader: Box::new(reader), header, format })
}

fn read_lines(
    path: &Path,
    mut reader: csv::Reader<File>,
    header: &[String],
    format: TableFormat,
    wanted: &[(&str, Kind)],
    mut visit: impl FnMut(&[Column<'_>]) -> Result<()>,
) -> Result<()> {
    let mut places = Vec::with_capacity(wanted.len());
    for (name, _) in wanted {
        let place = header.iter().position(|column| column == name);
        places.push(place.ok_or_else(|| {
            let found = format!("the columns {}", header.join(", "));
            DataError::malformed(path, "line 1", format!("a column `{name}`"), found)
        })?);
    }
    let mut first_row = 0;
    let mut records = Vec::with_capacity(BATCH_ROWS);
    loop {
        let mut record = StringRecord::new();
        let is_more = reader.read_record(&mut record).map_err(|error| bad_csv(path, error))?;
        if is_more {
            records.push(record);
        }
        if records.len() == BATCH_ROWS || (!is_more && !records.is_empty()) {
            let arrays = wanted
                .iter()
                .zip(&places)
                .map(|((name, kind), &place)| {
                    let cells = records.iter().map(|record| record.get(place).unwrap_or(""));
                    let cells: Vec<Cow<'_, str>> = match format {
                        TableFormat::Tsv => cells.map(unescape).collect(),
                        _ => cells.map(Cow::from).collect(),
                    };
                    parse(*kind, cells.iter().map(Cow::as_ref)).map_err(|(row, expected, found)| {
                        bad_cell(path, &records[row], name, expected, found)
                    })
                })
                .collect::<Result<Vec<ArrayRef>>>()?;
            let columns: Vec<Column<'_>> = wanted
                .iter()
                .zip(&arrays)
                .map(|((name, _), array)| Column { path, name, first_row, array })
                .collect();
            visit(&columns)?;
            first_row += records.len();
            check_rows(path, first_row)?;
            records.clear();
        }
        if !is_more {
            return Ok(());
        }
    }
}

/// The cells of a column as an array; else the row, what was expected and what was found.
fn parse<'a>(
    kind: Kind,
    cells: impl Iterator<Item = &'a str>,
) -> std::result::Result<ArrayRef, (usize, &'static str, String)> {
    /// An empty cell is a missing value.
    fn values<'a, T>(
        cells: impl Iterator<Item = &'a str>,
        expected: &'static str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> std::result::Result<Vec<Option<T>>, (usize, &'static str, String)> {
        let cells = cells.map(str::trim).enumerate();
        cells
            .map(|(row, cell)| match (cell, parse(cell)) {
                ("", _) => Ok(None),
                (_, Some(value)) => Ok(Some(value)),
                _ => Err((row, expected, format!("`{cell}`"))),
            })
            .collect()
    }
    Ok(match kind {
        Kind::Text => Arc::new(StringArray::from_iter_values(cells)),
        Kind::OptionalText => Arc::new(StringArray::from_iter(cells.map(|c| (!c.is_empty()).then_some(c)))),
        Kind::Float => Arc::new(Float32Array::from(values(cells, "a number", |cell| cell.parse().ok())?)),
        Kind::Integer => Arc::new(UInt32Array::from(values(cells, "a non-negative integer", parse_integer)?)),
        Kind::Flag => Arc::new(BooleanArray::from(values(cells, "true, false, 1 or 0", parse_flag)?)),
    })
}

/// `7`, and `7.0` as pandas writes it.
fn parse_integer(cell: &str) -> Option<u32> {
    let float =
        || cell.parse().ok().filter(|v: &f64| v.fract() == 0.0 && (0.0..=4_294_967_295.0).contains(v));
    cell.parse().ok().or_else(|| float().map(|value| value as u32))
}

fn bad_cell(path: &Path, record: &StringRecord, name: &str, expected: &str, found: String) -> DataError {
    let line = record.position().map_or(0, |position| position.line());
    DataError::malformed(path, format!("line {line}, column `{name}`"), expected, found)
}

fn bad_csv(path: &Path, error: csv::Error) -> DataError {
    let line = |position: &Option<csv::Position>| position.as_ref().map_or(0, csv::Position::line);
    match error.kind() {
        csv::ErrorKind::UnequalLengths { pos, expected_len, len } => {
            let expected = format!("{expected_len} fields, as in the header");
            DataError::malformed(path, format!("line {}", line(pos)), expected, len.to_string())
        }
        csv::ErrorKind::Utf8 { pos, .. } => {
            DataError::malformed(path, format!("line {}", line(pos)), "text in UTF-8", "other bytes")
        }
        _ => DataError::undecodable(path, "CSV", error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_rows_than_memory_holds_are_refused_with_their_number() {
        assert!(check_rows(Path::new("c.parquet"), MAX_ROWS).is_ok());
        let error = check_rows(Path::new("c.parquet"), MAX_ROWS + 1).unwrap_err().to_string();
        assert_eq!(error, "`c.parquet`: rows: expected at most 1000000000, found 1000000001");
    }
}
