//! A stream of bytes cut into blocks of whole rows, so that blocks can be read in parallel.

use std::path::Path;

use super::compression::TextInput;
use crate::{DataError, Result};

/// Where a row may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowEnd {
    /// At every line break.
    Line,
    /// At every line break outside quotes (CSV); the delimiter decides what opens a quote.
    UnquotedLine {
        /// Stands between fields.
        delimiter: u8,
    },
}

/// Reads whole rows, about `BLOCK_BYTES` at a time.
pub(super) struct LineBlocks {
    input: TextInput,
    row_end: RowEnd,
    carried: Vec<u8>,
    ended: bool,
}

/// Large enough to make handing over cheap, small enough for many to be in flight.
const BLOCK_BYTES: usize = 1 << 20;
/// A row that does not end within this is no row: the file is binary, or a quote never closes.
const LONGEST_ROW: usize = 16 << 20;

impl LineBlocks {
    pub(super) fn open(path: &Path, row_end: RowEnd) -> Result<LineBlocks> {
        Ok(LineBlocks { input: TextInput::open(path)?, row_end, carried: Vec::new(), ended: false })
    }

    /// Bytes taken from the file itself so far.
    pub(super) fn n_consumed(&self) -> u64 {
        self.input.n_consumed()
    }

    /// Fills `block` with the next rows; false when there are none left.
    pub(super) fn next(&mut self, block: &mut Vec<u8>) -> Result<bool> {
        block.clear();
        std::mem::swap(block, &mut self.carried);
        let mut size = BLOCK_BYTES.max(block.len() + 1);
        while !self.ended {
            self.ended = self.input.fill(block, size)?;
            if self.ended {
                break;
            }
            if let Some(end) = last_row_end(block, self.row_end) {
                self.carried.extend_from_slice(&block[end..]);
                block.truncate(end);
                break;
            }
            if block.len() >= LONGEST_ROW {
                let start = String::from_utf8_lossy(&block[..40]).into_owned();
                let expected = format!("rows of at most {LONGEST_ROW} bytes");
                let place = format!("the row that starts with {start:?}");
                return Err(DataError::malformed(self.input.path(), place, expected, "a longer one"));
            }
            size = block.len() * 2;
        }
        Ok(!block.is_empty())
    }
}

/// Where the last complete row of `block` ends.
fn last_row_end(block: &[u8], row_end: RowEnd) -> Option<usize> {
    match row_end {
        RowEnd::Line => memchr::memrchr(b'\n', block).map(|at| at + 1),
        RowEnd::UnquotedLine { delimiter } => last_unquoted_line_end(block, delimiter),
    }
}

/// Walks from quote to quote. A quote opens only at the start of a field; inside, `""` stands for one quote.
fn last_unquoted_line_end(block: &[u8], delimiter: u8) -> Option<usize> {
    let mut last = None;
    let mut position = 0;
    loop {
        let open = memchr::memchr(b'"', &block[position..]).map_or(block.len(), |at| position + at);
        if let Some(line_end) = memchr::memrchr(b'\n', &block[position..open]) {
            last = Some(position + line_end + 1);
        }
        if open == block.len() {
            return last;
        }
        position = open + 1;
        let opens = open == 0 || [delimiter, b'\n', b'\r'].contains(&block[open - 1]);
        if !opens {
            continue;
        }
        loop {
            let Some(close) = memchr::memchr(b'"', &block[position..]) else { return last };
            position += close + 1;
            if block.get(position) != Some(&b'"') {
                break;
            }
            position += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(block: &str, expected: Option<&str>) {
        let end = last_row_end(block.as_bytes(), RowEnd::UnquotedLine { delimiter: b',' });
        assert_eq!(end.map(|end| &block[..end]), expected, "{block:?}");
    }

    #[test]
    fn csv_rows_end_outside_quotes() {
        check("a,b\nc", Some("a,b\n"));
        check("a,\"b\nc", None);
        check("x\na,\"b\nc", Some("x\n"));
        check("a,\"b\nc\"\nd", Some("a,\"b\nc\"\n"));
        check("a,\"say \"\"hi\"\"\n\"\nd", Some("a,\"say \"\"hi\"\"\n\"\n"));
        check("a 6\" nail,b\nc", Some("a 6\" nail,b\n"));
        check("\"\"\n", Some("\"\"\n"));
    }

    #[test]
    fn blocks_put_together_are_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines.txt");
        let long = "x".repeat(3 * BLOCK_BYTES / 2);
        let text: String = (0..300_000).map(|i| format!("{i},text\n")).collect::<String>() + &long + "\nlast";
        std::fs::write(&path, &text).unwrap();
        let mut blocks = LineBlocks::open(&path, RowEnd::Line).unwrap();
        let (mut block, mut all, mut n_blocks) = (Vec::new(), Vec::new(), 0);
        while blocks.next(&mut block).unwrap() {
            all.extend_from_slice(&block);
            assert!(block.ends_with(b"\n") || all.len() == text.len());
            n_blocks += 1;
        }
        assert!(all == text.as_bytes() && n_blocks > 2);
        assert_eq!(blocks.n_consumed(), text.len() as u64);
    }

    #[test]
    fn an_endless_row_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("binary");
        std::fs::write(&path, vec![b'z'; LONGEST_ROW + 1]).unwrap();
        let error = LineBlocks::open(&path, RowEnd::Line).unwrap().next(&mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("binary`: the row that starts with \"zzz"), "{error}");
    }
}
