//! The rows of a text file that begin within a range of its bytes.

use std::ops::Range;
use std::path::Path;

use labelsieve_files::Result;

use super::compression::TextInput;
use super::line_blocks::{LineBlocks, RowEnd, row_start};

/// Cuts the rows that begin within a range of bytes into blocks.
///
/// Where every line break ends a row, reading starts in the middle of the file. Where quotes may hide some, only the start of
/// the file is known to be the start of a row: the rows before the range are walked through.
pub(super) struct ExtentBlocks {
    blocks: LineBlocks,
    row_end: RowEnd,
    extent: Range<u64>,
    /// Where the next row begins.
    position: u64,
    /// The rows of the range in a block that begins before it.
    pending: Option<Vec<u8>>,
    progress: Progress,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    AtStart,
    AfterStart,
    /// Reading began in the middle of the file.
    Amid,
}

/// What a block is to its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passage {
    /// Rows before the range; they count as lines.
    Before,
    /// The first rows of the file, after a header if it has one.
    First,
    /// Other rows.
    Rows,
    /// Rows of which the lines before are not counted, with the place of their first byte.
    At(u64),
}

impl ExtentBlocks {
    /// All rows of an input.
    pub(super) fn whole(input: TextInput, row_end: RowEnd) -> ExtentBlocks {
        ExtentBlocks::new(input, row_end, 0..u64::MAX)
    }

    /// The rows of a plain file that begin in `extent`; the first ones belong to a range from 0.
    pub(super) fn open(path: &Path, row_end: RowEnd, extent: Range<u64>) -> Result<ExtentBlocks> {
        if !seeks(row_end, &extent) {
            return Ok(ExtentBlocks::new(TextInput::open(path)?, row_end, extent));
        }
        // A row begins after a line break; the one before the range may be that.
        let mut input = TextInput::open_at(path, extent.start - 1)?;
        let position = extent.start - 1 + input.skip_line();
        let mut blocks = ExtentBlocks::new(input, row_end, extent);
        (blocks.position, blocks.progress) = (position, Progress::Amid);
        Ok(blocks)
    }

    fn new(input: TextInput, row_end: RowEnd, extent: Range<u64>) -> ExtentBlocks {
        let position = input.n_mark();
        let blocks = LineBlocks::new(input, row_end);
        ExtentBlocks { blocks, row_end, extent, position, pending: None, progress: Progress::AtStart }
    }

    /// Fills `block` with the next rows; none when no more begin within the range.
    pub(super) fn next(&mut self, block: &mut Vec<u8>) -> Result<Option<Passage>> {
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
            self.progress = Progress::AfterStart;
            return Ok(Some(Passage::Before));
        }
        let passage = match self.progress {
            Progress::AtStart => Passage::First,
            Progress::AfterStart => Passage::Rows,
            Progress::Amid => Passage::At(self.position),
        };
        block.truncate(row_start(block, from_here(self.extent.end), self.row_end));
        self.position += block.len() as u64;
        if self.progress == Progress::AtStart {
            self.progress = Progress::AfterStart;
        }
        Ok(Some(passage))
    }

    /// Bytes taken from the file so far, of [`n_to_read`].
    pub(super) fn n_consumed(&self) -> u64 {
        self.blocks.n_consumed()
    }
}

/// How many bytes are read for the rows of a range.
pub(super) fn n_to_read(row_end: RowEnd, extent: &Range<u64>) -> u64 {
    if seeks(row_end, extent) { extent.end - extent.start } else { extent.end }
}

/// Whether what is before a range need not be read.
fn seeks(row_end: RowEnd, extent: &Range<u64>) -> bool {
    row_end == RowEnd::Line && extent.start > 0
}
