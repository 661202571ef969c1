//! Reads, works and collects at the same time, with only a few blocks in memory.
//!
//! One thread reads and decompresses, as many as rayon has work on blocks, and the caller's thread takes the results in
//! the order of the input: what it sees does not depend on how the threads were scheduled.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use labelsieve_files::storage::input::open_seekable;
use labelsieve_files::{DataError, ForeignEncoding, Result, Unread};

use super::compression::TextInput;
use super::extent::{ExtentBlocks, Passage};
use super::layout::Layout;
use super::line_blocks::RowEnd;
use super::rows::{BadRow, Position, RowSink, Tally};
use super::source::{Cuts, Kept, TextFile, TextSource};
use super::{delimited, json_lines, parquet_rows, yfcc};

/// What to do with a row that breaks its format, and with a damaged file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnBadRow {
    /// Count it and continue; with the next file if the rest of one cannot be read.
    Skip,
    /// Stop with an error that names it.
    Stop,
}

/// A file of which a part could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedFile {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub message: String,
    /// What was not read.
    pub unread: Unread,
}

impl DamagedFile {
    /// `None` for an error that is not damage: a wrong argument, a file that may not be read. `unread` counts unless
    /// the error knows better.
    pub(super) fn from_error(error: &DataError, unread: Unread) -> Option<DamagedFile> {
        match error {
            DataError::Damaged { path, message, unread } => {
                Some(DamagedFile { path: path.clone(), message: message.clone(), unread: *unread })
            }
            DataError::Undecodable { path, message, .. } => {
                Some(DamagedFile { path: path.clone(), message: message.clone(), unread })
            }
            _ => None,
        }
    }

    fn into_error(self) -> DataError {
        DataError::Damaged { path: self.path, message: self.message, unread: self.unread }
    }
}

/// Counts for all files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanSummary {
    /// Files that were read or should have been.
    pub n_files: usize,
    /// Rows that were handed on.
    pub n_rows: u64,
    /// Rows that the format says to skip: videos, failed downloads.
    pub n_skipped: u64,
    /// Rows that break their format.
    pub n_bad: u64,
    /// The first few of those, with their files.
    pub first_bad: Vec<(PathBuf, BadRow)>,
    /// Lines that a quote made part of a malformed row, beyond the first line of that row.
    pub n_swallowed: u64,
    /// Files with rows that are not UTF-8, and the encoding these seem to have.
    pub foreign: Vec<(PathBuf, ForeignEncoding)>,
    /// Files of which a part could not be read.
    pub damaged: Vec<DamagedFile>,
}

/// How far a scan has come.
#[derive(Clone, Copy, Debug)]
pub struct ScanProgress {
    /// Bytes of the files read so far, of [`TextSource::n_bytes`] where that is known.
    pub n_bytes: u64,
    /// Rows read so far.
    pub n_rows: u64,
}

/// Hands every row of `source` to sinks, one for each thread, and what `finish` takes out of a sink after each block to
/// `collect`, in input order.
pub fn scan<S: RowSink, O: Send>(
    source: &TextSource,
    on_bad_row: OnBadRow,
    new_sink: impl Fn() -> S + Sync,
    finish: impl Fn(&mut S) -> O + Sync,
    mut collect: impl FnMut(O, ScanProgress) -> Result<()>,
) -> Result<ScanSummary> {
    let mut summary =
        Summariser { source, on_bad_row, file: 0, n_before: 0, summary: ScanSummary::default() };
    summary.summary.n_files = source.files.len() + source.damaged.len();
    source.damaged.iter().try_for_each(|aside| summary.add_damaged(aside.file.clone()))?;
    let n_workers = rayon::current_num_threads();
    // Workers answer through a channel of their own block; the caller waits for the blocks in the order of reading.
    let (job_sender, jobs) = sync_channel::<Job<O>>(n_workers);
    let (answer_sender, answers) = sync_channel::<Reading<O>>(2 * n_workers);
    let (used_sender, used) = sync_channel::<Vec<u8>>(4 * n_workers);
    let jobs = Arc::new(Mutex::new(jobs)); // owned by the workers alone: when all are gone, the reader notices
    std::thread::scope(|threads| {
        threads.spawn(|| read_blocks(source, used, job_sender, answer_sender));
        for _ in 0..n_workers {
            let used_sender = used_sender.clone();
            let jobs = jobs.clone();
            let new_sink = &new_sink;
            let finish = &finish;
            threads.spawn(move || work(source, &jobs, new_sink(), finish, used_sender));
        }
        drop(jobs);
        for reading in answers {
            let Pending { file, n_bytes, answer } = match reading {
                Reading::Block(pending) => pending,
                Reading::Failed { file, failure } => {
                    summary.fail(file, failure)?;
                    continue;
                }
            };
            let Ok(Answer { output, tally, n_lines }) = answer.recv() else {
                break; // the worker panicked; leaving the scope passes the panic on
            };
            summary.add(file, tally, n_lines)?;
            collect(output, ScanProgress { n_bytes, n_rows: summary.summary.n_rows })?;
        }
        Ok(summary.summary)
    })
}

struct Block {
    /// Counted over all files.
    number: u64,
    file: usize,
    payload: Payload,
}

enum Payload {
    Lines(Vec<u8>, Passage),
    /// With the position of the first row.
    Rows(RecordBatch, u64),
}

struct Job<O> {
    block: Block,
    answer: SyncSender<Answer<O>>,
}

struct Answer<O> {
    output: O,
    tally: Tally,
    /// Lines in the block, good or bad.
    n_lines: u64,
}

/// What the reading thread reports, in input order.
enum Reading<O> {
    Block(Pending<O>),
    /// The rest of a file cannot be read.
    Failed {
        file: usize,
        failure: Failure,
    },
}

/// Why reading a file stopped early, and what was not read if that is damage.
struct Failure {
    error: Box<DataError>,
    unread: Unread,
}

impl From<DataError> for Failure {
    fn from(error: DataError) -> Failure {
        Failure { error: Box::new(error), unread: Unread::Rest }
    }
}

struct Pending<O> {
    file: usize,
    n_bytes: u64,
    answer: Receiver<Answer<O>>,
}

/// The reading thread. Ends early when its blocks are no longer wanted.
fn read_blocks<O>(
    source: &TextSource,
    used: Receiver<Vec<u8>>,
    jobs: SyncSender<Job<O>>,
    answers: SyncSender<Reading<O>>,
) {
    let mut n_bytes_before = 0;
    let mut n_blocks = 0;
    for (file, text_file) in source.files.iter().enumerate() {
        let mut n_bytes_read = 0;
        let n_to_read = text_file.n_to_read();
        let mut send = |payload, n_bytes: u64| {
            let (sender, answer) = sync_channel(1);
            let block = Block { number: n_blocks, file, payload };
            n_blocks += 1;
            n_bytes_read = n_to_read.map_or(n_bytes, |most| n_bytes.min(most));
            let pending = Pending { file, n_bytes: n_bytes_before + n_bytes_read, answer };
            answers.send(Reading::Block(pending)).is_ok() && jobs.send(Job { block, answer: sender }).is_ok()
        };
        match read_file(text_file, &used, &mut send) {
            Ok(Flow::Ended) => {}
            Ok(Flow::Unwanted) => return,
            Err(failure) => {
                // The caller hangs up unless this is damage to be skipped.
                if answers.send(Reading::Failed { file, failure }).is_err() {
                    return;
                }
            }
        }
        n_bytes_before += n_to_read.unwrap_or(n_bytes_read);
    }
}

enum Flow {
    Ended,
    Unwanted,
}

fn read_file(
    file: &TextFile,
    used: &Receiver<Vec<u8>>,
    send: &mut impl FnMut(Payload, u64) -> bool,
) -> std::result::Result<Flow, Failure> {
    let row_end = match &file.layout {
        Layout::Parquet(columns) => return read_batches(file, columns, send),
        Layout::Delimited(fields) => fields.dialect.row_end(),
        Layout::Yfcc(_) | Layout::JsonLines(_) => RowEnd::Line,
    };
    let mut blocks = open_text(file, row_end)?;
    loop {
        let mut block = used.try_recv().unwrap_or_default();
        let Some(passage) = blocks.next(&mut block)? else { return Ok(Flow::Ended) };
        if !send(Payload::Lines(block, passage), blocks.n_consumed()) {
            return Ok(Flow::Unwanted);
        }
    }
}

fn open_text(file: &TextFile, row_end: RowEnd) -> Result<ExtentBlocks> {
    match (&file.kept, file.cuts) {
        (Kept::Stream(stream), _) => {
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
) -> std::result::Result<Flow, Failure> {
    let bytes = match &file.kept {
        Kept::Copy(copy) => copy.try_clone().map_err(DataError::io("read", &file.path))?,
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
            return Ok(Flow::Unwanted);
        }
    }
    let unread = Unread::Rows { n: of.saturating_sub(n_read), of };
    damage.map_or(Ok(Flow::Ended), |error| Err(Failure { error: Box::new(error), unread }))
}

/// A working thread.
fn work<S: RowSink, O>(
    source: &TextSource,
    jobs: &Mutex<Receiver<Job<O>>>,
    mut sink: S,
    finish: impl Fn(&mut S) -> O,
    used: SyncSender<Vec<u8>>,
) {
    loop {
        let job = jobs.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).recv();
        let Ok(Job { block, answer }) = job else { return };
        let mut tally = Tally::default();
        sink.start_block(block.number);
        let n_lines = read_block(&source.files[block.file].layout, &block, &mut sink, &mut tally);
        // A failed send means that the caller stopped early; the reader will find out too.
        let _ = answer.send(Answer { output: finish(&mut sink), tally, n_lines });
        if let Payload::Lines(bytes, _) = block.payload {
            let _ = used.try_send(bytes);
        }
    }
}

/// Returns the number of lines.
fn read_block(layout: &Layout, block: &Block, sink: &mut impl RowSink, tally: &mut Tally) -> u64 {
    match (layout, &block.payload) {
        (Layout::Parquet(columns), Payload::Rows(batch, _)) => {
            parquet_rows::read_batch(batch, columns, sink, tally);
        }
        (_, Payload::Lines(_, Passage::Before)) => {}
        (Layout::Yfcc(columns), Payload::Lines(bytes, _)) => yfcc::read_block(bytes, columns, sink, tally),
        (Layout::JsonLines(keys), Payload::Lines(bytes, _)) => {
            json_lines::read_block(bytes, keys, sink, tally);
        }
        (Layout::Delimited(fields), Payload::Lines(bytes, passage)) => {
            let n_header_rows = usize::from(*passage == Passage::First);
            delimited::read_block(bytes, n_header_rows, fields, sink, tally);
        }
        _ => unreachable!("`read_file` makes the payload that the layout reads"),
    }
    tally.first_bad.iter_mut().for_each(|bad| bad.position = in_file(bad.position, &block.payload));
    match &block.payload {
        Payload::Lines(bytes, _) => memchr::memchr_iter(b'\n', bytes).count() as u64,
        Payload::Rows(..) => 0,
    }
}

/// Where a row of the block is in the file, unless the lines before have to be counted for that.
fn in_file(position: Position, payload: &Payload) -> Position {
    match (position, payload) {
        (Position::Row(row), Payload::Rows(_, first)) => Position::Row(first + row),
        (Position::Line(line), Payload::Lines(bytes, Passage::At(first))) => {
            let mut breaks = memchr::memchr_iter(b'\n', bytes);
            let start = line.checked_sub(2).and_then(|n| breaks.nth(n as usize));
            Position::Byte(first + start.map_or(0, |at| at as u64 + 1))
        }
        _ => position,
    }
}

/// Adds up blocks in input order, which is where line numbers of the whole file become known.
struct Summariser<'a> {
    source: &'a TextSource,
    on_bad_row: OnBadRow,
    file: usize,
    n_before: u64,
    summary: ScanSummary,
}

impl Summariser<'_> {
    fn add(&mut self, file: usize, tally: Tally, n_lines: u64) -> Result<()> {
        if file != self.file {
            (self.file, self.n_before) = (file, 0);
        }
        let TextFile { path, .. } = &self.source.files[file];
        for mut bad in tally.first_bad {
            if let Position::Line(line) = &mut bad.position {
                *line += self.n_before;
            }
            if self.on_bad_row == OnBadRow::Stop {
                let place = bad.position.to_string();
                return Err(match bad.encoding {
                    Some(encoding) => DataError::Encoding { path: path.clone(), place, encoding },
                    None => DataError::malformed(path, place, bad.expected, bad.found),
                });
            }
            if self.summary.first_bad.len() < Tally::SHOWN {
                self.summary.first_bad.push((path.clone(), bad));
            }
        }
        self.n_before += n_lines;
        self.summary.n_rows += tally.n_rows;
        self.summary.n_skipped += tally.n_skipped;
        self.summary.n_bad += tally.n_bad;
        self.summary.n_swallowed += tally.n_swallowed;
        if let Some(encoding) = tally.encoding {
            match self.summary.foreign.iter_mut().find(|(foreign, _)| foreign == path) {
                Some((_, seen)) => *seen = encoding.max(*seen),
                None => self.summary.foreign.push((path.clone(), encoding)),
            }
        }
        Ok(())
    }

    /// Reading a file stopped early. Damage is recorded; anything else ends the scan.
    fn fail(&mut self, file: usize, Failure { mut error, unread }: Failure) -> Result<()> {
        if let DataError::UnclosedQuote { line, .. } = error.as_mut() {
            *line += if file == self.file { self.n_before } else { 0 };
        }
        match DamagedFile::from_error(&error, unread) {
            Some(file) => self.add_damaged(file),
            None => Err(*error),
        }
    }

    fn add_damaged(&mut self, file: DamagedFile) -> Result<()> {
        if self.on_bad_row == OnBadRow::Stop {
            return Err(file.into_error());
        }
        self.summary.damaged.push(file);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::tests::Notes;
    use super::super::{KeptValues, TextColumns};
    use super::*;

    fn scan_csv(text: &str, on_bad_row: OnBadRow) -> Result<(Vec<String>, ScanSummary)> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        std::fs::write(&path, text).unwrap();
        let source = TextSource::open(&[path.clone(), path], &TextColumns::default()).unwrap();
        let mut rows = Vec::new();
        let take = |notes: &mut Notes| std::mem::take(&mut notes.rows);
        let summary = scan(&source, on_bad_row, Notes::default, take, |block, _| {
            rows.extend(block);
            Ok(())
        })?;
        Ok((rows, summary))
    }

    /// Several blocks, with one bad row.
    fn long_text() -> String {
        let row = |i| if i == 100_000 { "bad\n".to_string() } else { format!("{i},\"two\nlines\"\n") };
        "id,title\n".to_string() + &(0..200_000).map(row).collect::<String>()
    }

    #[test]
    fn rows_come_in_input_order_and_bad_ones_with_their_line() {
        let (rows, summary) = scan_csv(&long_text(), OnBadRow::Skip).unwrap();
        assert_eq!((rows.len(), summary.n_rows, summary.n_bad), (399_998, 399_998, 2));
        let numbers = rows.iter().map(|row| row.split(':').next().unwrap().parse::<u32>().unwrap());
        assert!(numbers.eq((0..200_000).chain(0..200_000).filter(|&i| i != 100_000)));
        let lines: Vec<Position> = summary.first_bad.iter().map(|(_, bad)| bad.position).collect();
        assert_eq!(lines, [Position::Line(200_002); 2]); // each row before it has two lines, and the header one
    }

    #[test]
    fn a_strict_scan_stops_with_the_line() {
        let error = scan_csv(&long_text(), OnBadRow::Stop).unwrap_err().to_string();
        assert!(
            error.ends_with("a.csv`: line 200002: expected 2 fields, as in the header, found 1"),
            "{error}"
        );
    }

    #[test]
    fn a_panic_in_a_sink_ends_the_scan() {
        struct Panics;
        impl RowSink for Panics {
            fn text(&mut self, _: usize, _: &str, _: crate::names::TextEncoding) {}
            fn end_row(&mut self, _: &str, _: &KeptValues<'_>) {
                panic!("as asked");
            }
            fn forget_row(&mut self) {}
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        std::fs::write(&path, long_text().repeat(4)).unwrap();
        let source = TextSource::open(&[path], &TextColumns::default()).unwrap();
        let result =
            std::panic::catch_unwind(|| scan(&source, OnBadRow::Skip, || Panics, |_| (), |(), _| Ok(())));
        assert!(result.is_err());
    }
}
