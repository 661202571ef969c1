//! The interface between readers of rows and their consumers.

use std::fmt;

use labelsieve_files::ForeignEncoding;

use crate::names::TextEncoding;

/// The value of a row in a column to keep, by the position of the column in [`TextColumns::keep`](super::TextColumns::keep);
/// `None` if the row or the file has none.
pub type KeptValues<'a> = dyn Fn(usize) -> Option<String> + 'a;

/// Receives the rows of a file: their texts, then their id.
pub trait RowSink {
    /// Starts block `number`: a part of the input of about 1 MiB, the same in every run. A sink gets some of the blocks, in
    /// ascending order.
    fn start_block(&mut self, _number: u64) {}
    /// Adds a text of the current row. `column` is the index of a chosen text column, which may have several texts.
    fn text(&mut self, column: usize, text: &str, encoding: TextEncoding);
    /// Completes the current row. `kept` returns its values in the columns to keep.
    fn end_row(&mut self, id: &str, kept: &KeptValues<'_>);
    /// Drops the texts of the current row, which turned out to be unreadable.
    fn forget_row(&mut self);
}

/// Where a row is in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// Its first line, counted from 1.
    Line(u64),
    /// The offset of its first byte, if the lines before it are not counted.
    Byte(u64),
    /// The row of a Parquet file, counted from 0.
    Row(u64),
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Position::Line(n) => write!(f, "line {n}"),
            Position::Byte(n) => write!(f, "byte {n}"),
            Position::Row(n) => write!(f, "row {n}"),
        }
    }
}

/// A row that was skipped because it breaks its format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRow {
    /// Its position.
    pub position: Position,
    /// The value that the format requires.
    pub expected: String,
    /// The value in the row.
    pub found: String,
    /// For a row that is not UTF-8, its guessed encoding.
    pub encoding: Option<ForeignEncoding>,
}

impl BadRow {
    /// A row by its line.
    pub(super) fn new(line: u64, expected: impl Into<String>, found: impl Into<String>) -> BadRow {
        BadRow {
            position: Position::Line(line),
            expected: expected.into(),
            found: found.into(),
            encoding: None,
        }
    }

    /// A row whose `bytes` are not UTF-8, by its line.
    pub(super) fn in_other_encoding(line: u64, bytes: &[u8]) -> BadRow {
        let encoding = ForeignEncoding::guess(bytes);
        let bad = BadRow::new(line, "text in UTF-8", encoding.to_string());
        BadRow { encoding: Some(encoding), ..bad }
    }

    /// A row of a Parquet file.
    pub(super) fn in_table(row: u64, expected: impl Into<String>, found: impl Into<String>) -> BadRow {
        BadRow { position: Position::Row(row), ..BadRow::new(0, expected, found) }
    }
}

/// Counts for one block.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Rows passed to the sink.
    pub n_rows: u64,
    /// Rows to skip: videos, failed downloads.
    pub n_skipped: u64,
    /// Rows that break their format.
    pub n_bad: u64,
    /// The first few of them, counted from the start of the block.
    pub first_bad: Vec<BadRow>,
    /// Lines of those after an unclosed quote, which should have been rows of their own.
    pub n_swallowed: u64,
    /// The guessed encoding of rows that are not UTF-8, if there are any.
    pub encoding: Option<ForeignEncoding>,
}

impl Tally {
    /// Maximum number of bad rows in messages.
    pub(super) const MAX_SHOWN: usize = 5;

    pub(super) fn add_bad(&mut self, bad: BadRow) {
        self.n_bad += 1;
        self.encoding = self.encoding.max(bad.encoding);
        if self.first_bad.len() < Tally::MAX_SHOWN {
            self.first_bad.push(bad);
        }
    }
}

/// The lines of a block with their numbers counted from 1, without line ends and without blank lines.
pub(super) fn numbered_lines(block: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let mut rest = block;
    let mut number = 0;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let line = &rest[..end];
            rest = rest.get(end + 1..).unwrap_or_default();
            number += 1;
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if !line.is_empty() {
                return Some((number, line));
            }
        }
        None
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Writes rows down: `id: column=text …`, a percent-encoded text with a leading `%`; then ` | value` for each column to
    /// keep.
    #[derive(Default)]
    pub struct Notes {
        pub rows: Vec<String>,
        n_keep: usize,
        current: String,
    }

    impl Notes {
        /// With the values of so many columns to keep.
        pub fn keeping(n_keep: usize) -> Notes {
            Notes { n_keep, ..Notes::default() }
        }
    }

    impl RowSink for Notes {
        fn text(&mut self, column: usize, text: &str, encoding: TextEncoding) {
            let mark = if encoding == TextEncoding::Percent { "%" } else { "" };
            self.current.push_str(&format!(" {column}={mark}{text}"));
        }

        fn end_row(&mut self, id: &str, kept: &KeptValues<'_>) {
            let kept = (0..self.n_keep).map(|column| format!(" | {}", kept(column).unwrap_or("-".into())));
            let kept: String = kept.collect();
            self.rows.push(format!("{id}:{}{kept}", std::mem::take(&mut self.current)));
        }

        fn forget_row(&mut self) {
            self.current.clear();
        }
    }

    #[test]
    fn lines_are_numbered_with_the_blank_ones() {
        let lines: Vec<_> = numbered_lines(b"a\r\n\nb\n\n").collect();
        assert_eq!(lines, [(1, &b"a"[..]), (3, b"b")]);
    }
}
