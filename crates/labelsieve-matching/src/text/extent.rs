//! Reading the rows of a text file that begin within a range of bytes.

use std::ops::Range;
use std::path::Path;

use labelsieve_files::Result;

use super::compression::TextInput;
use super::line_blocks::{LineBlocks, RowEnd, row_start};

/// Cuts the rows that begin within a range of bytes into blocks.
///
/// If every line break ends a row, reading starts in the middle of the file. If line breaks may be quoted, only the start of the
/// file is known to be the start of a row: the rows before the range are read and skipped.
pub(super) struct ExtentBlocks {
    blocks: LineBlocks,
    row_end: RowEnd,
    extent: Range<u64>,
    /// The start of the next row.
    position: u64,
    /// The rows within the range of a block that begins before it.
    pending: Option<Vec<u8>>,
    state: ReadState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ReadState {
    AtStart,
    AfterStart,
    /// Reading began in the middle of the file.
    Amid,
}

/// The position of a block in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockPosition {
    /// Rows before the range, which only count as lines.
    Before,
    /// The first rows of the file, after a header if it has one.
    First,
    /// Other rows.
    Rows,
    /// Rows after an unknown number of lines, with the offset of their first byte.
    At(u64),
}

impl ExtentBlocks {
    /// All rows of an input.
    pub(super) fn whole(input: TextInput, row_end: RowEnd) -> ExtentBlocks {
        ExtentBlocks::new(input, row_end, 0..u64::MAX)
    }

    /// The rows of a plain file that begin in `extent`. The first row, with the header, belongs to a range that starts at 0.
    pub(super) fn open(path: &Path, row_end: RowEnd, extent: Range<u64>) -> Result<ExtentBlocks> {
        if !seeks(row_end, &extent) {
            return Ok(ExtentBlocks::new(TextInput::open(path)?, row_end, extent));
        }
        // A row begins after a line break, which may be the last byte before the range.
        let mut input = TextInput::open_at(path, extent.start - 1)?;
        let position = extent.start - 1 + input.skip_line();
        let mut blocks = ExtentBlocks::new(input, row_end, extent);
        blocks.position = position;
        blocks.state = ReadState::Amid;
        Ok(blocks)
    }

    fn new(input: TextInput, row_end: RowEnd, extent: Range<u64>) -> ExtentBlocks {
        let position = input.n_mark();
        let blocks = LineBlocks::new(input, row_end);
        ExtentBlocks { blocks, row_end, extent, position, pending: None, state: ReadState::AtStart }
    }

    /// Fills `block` with the next rows; `None` when no more begin within the range.
    pub(super) fn next(&mut self, block: &mut Vec<u8>) -> Result<Option<BlockPosition>> {
        if self.position >= self.extent.end {
            return Ok(None);
        }
        match self.pending.take() {
            Some(pending) => *block = pending,
            None if self.blocks.next(block)? => {}
            None => return Ok(None),
        }
        let from_here = |place: u64| usize::try_from(place - self.position).unwrap_or(usize::MAX);
        if self.position < self.extent.start {
            let start = row_start(block, from_here(self.extent.start), self.row_end);
            self.pending = Some(block.split_off(start)).filter(|rows| !rows.is_empty());
            self.position += block.len() as u64;
            self.state = ReadState::AfterStart;
            return Ok(Some(BlockPosition::Before));
        }
        let position = match self.state {
            ReadState::AtStart => BlockPosition::First,
            ReadState::AfterStart => BlockPosition::Rows,
            ReadState::Amid => BlockPosition::At(self.position),
        };
        block.truncate(row_start(block, from_here(self.extent.end), self.row_end));
        self.position += block.len() as u64;
        if self.state == ReadState::AtStart {
            self.state = ReadState::AfterStart;
        }
        Ok(Some(position))
    }

    /// The number of bytes consumed so far, of [`n_to_read`].
    pub(super) fn n_consumed(&self) -> u64 {
        self.blocks.n_consumed()
    }
}

/// The number of bytes to read for the rows of a range.
pub(super) fn n_to_read(row_end: RowEnd, extent: &Range<u64>) -> u64 {
    if seeks(row_end, extent) { extent.end - extent.start } else { extent.end }
}

/// Whether the bytes before the range need not be read.
fn seeks(row_end: RowEnd, extent: &Range<u64>) -> bool {
    row_end == RowEnd::Line && extent.start > 0
}
