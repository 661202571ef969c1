//! Cutting a stream of bytes into blocks of complete rows, so that blocks can be parsed in parallel.

use labelsieve_files::{DataError, Result};

use super::compression::TextInput;

/// Where a row may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowEnd {
    /// At every line break.
    Line,
    /// At every line break outside quotes (CSV); the delimiter decides what opens a quote.
    UnquotedLine {
        /// Separates fields.
        delimiter: u8,
    },
}

/// Reads complete rows, about `BLOCK_BYTES` at a time.
pub(super) struct LineBlocks {
    input: TextInput,
    row_end: RowEnd,
    carried: Vec<u8>,
    ended: bool,
    failure: Option<DataError>,
}

/// Large enough to make passing blocks between threads cheap, small enough to have many at a time.
const BLOCK_BYTES: usize = 1 << 20;
/// Longer rows are refused: the file is binary, or a quote is not closed.
const MAX_ROW_BYTES: usize = 16 << 20;

impl LineBlocks {
    pub(super) fn new(input: TextInput, row_end: RowEnd) -> LineBlocks {
        LineBlocks { input, row_end, carried: Vec::new(), ended: false, failure: None }
    }

    /// The first rows, and the input with these rows put back.
    pub(super) fn first_rows(input: TextInput, row_end: RowEnd) -> Result<(Vec<u8>, TextInput)> {
        let mut blocks = LineBlocks::new(input, row_end);
        let mut block = Vec::new();
        blocks.next(&mut block)?;
        let LineBlocks { mut input, carried, failure, .. } = blocks;
        input.put_back([block.as_slice(), &carried].concat(), failure);
        input.check_encoding(&block)?;
        Ok((block, input))
    }

    /// The number of bytes consumed since the start of reading.
    pub(super) fn n_consumed(&self) -> u64 {
        self.input.n_consumed()
    }

    /// Fills `block` with the next rows; false at the end. A failure is returned after all rows before it; the line of an
    /// unclosed quote is counted from the start of the block.
    pub(super) fn next(&mut self, block: &mut Vec<u8>) -> Result<bool> {
        block.clear();
        std::mem::swap(block, &mut self.carried);
        let mut size = BLOCK_BYTES.max(block.len() + 1);
        while !self.ended {
            self.ended = self.input.fill(block, size);
            if self.ended {
                self.end(block)?;
                break;
            }
            let rows = whole_rows(block, self.row_end);
            if let Some(end) = rows.end {
                self.carried.extend_from_slice(&block[end..]);
                block.truncate(end);
                break;
            }
            if block.len() >= MAX_ROW_BYTES {
                return Err(self.endless(block, rows.open_quote));
            }
            size = block.len() * 2;
        }
        if block.is_empty() { self.failure.take().map_or(Ok(false), Err) } else { Ok(true) }
    }

    /// Ends the last block: its last row needs no line break, unless reading failed in the middle of it.
    fn end(&mut self, block: &mut Vec<u8>) -> Result<()> {
        self.failure = self.input.take_failure();
        let rows = whole_rows(block, self.row_end);
        match (&self.failure, rows.open_quote) {
            (Some(_), _) => block.truncate(rows.end.unwrap_or(0)),
            (None, Some(quote)) => return Err(self.unclosed(block, quote, "the end of the file")),
            (None, None) => {}
        }
        Ok(())
    }

    fn endless(&self, block: &[u8], open_quote: Option<usize>) -> DataError {
        if let Some(quote) = open_quote {
            return self.unclosed(block, quote, "none within 16 MiB, where reading stopped");
        }
        let start = String::from_utf8_lossy(&block[..40]).into_owned();
        let expected = format!("rows of at most {MAX_ROW_BYTES} bytes");
        let place = format!("the row that starts with {start:?}");
        DataError::malformed(self.input.path(), place, expected, "a longer one")
    }

    fn unclosed(&self, block: &[u8], quote: usize, found: &'static str) -> DataError {
        let n_before = memchr::memchr_iter(b'\n', &block[..quote]).count();
        let lost = &block[memchr::memrchr(b'\n', &block[..quote]).map_or(0, |end| end + 1)..];
        let n_lines = memchr::memchr_iter(b'\n', lost).count() + usize::from(!lost.ends_with(b"\n"));
        DataError::UnclosedQuote {
            path: self.input.path().to_path_buf(),
            line: n_before as u64 + 1,
            found,
            n_lines: n_lines as u64,
            n_bytes: lost.len() as u64,
        }
    }
}

/// The extent of the complete rows of a block.
#[derive(Debug, PartialEq)]
struct CompleteRows {
    /// The end of the last complete row, if there is one.
    end: Option<usize>,
    /// A quote after it that is not closed within the block.
    open_quote: Option<usize>,
}

fn whole_rows(block: &[u8], row_end: RowEnd) -> CompleteRows {
    match row_end {
        RowEnd::Line => {
            CompleteRows { end: memchr::memrchr(b'\n', block).map(|at| at + 1), open_quote: None }
        }
        RowEnd::UnquotedLine { delimiter } => whole_quoted_rows(block, delimiter),
    }
}

/// Searches from quote to quote. A quote opens only at the start of a field; inside, `""` stands for one quote.
fn whole_quoted_rows(block: &[u8], delimiter: u8) -> CompleteRows {
    let mut end = None;
    let mut position = 0;
    loop {
        let open = memchr::memchr(b'"', &block[position..]).map_or(block.len(), |at| position + at);
        if let Some(line_end) = memchr::memrchr(b'\n', &block[position..open]) {
            end = Some(position + line_end + 1);
        }
        if open == block.len() {
            return CompleteRows { end, open_quote: None };
        }
        position = open + 1;
        if !opens_field(block, open, delimiter) {
            continue;
        }
        match closing_quote(block, position) {
            Some(close) => position = close + 1,
            None => return CompleteRows { end, open_quote: Some(open) },
        }
    }
}

/// The start of the first row at or after `from`; the length of `block` if there is none. `block` consists of complete rows.
pub(super) fn row_start(block: &[u8], from: usize, row_end: RowEnd) -> usize {
    if from == 0 || from >= block.len() {
        return from.min(block.len());
    }
    let line_start = |position: usize, end: usize| {
        let first = position.max(from - 1);
        memchr::memchr(b'\n', block.get(first..end)?).map(|at| first + at + 1)
    };
    let RowEnd::UnquotedLine { delimiter } = row_end else {
        return line_start(0, block.len()).unwrap_or(block.len());
    };
    let mut position = 0;
    loop {
        let open = memchr::memchr(b'"', &block[position..]).map_or(block.len(), |at| position + at);
        if let Some(start) = line_start(position, open) {
            return start;
        }
        if open == block.len() {
            return block.len();
        }
        position = open + 1;
        if opens_field(block, open, delimiter) {
            position = closing_quote(block, position).map_or(block.len(), |close| close + 1);
        }
    }
}

fn opens_field(block: &[u8], quote: usize, delimiter: u8) -> bool {
    quote == 0 || [delimiter, b'\n', b'\r'].contains(&block[quote - 1])
}

/// The quote that closes the field whose text starts at `position`.
fn closing_quote(block: &[u8], mut position: usize) -> Option<usize> {
    loop {
        let close = position + memchr::memchr(b'"', &block[position..])?;
        if block.get(close + 1) != Some(&b'"') {
            return Some(close);
        }
        position = close + 2;
    }
}

/// The line of an unclosed quote in a small CSV file.
pub(super) fn unclosed_quote(text: &str) -> Option<usize> {
    let quote = whole_quoted_rows(text.as_bytes(), b',').open_quote?;
    Some(text[..quote].matches('\n').count() + 1)
}

/// The first quote of a row that opens a field and is closed in the middle of another field: most likely the closing quote is
/// missing, and the field contains the lines between them.
pub(super) fn misclosed_quote(row: &[u8], delimiter: u8) -> Option<usize> {
    let mut position = 0;
    loop {
        let open = position + memchr::memchr(b'"', row.get(position..)?)?;
        position = open + 1;
        if !opens_field(row, open, delimiter) {
            continue;
        }
        let close = closing_quote(row, position)?;
        match row.get(close + 1) {
            None => return None,
            Some(&after) if [delimiter, b'\n', b'\r'].contains(&after) => position = close + 1,
            Some(_) => return Some(open),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(block: &str, expected: Option<&str>) {
        let rows = whole_rows(block.as_bytes(), RowEnd::UnquotedLine { delimiter: b',' });
        assert_eq!(rows.end.map(|end| &block[..end]), expected, "{block:?}");
    }

    fn open(path: &std::path::Path, row_end: RowEnd) -> LineBlocks {
        LineBlocks::new(TextInput::open(path).unwrap(), row_end)
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
        let mut blocks = open(&path, RowEnd::Line);
        let mut block = Vec::new();
        let mut all = Vec::new();
        let mut n_blocks = 0;
        while blocks.next(&mut block).unwrap() {
            all.extend_from_slice(&block);
            assert!(block.ends_with(b"\n") || all.len() == text.len());
            n_blocks += 1;
        }
        assert!(all == text.as_bytes() && n_blocks > 2);
        assert_eq!(blocks.n_consumed(), text.len() as u64);
    }

    #[test]
    fn a_row_that_is_too_long_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("binary");
        std::fs::write(&path, vec![b'z'; MAX_ROW_BYTES + 1]).unwrap();
        let error = open(&path, RowEnd::Line).next(&mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("binary`: the row that starts with \"zzz"), "{error}");
    }

    #[test]
    fn an_unclosed_quote_is_named_with_its_line_and_the_lines_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        let row_end = RowEnd::UnquotedLine { delimiter: b',' };
        std::fs::write(&path, "id,title\n1,\"two\nlines\"\n2,\"open\n3,c\n4,d").unwrap();
        let error = open(&path, row_end).next(&mut Vec::new()).unwrap_err().to_string();
        let message = "a.csv`: line 4: expected a closing quote for the one that opens here, found the end of the \
                       file: 3 lines (15 bytes) not read";
        assert!(error.ends_with(message), "{error}");
        let rows = "1,x\n".repeat(MAX_ROW_BYTES / 4);
        std::fs::write(&path, format!("id,title\n1,\"open\n{rows}\"\n")).unwrap();
        let mut blocks = open(&path, row_end);
        assert!(blocks.next(&mut Vec::new()).unwrap());
        let error = blocks.next(&mut Vec::new()).unwrap_err().to_string();
        assert!(error.contains("found none within 16 MiB, where reading stopped"), "{error}");
    }

    #[test]
    fn a_quote_that_the_next_quoted_field_closes_is_noticed() {
        let check =
            |row: &str, expected| assert_eq!(misclosed_quote(row.as_bytes(), b','), expected, "{row:?}");
        check("1,\"two\nlines\",x", None);
        check("1,\"say \"\"hi\"\"\n\"", None);
        check("1,6\" nail,\"x\"", None);
        check("1,\"open\n2,\"closed\"", Some(2));
    }
}
