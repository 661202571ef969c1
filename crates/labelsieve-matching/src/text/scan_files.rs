//! Reading one file in blocks of rows.

use std::sync::mpsc::Receiver;

use arrow_array::RecordBatch;
use labelsieve_files::storage::input::open_seekable;
use labelsieve_files::{DataError, Result, Unread};

use super::compression::TextInput;
use super::extent::{BlockPosition, ExtentBlocks};
use super::layout::Layout;
use super::line_blocks::RowEnd;
use super::parquet_rows;
use super::scan_summary::DamagedFile;
use super::source::{Cuts, FileHandle, TextFile};

/// Rows to parse.
pub(super) enum Payload {
    /// Lines of text, with their position in the file.
    Lines(Vec<u8>, BlockPosition),
    /// Rows of Parquet, with the index of the first.
    Rows(RecordBatch, u64),
}

/// The error at which reading a file stopped, and the part that was not read if it is damage.
pub(super) struct Failure {
    pub(super) error: Box<DataError>,
    pub(super) unread: Unread,
}

impl From<DataError> for Failure {
    fn from(error: DataError) -> Failure {
        Failure { error: Box::new(error), unread: Unread::Rest }
    }
}

/// How reading a file ended.
pub(super) enum ReadEnd {
    /// At the end of the file.
    Complete,
    /// Early, since no more blocks are wanted.
    Cancelled,
}

/// Reads a file in blocks; `send` gets each with the number of bytes read so far, and returns whether more are wanted.
pub(super) fn read_file(
    file: &TextFile,
    used: &Receiver<Vec<u8>>,
    send: &mut impl FnMut(Payload, u64) -> bool,
) -> std::result::Result<ReadEnd, Failure> {
    let row_end = match &file.layout {
        Layout::Parquet(columns) => return read_batches(file, columns, send),
        Layout::Delimited(fields) => fields.dialect.row_end(),
        Layout::Yfcc(_) | Layout::JsonLines(_) => RowEnd::Line,
    };
    let mut blocks = open_text(file, row_end)?;
    loop {
        let mut block = used.try_recv().unwrap_or_default();
        let Some(position) = blocks.next(&mut block)? else { return Ok(ReadEnd::Complete) };
        if !send(Payload::Lines(block, position), blocks.n_consumed()) {
            return Ok(ReadEnd::Cancelled);
        }
    }
}

fn open_text(file: &TextFile, row_end: RowEnd) -> Result<ExtentBlocks> {
    match (&file.handle, file.cuts) {
        (FileHandle::Stream(stream), _) => {
            let stream = stream.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
            let stream = stream.ok_or_else(|| DataError::ReadTwice { path: file.path.clone() })?;
            Ok(ExtentBlocks::whole(stream, row_end))
        }
        (_, Cuts::Lines { .. }) => ExtentBlocks::open(&file.path, row_end, file.extent.clone()),
        _ => Ok(ExtentBlocks::whole(TextInput::open(&file.path)?, row_end)),
    }
}

fn read_batches(
    file: &TextFile,
    columns: &parquet_rows::Columns,
    send: &mut impl FnMut(Payload, u64) -> bool,
) -> std::result::Result<ReadEnd, Failure> {
    let bytes = match &file.handle {
        FileHandle::Copy(copy) => copy.try_clone().map_err(DataError::io("read", &file.path))?,
        _ => open_seekable(&file.path)?,
    };
    let mut batches = parquet_rows::Batches::open(&file.path, bytes, columns, &file.extent)?;
    let of = batches.claimed_rows();
    let mut n_read = 0;
    let mut damage = None;
    loop {
        let (first_row, batch) = match batches.next() {
            Ok(Some(batch)) => batch,
            Ok(None) => break,
            Err(error) if DamagedFile::from_error(&error, Unread::Rest).is_some() => {
                damage.get_or_insert(error);
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        n_read += batch.num_rows() as u64;
        let fraction = n_read as f64 / of.max(1) as f64;
        let n_bytes = file.n_to_read().unwrap_or(0) as f64 * fraction;
        if !send(Payload::Rows(batch, first_row), n_bytes as u64) {
            return Ok(ReadEnd::Cancelled);
        }
    }
    let unread = Unread::Rows { n: of.saturating_sub(n_read), of };
    damage.map_or(Ok(ReadEnd::Complete), |error| Err(Failure { error: Box::new(error), unread }))
}
