//! CSV and TSV with a header line.

use std::path::Path;

use csv::{ByteRecord, Reader, ReaderBuilder};
use labelsieve_files::{DataError, ForeignEncoding, Result};

use super::line_blocks::{RowEnd, misclosed_quote};
use super::rows::{BadRow, RowSink, Tally};
use crate::names::TextEncoding;

/// The separator and quoting of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Commas; a quoted field may contain commas and line breaks.
    Csv,
    /// Tabs; quotes are ordinary characters, as in most files of this kind.
    Tsv,
}

/// The fields to read of each row.
#[derive(Clone, Debug)]
pub(super) struct Fields {
    pub(super) dialect: Dialect,
    /// Fields per row.
    pub(super) n_fields: usize,
    /// Position of the id.
    pub(super) id: usize,
    /// Positions of the texts.
    pub(super) texts: Vec<usize>,
    pub(super) encoding: TextEncoding,
    /// Positions and encodings of the columns to keep, if the file has them.
    pub(super) keep: Vec<Option<(usize, TextEncoding)>>,
}

impl Dialect {
    pub(super) fn row_end(self) -> RowEnd {
        match self {
            Dialect::Csv => RowEnd::UnquotedLine { delimiter: b',' },
            Dialect::Tsv => RowEnd::Line,
        }
    }

    fn reader(self, block: &[u8]) -> Reader<&[u8]> {
        let delimiter = if self == Dialect::Csv { b',' } else { b'\t' };
        let mut builder = ReaderBuilder::new();
        builder.has_headers(false).flexible(true).delimiter(delimiter).quoting(self == Dialect::Csv);
        builder.from_reader(block)
    }
}

/// The column names of a file that starts with the rows of `block`.
pub(super) fn read_header(path: &Path, block: &[u8], dialect: Dialect) -> Result<Vec<String>> {
    let mut header = ByteRecord::new();
    let found = dialect.reader(block).read_byte_record(&mut header);
    if !found.map_err(|error| DataError::undecodable(path, "CSV", error))? {
        return Err(DataError::malformed(path, "line 1", "a header with column names", "an empty file"));
    }
    let name = |field: &[u8]| std::str::from_utf8(field).map(|name| name.trim().to_string());
    let names: std::result::Result<_, _> = header.iter().map(name).collect();
    names.map_err(|_| {
        let encoding = ForeignEncoding::guess(header.as_slice());
        DataError::Encoding { path: path.to_path_buf(), place: "line 1".into(), encoding }
    })
}

/// The size of the header, including blank lines before it.
pub(super) fn header_len(block: &[u8], dialect: Dialect) -> u64 {
    let mut reader = dialect.reader(block);
    match reader.read_byte_record(&mut ByteRecord::new()) {
        Ok(true) => reader.position().byte(),
        _ => 0,
    }
}

/// Reads every row of `block`, whose first `n_header_rows` are not data.
pub(super) fn read_block(
    block: &[u8],
    n_header_rows: usize,
    fields: &Fields,
    sink: &mut impl RowSink,
    tally: &mut Tally,
) {
    let mut reader = fields.dialect.reader(block);
    let mut record = ByteRecord::new();
    let mut n_read = 0;
    loop {
        let start = reader.position().clone();
        match reader.read_byte_record(&mut record) {
            Ok(true) => {}
            Ok(false) => return,
            // Reading bytes from memory cannot fail; if that changes, the row is bad and the rest unreadable.
            Err(error) => return tally.add_bad(BadRow::new(0, "a row", error.to_string())),
        }
        n_read += 1;
        if n_read <= n_header_rows {
            continue;
        }
        let end = reader.position();
        let bytes = &block[start.byte() as usize..end.byte() as usize];
        let raw = || RawRow::new(bytes, start.line());
        // A single line break ends the row, or precedes it if the last one ended in `\r`; any other may be quoted.
        let quoting = match end.line() - start.line() {
            0 => Ok(()),
            1 if bytes.ends_with(b"\n") || bytes.starts_with(b"\n") => Ok(()),
            _ => check_quotes(&raw(), fields.dialect),
        };
        match quoting.and_then(|()| push_row(&record, fields, sink)) {
            Ok(()) => tally.n_rows += 1,
            Err(fault) => {
                sink.forget_row();
                let raw = raw();
                tally.n_swallowed += raw.n_lines - 1;
                tally.add_bad(fault.at(&raw));
            }
        }
    }
}

/// A row as it is in the file.
struct RawRow<'a> {
    bytes: &'a [u8],
    /// Its first line, counted from the start of the block.
    line: u64,
    n_lines: u64,
}

impl<'a> RawRow<'a> {
    /// `bytes` may start with blank lines, which the reader skips, and end with a line break.
    fn new(bytes: &'a [u8], line: u64) -> RawRow<'a> {
        let is_break = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let n_breaks = bytes.iter().take_while(|byte| is_break(byte)).count();
        let (blank, bytes) = bytes.split_at(n_breaks);
        let bytes = bytes.trim_ascii_end();
        let lines = |bytes: &[u8]| memchr::memchr_iter(b'\n', bytes).count() as u64;
        RawRow { bytes, line: line + lines(blank), n_lines: lines(bytes) + 1 }
    }
}

/// The reason why a row is malformed.
enum RowFault {
    Row { expected: String, found: String },
    Encoding,
}

impl RowFault {
    fn at(self, raw: &RawRow<'_>) -> BadRow {
        match self {
            RowFault::Encoding => BadRow::in_other_encoding(raw.line, raw.bytes),
            RowFault::Row { expected, found } if raw.n_lines > 1 => {
                let found = format!("{found}; a quoted field makes the row span {} lines", raw.n_lines);
                BadRow::new(raw.line, expected, found)
            }
            RowFault::Row { expected, found } => BadRow::new(raw.line, expected, found),
        }
    }
}

/// Refuses a row with a missing quote: a quoted field may contain line breaks, but must not end in the middle of another field.
fn check_quotes(raw: &RawRow<'_>, dialect: Dialect) -> std::result::Result<(), RowFault> {
    if dialect == Dialect::Tsv || raw.n_lines == 1 || misclosed_quote(raw.bytes, b',').is_none() {
        return Ok(());
    }
    let found = "a quote in the middle of a later field".to_string();
    Err(RowFault::Row { expected: "a closing quote before a comma or a line end".to_string(), found })
}

fn push_row(
    record: &ByteRecord,
    fields: &Fields,
    sink: &mut impl RowSink,
) -> std::result::Result<(), RowFault> {
    if record.len() != fields.n_fields {
        let expected = format!("{} fields, as in the header", fields.n_fields);
        return Err(RowFault::Row { expected, found: record.len().to_string() });
    }
    let field = |position: usize| std::str::from_utf8(&record[position]).map_err(|_| RowFault::Encoding);
    let id = field(fields.id)?;
    if id.is_empty() {
        return Err(RowFault::Row { expected: "an id".to_string(), found: "an empty field".to_string() });
    }
    for (column, &position) in fields.texts.iter().enumerate() {
        sink.text(column, field(position)?, fields.encoding);
    }
    sink.end_row(id, &|column| {
        let (position, encoding) = fields.keep[column]?;
        let value = String::from_utf8_lossy(&record[position]);
        Some(encoding.decode(&value).into_owned()).filter(|value| !value.is_empty())
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::rows::Position;
    use super::super::rows::tests::Notes;
    use super::*;

    fn read(dialect: Dialect, block: &[u8]) -> (Vec<String>, Tally) {
        let encoding = TextEncoding::Plain;
        let fields = Fields { dialect, n_fields: 3, id: 0, texts: vec![2, 1], encoding, keep: vec![] };
        let mut notes = Notes::default();
        let mut tally = Tally::default();
        read_block(block, 1, &fields, &mut notes, &mut tally);
        (notes.rows, tally)
    }

    #[test]
    fn csv_fields_may_contain_commas_quotes_and_line_breaks() {
        let (rows, _) = read(Dialect::Csv, b"id,a,b\n7,\"x, \"\"y\"\"\nz\",w\r\n8,,\n");
        assert_eq!(rows, ["7: 0=w 1=x, \"y\"\nz", "8: 0= 1="]);
    }

    #[test]
    fn tsv_quotes_are_ordinary() {
        assert_eq!(read(Dialect::Tsv, b"id\ta\tb\n7\t\"x\tw\n").0, ["7: 0=w 1=\"x"]);
    }

    #[test]
    fn rows_of_another_length_or_without_id_are_reported_with_their_line() {
        let (rows, tally) = read(Dialect::Csv, b"id,a,b\n1,\"\n\",b\n2,a\n,a,b\n3,a,\xff\n4,a,b\n");
        assert_eq!(rows, ["1: 0=b 1=\n", "4: 0=b 1=a"]);
        assert_eq!(
            tally.first_bad,
            [
                BadRow::new(4, "3 fields, as in the header", "2"),
                BadRow::new(5, "an id", "an empty field"),
                BadRow::in_other_encoding(6, b"3,a,\xff"),
            ]
        );
        assert_eq!(tally.encoding, Some(ForeignEncoding::Latin1));
    }

    #[test]
    fn lines_that_a_quote_swallows_are_counted() {
        let (rows, tally) = read(Dialect::Csv, b"id,a,b\n\n1,x,\"open\n2,x,y\n3,x,\"closed\"\n4,x,y\n");
        assert_eq!(rows, ["4: 0=y 1=x"]);
        assert_eq!((tally.n_bad, tally.n_swallowed), (1, 2));
        assert_eq!(tally.first_bad[0].position, Position::Line(3));
        let found = "a quote in the middle of a later field; a quoted field makes the row span 3 lines";
        assert_eq!(tally.first_bad[0].found, found);
    }

    #[test]
    fn a_last_row_without_a_line_end_is_checked_like_any_other() {
        for end in ["", "\r", "\n", "\r\n"] {
            let (_, tally) = read(Dialect::Csv, format!("id,a,b\n1,\"x\"2,\"y\nz\"{end}").as_bytes());
            let found = "a quote in the middle of a later field; a quoted field makes the row span 2 lines";
            assert_eq!(tally.first_bad[0].found, found, "{end:?}");
        }
    }

    #[test]
    fn the_header_gives_the_names_of_the_columns() {
        let header = |text: &[u8]| read_header(Path::new("a.csv"), text, Dialect::Csv);
        assert_eq!(header(b"id, title ,\"a,b\"\n1,2,3\n").unwrap(), ["id", "title", "a,b"]);
        assert!(header(b"").unwrap_err().to_string().ends_with("found an empty file"));
        let error = header(b"id,l\xe9gende\n").unwrap_err().to_string();
        assert_eq!(error, "`a.csv`: line 1: expected text in UTF-8, found what looks like ISO-8859-1");
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_or_counted(bytes in proptest::collection::vec(
            proptest::sample::select(b",,\t\"\n\r1a\xff".to_vec()), 0..200)) {
            for dialect in [Dialect::Csv, Dialect::Tsv] {
                let (rows, tally) = read(dialect, &bytes);
                proptest::prop_assert_eq!(rows.len() as u64, tally.n_rows);
            }
        }
    }
}
