//! CSV and TSV with a header line.

use std::path::Path;

use csv::{ByteRecord, Reader, ReaderBuilder};
use labelsieve::matching::TextEncoding;

use super::line_blocks::{LineBlocks, RowEnd};
use super::rows::{BadRow, RowSink, Tally};
use crate::{DataError, Result};

/// How fields are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Commas; a quoted field may hold commas and line breaks.
    Csv,
    /// Tabs; quotes are ordinary characters, as in most files of this kind.
    Tsv,
}

/// What is read of each row.
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

/// The column names of a file.
pub(super) fn read_header(path: &Path, dialect: Dialect) -> Result<Vec<String>> {
    let mut block = Vec::new();
    LineBlocks::open(path, dialect.row_end())?.next(&mut block)?;
    let block = block.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&block); // a byte order mark is no part of a name
    let mut header = ByteRecord::new();
    let found = dialect.reader(block).read_byte_record(&mut header);
    if !found.map_err(|error| DataError::undecodable(path, "CSV", error))? {
        return Err(DataError::malformed(path, "line 1", "a header with column names", "an empty file"));
    }
    let name = |field: &[u8]| std::str::from_utf8(field).map(|name| name.trim().to_string());
    header
        .iter()
        .map(|field| {
            name(field)
                .map_err(|_| DataError::malformed(path, "line 1", "column names in UTF-8", "other bytes"))
        })
        .collect()
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
        match reader.read_byte_record(&mut record) {
            Ok(true) => {}
            Ok(false) => return,
            // Reading from memory into bytes cannot fail; should that change, the row is bad and the rest unreadable.
            Err(error) => return tally.add_bad(BadRow::new(0, "a row", error.to_string())),
        }
        n_read += 1;
        if n_read <= n_header_rows {
            continue;
        }
        match push_row(&record, fields, sink) {
            Ok(()) => tally.n_rows += 1,
            Err((expected, found)) => {
                sink.forget_row();
                let line = record.position().map_or(0, |position| position.line());
                tally.add_bad(BadRow::new(line, expected, found));
            }
        }
    }
}

fn push_row(
    record: &ByteRecord,
    fields: &Fields,
    sink: &mut impl RowSink,
) -> std::result::Result<(), (String, String)> {
    if record.len() != fields.n_fields {
        return Err((format!("{} fields, as in the header", fields.n_fields), record.len().to_string()));
    }
    let field = |position: usize| {
        std::str::from_utf8(&record[position])
            .map_err(|_| ("text in UTF-8".to_string(), format!("other bytes in field {}", position + 1)))
    };
    let id = field(fields.id)?;
    if id.is_empty() {
        return Err(("an id".to_string(), "an empty field".to_string()));
    }
    for (column, &position) in fields.texts.iter().enumerate() {
        sink.text(column, field(position)?, fields.encoding);
    }
    sink.end_row(id);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::rows::tests::Notes;
    use super::*;

    fn read(dialect: Dialect, block: &[u8]) -> (Vec<String>, Tally) {
        let fields = Fields { dialect, n_fields: 3, id: 0, texts: vec![2, 1], encoding: TextEncoding::Plain };
        let (mut notes, mut tally) = (Notes::default(), Tally::default());
        read_block(block, 1, &fields, &mut notes, &mut tally);
        (notes.rows, tally)
    }

    #[test]
    fn csv_fields_may_hold_commas_quotes_and_line_breaks() {
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
                BadRow::new(6, "text in UTF-8", "other bytes in field 3"),
            ]
        );
    }

    #[test]
    fn the_header_is_read_without_its_byte_order_mark() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        std::fs::write(&path, "\u{feff}id, title ,\"a,b\"\n1,2,3\n").unwrap();
        assert_eq!(read_header(&path, Dialect::Csv).unwrap(), ["id", "title", "a,b"]);
        std::fs::write(&path, "").unwrap();
        assert!(read_header(&path, Dialect::Csv).unwrap_err().to_string().ends_with("found an empty file"));
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
