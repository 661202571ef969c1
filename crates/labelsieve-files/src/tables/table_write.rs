//! Writing tables of results as Parquet, CSV or TSV, chosen by the extension.

use std::borrow::Cow;
use std::io::Write;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, UInt32Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Schema};

use crate::tables::parquet_write::SteadyParquetWriter;
use crate::{AtomicFile, DataError, Result};

/// The format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// Typed columns and metadata.
    Parquet,
    /// Commas and quotes as in RFC 4180, with a header; numbers in the shortest form that reads back exactly.
    Csv,
    /// One line per row with tabs between fields, for people and `cut`: no quotes, but `\t`, `\n`, `\r` and `\\` as escapes,
    /// and `\u{1b}` for other control characters; scores have six decimals.
    Tsv,
}

impl TableFormat {
    /// The format for a file name, by its extension.
    pub fn of(path: &Path) -> Result<TableFormat> {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        match ending.as_deref() {
            Some("parquet") => Ok(TableFormat::Parquet),
            Some("csv") => Ok(TableFormat::Csv),
            Some("tsv") => Ok(TableFormat::Tsv),
            other => {
                let found = other.map_or("none".to_owned(), |ending| format!("`.{ending}`"));
                Err(DataError::malformed(path, "ending", ".parquet, .csv or .tsv", found))
            }
        }
    }
}

/// A table under construction. The file appears in [`TableWriter::finish`] and not at all if dropped before.
pub enum TableWriter {
    /// A Parquet file.
    Parquet(Box<SteadyParquetWriter>),
    /// CSV or TSV.
    Lines(LineWriter),
}

impl TableWriter {
    /// Starts a file that will be called `path`. `metadata` is kept where the format allows it.
    pub fn create(path: &Path, schema: Schema, metadata: &[(String, String)]) -> Result<TableWriter> {
        let format = TableFormat::of(path)?;
        if format == TableFormat::Parquet {
            let writer = SteadyParquetWriter::create(path, schema, metadata)?;
            return Ok(TableWriter::Parquet(Box::new(writer)));
        }
        let sink = Sink::File(AtomicFile::create(path)?);
        Ok(TableWriter::Lines(LineWriter::new(path, sink, format, &schema)))
    }

    /// Writes rows to `stream`, which errors call `-`.
    pub fn to_stream(stream: Box<dyn Write + Send>, format: TableFormat, schema: &Schema) -> TableWriter {
        TableWriter::Lines(LineWriter::new(Path::new("-"), Sink::Stream(stream), format, schema))
    }

    /// Adds a batch; `columns` follow the schema.
    pub fn write(&mut self, columns: Vec<ArrayRef>) -> Result<()> {
        match self {
            TableWriter::Parquet(writer) => writer.write(columns),
            TableWriter::Lines(writer) => writer.write(&columns),
        }
    }

    /// Adds a key-value pair that is known only now, if the format has metadata.
    pub fn add_metadata(&mut self, key: String, value: String) {
        if let TableWriter::Parquet(writer) = self {
            writer.add_metadata(key, value);
        }
    }

    /// Completes the table.
    pub fn finish(self) -> Result<()> {
        match self {
            TableWriter::Parquet(writer) => writer.finish(),
            TableWriter::Lines(writer) => writer.finish(),
        }
    }
}

/// A table as lines of text.
pub struct LineWriter {
    path: PathBuf,
    sink: Sink,
    format: TableFormat,
    /// The header, until it is written along with the first rows: a failure before that prints nothing.
    header: Option<Vec<String>>,
    lines: Vec<u8>,
}

enum Sink {
    File(AtomicFile),
    Stream(Box<dyn Write + Send>),
}

impl LineWriter {
    fn new(path: &Path, sink: Sink, format: TableFormat, schema: &Schema) -> LineWriter {
        let header = Some(schema.fields().iter().map(|field| field.name().clone()).collect());
        LineWriter { path: path.to_path_buf(), sink, format, header, lines: Vec::new() }
    }

    fn write(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.lines.clear();
        if let Some(header) = self.header.take() {
            add_line(self.format, header.iter().map(|name| Cow::from(name.as_str())), &mut self.lines);
        }
        let columns: Vec<Cells<'_>> = columns.iter().map(Cells::of).collect();
        for row in 0..columns.first().map_or(0, Cells::len) {
            let cells = columns.iter().map(|cells| cells.get(row, self.format));
            add_line(self.format, cells, &mut self.lines);
        }
        let written = match &mut self.sink {
            Sink::File(file) => file.write_all(&self.lines),
            Sink::Stream(stream) => stream.write_all(&self.lines),
        };
        written.map_err(DataError::io("write", &self.path))
    }

    fn finish(mut self) -> Result<()> {
        self.write(&[])?; // writes the header of a table without rows
        match self.sink {
            Sink::File(file) => file.commit(),
            Sink::Stream(mut stream) => stream.flush().map_err(DataError::io("write", &self.path)),
        }
    }
}

/// The values of a column as texts.
enum Cells<'a> {
    Texts(Vec<Option<&'a str>>),
    Array(&'a ArrayRef),
}

impl<'a> Cells<'a> {
    fn of(array: &'a ArrayRef) -> Cells<'a> {
        match array.data_type() {
            DataType::Utf8 => Cells::Texts(array.as_string::<i32>().iter().collect()),
            DataType::Dictionary(..) => {
                let dictionary = array.as_any_dictionary();
                let entries = dictionary.values().as_string::<i32>();
                if entries.is_empty() {
                    return Cells::Texts(vec![None; array.len()]); // no text in any row
                }
                let keys = dictionary.normalized_keys().into_iter().enumerate();
                let entry = |(row, key): (usize, usize)| array.is_valid(row).then(|| entries.value(key));
                Cells::Texts(keys.map(entry).collect())
            }
            _ => Cells::Array(array),
        }
    }

    fn len(&self) -> usize {
        match self {
            Cells::Texts(texts) => texts.len(),
            Cells::Array(array) => array.len(),
        }
    }

    /// A missing value is an empty cell.
    fn get(&self, row: usize, format: TableFormat) -> Cow<'a, str> {
        let array = match self {
            Cells::Texts(texts) => return Cow::from(texts[row].unwrap_or("")),
            Cells::Array(array) if array.is_null(row) => return Cow::from(""),
            Cells::Array(array) => array,
        };
        match array.data_type() {
            DataType::Float32 if format == TableFormat::Tsv => {
                format!("{:.6}", array.as_primitive::<Float32Type>().value(row)).into()
            }
            DataType::Float32 => array.as_primitive::<Float32Type>().value(row).to_string().into(),
            DataType::UInt32 => array.as_primitive::<UInt32Type>().value(row).to_string().into(),
            DataType::Boolean => array.as_boolean().value(row).to_string().into(),
            other => unreachable!("no table of ours has a column of type {other}"),
        }
    }
}

fn add_line<'a>(format: TableFormat, cells: impl Iterator<Item = Cow<'a, str>>, lines: &mut Vec<u8>) {
    for (i, cell) in cells.enumerate() {
        match format {
            TableFormat::Tsv => {
                lines.extend(if i > 0 { &b"\t"[..] } else { b"" });
                escape_into(&cell, lines);
            }
            _ => {
                lines.extend(if i > 0 { &b","[..] } else { b"" });
                quote_into(&cell, lines);
            }
        }
    }
    lines.push(b'\n');
}

/// A field of CSV: quoted if it contains a comma, a quote, a line break, or spaces that readers would trim.
fn quote_into(cell: &str, lines: &mut Vec<u8>) {
    if !cell.contains([',', '"', '\n', '\r']) && cell.trim() == cell {
        lines.extend(cell.as_bytes());
        return;
    }
    lines.push(b'"');
    lines.extend(cell.replace('"', "\"\"").as_bytes());
    lines.push(b'"');
}

/// A field of TSV.
fn escape_into(cell: &str, lines: &mut Vec<u8>) {
    if !cell.contains(|c: char| c == '\\' || c.is_control()) {
        lines.extend(cell.as_bytes());
        return;
    }
    for c in cell.chars() {
        match c {
            '\\' => lines.extend(b"\\\\"),
            c if c.is_control() => lines.extend(c.escape_default().to_string().as_bytes()),
            c => lines.extend(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// Undoes the escapes of cells. A backslash that starts no escape stays.
pub fn unescape(cell: &str) -> Cow<'_, str> {
    if !cell.contains('\\') {
        return Cow::from(cell);
    }
    let mut text = String::with_capacity(cell.len());
    let mut rest = cell;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        let (c, length) = escaped(&rest[at + 1..]).unwrap_or(('\\', 0));
        text.push(c);
        rest = &rest[at + 1 + length..];
    }
    text.push_str(rest);
    Cow::from(text)
}

/// The character that an escape stands for, and the length of the escape without its backslash.
fn escaped(rest: &str) -> Option<(char, usize)> {
    match rest.as_bytes().first()? {
        b'\\' => Some(('\\', 1)),
        b't' => Some(('\t', 1)),
        b'n' => Some(('\n', 1)),
        b'r' => Some(('\r', 1)),
        b'u' => {
            let digits = &rest[1..].strip_prefix('{')?.split_once('}')?.0;
            Some((char::from_u32(u32::from_str_radix(digits, 16).ok()?)?, digits.len() + 3))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(format: TableFormat, cells: &[&str]) -> String {
        let mut lines = Vec::new();
        add_line(format, cells.iter().map(|&cell| Cow::from(cell)), &mut lines);
        String::from_utf8(lines).unwrap()
    }

    #[test]
    fn the_ending_decides_in_any_case() {
        for (name, format) in
            [("a.parquet", TableFormat::Parquet), ("a.CSV", TableFormat::Csv), ("b/a.tsv", TableFormat::Tsv)]
        {
            assert_eq!(TableFormat::of(Path::new(name)).unwrap(), format);
        }
        let error = TableFormat::of(Path::new("a.txt")).unwrap_err().to_string();
        assert_eq!(error, "`a.txt`: ending: expected .parquet, .csv or .tsv, found `.txt`");
        let error = TableFormat::of(Path::new("a")).unwrap_err().to_string();
        assert_eq!(error, "`a`: ending: expected .parquet, .csv or .tsv, found none");
    }

    #[test]
    fn csv_quotes_what_would_be_read_differently() {
        let cells = ["a", "b,c", "say \"hi\"", "two\nlines", " space", "tab\there", ""];
        let expected = "a,\"b,c\",\"say \"\"hi\"\"\",\"two\nlines\",\" space\",tab\there,\n";
        assert_eq!(line(TableFormat::Csv, &cells), expected);
    }

    #[test]
    fn tsv_escapes_what_would_break_its_lines_or_the_terminal() {
        let cells = ["a b", "tab\t", "two\nlines\r", "back\\slash", "\u{1b}[31m", "\u{9b}", "ü"];
        let expected = "a b\ttab\\t\ttwo\\nlines\\r\tback\\\\slash\t\\u{1b}[31m\t\\u{9b}\tü\n";
        assert_eq!(line(TableFormat::Tsv, &cells), expected);
    }

    proptest::proptest! {
        #[test]
        fn tsv_reads_back_as_it_was(cell in "(\\PC|\\p{Cc}|[\\\\u{}1btn]){0,12}") {
            let mut escaped = Vec::new();
            escape_into(&cell, &mut escaped);
            let escaped = String::from_utf8(escaped).unwrap();
            proptest::prop_assert!(!escaped.contains(['\t', '\n', '\r']));
            proptest::prop_assert_eq!(unescape(&escaped), cell);
        }

        #[test]
        fn csv_reads_back_as_it_was(cells in proptest::collection::vec(".{0,8}", 2..5)) {
            let texts: Vec<&str> = cells.iter().map(String::as_str).collect();
            // After a header, as always: a byte order mark at the start of a file is not part of its text.
            let written = format!("{}{}", line(TableFormat::Csv, &vec!["x"; texts.len()]), line(TableFormat::Csv, &texts));
            let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(written.as_bytes());
            let record = reader.records().nth(1).unwrap().unwrap();
            proptest::prop_assert_eq!(record.iter().collect::<Vec<_>>(), texts);
        }
    }
}
