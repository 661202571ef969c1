//! The threads of a scan: reading, parsing and collecting at the same time, with only a few blocks in memory.
//!
//! One thread reads and decompresses, as many as rayon has parse blocks, and the caller's thread collects the results in the
//! order of the input, so that they do not depend on the scheduling of threads.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use labelsieve_files::Result;

use super::extent::BlockPosition;
use super::layout::Layout;
use super::rows::{Position, RowSink, Tally};
use super::scan_files::{Failure, Payload, ReadEnd, read_file};
use super::scan_summary::{OnBadRow, ScanSummary, Summariser};
use super::source::TextSource;
use super::{delimited, json_lines, parquet_rows, yfcc};

/// The progress of a scan.
#[derive(Clone, Copy, Debug)]
pub struct ScanProgress {
    /// The number of bytes read so far, of [`TextSource::n_bytes`] if that is known.
    pub n_bytes: u64,
    /// The number of rows read so far.
    pub n_rows: u64,
}

/// Passes every row of `source` to sinks, one for each thread. After each block `finish` takes the output out of the sink, and
/// `collect` gets these outputs in input order.
pub fn scan<S: RowSink, O: Send>(
    source: &TextSource,
    on_bad_row: OnBadRow,
    new_sink: impl Fn() -> S + Sync,
    finish: impl Fn(&mut S) -> O + Sync,
    mut collect: impl FnMut(O, ScanProgress) -> Result<()>,
) -> Result<ScanSummary> {
    let mut summary = Summariser::new(source, on_bad_row)?;
    let n_workers = rayon::current_num_threads();
    // Workers answer through a channel of their own block; the caller waits for the blocks in the order of reading.
    let (job_sender, jobs) = sync_channel::<Job<O>>(n_workers);
    let (answer_sender, answers) = sync_channel::<ReadEvent<O>>(2 * n_workers);
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
        for event in answers {
            let PendingBlock { file, n_bytes, answer } = match event {
                ReadEvent::Block(pending) => pending,
                ReadEvent::Failed { file, failure } => {
                    summary.fail(file, failure)?;
                    continue;
                }
            };
            let Ok(Answer { output, tally, n_lines }) = answer.recv() else {
                break; // the worker panicked; leaving the scope passes the panic on
            };
            summary.add(file, tally, n_lines)?;
            collect(output, ScanProgress { n_bytes, n_rows: summary.n_rows() })?;
        }
        Ok(summary.finish())
    })
}

struct Block {
    /// Its index among the blocks of all files.
    number: u64,
    file: usize,
    payload: Payload,
}

struct Job<O> {
    block: Block,
    answer: SyncSender<Answer<O>>,
}

struct Answer<O> {
    output: O,
    tally: Tally,
    /// The number of lines in the block.
    n_lines: u64,
}

/// An event of the reading thread, in input order.
enum ReadEvent<O> {
    Block(PendingBlock<O>),
    /// The rest of a file cannot be read.
    Failed {
        file: usize,
        failure: Failure,
    },
}

/// A block whose answer is awaited.
struct PendingBlock<O> {
    file: usize,
    n_bytes: u64,
    answer: Receiver<Answer<O>>,
}

/// The reading thread. Ends early when no more blocks are wanted.
fn read_blocks<O>(
    source: &TextSource,
    used: Receiver<Vec<u8>>,
    jobs: SyncSender<Job<O>>,
    answers: SyncSender<ReadEvent<O>>,
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
            let pending = PendingBlock { file, n_bytes: n_bytes_before + n_bytes_read, answer };
            answers.send(ReadEvent::Block(pending)).is_ok()
                && jobs.send(Job { block, answer: sender }).is_ok()
        };
        match read_file(text_file, &used, &mut send) {
            Ok(ReadEnd::Complete) => {}
            Ok(ReadEnd::Cancelled) => return,
            Err(failure) => {
                // The caller hangs up unless this is damage to be skipped.
                if answers.send(ReadEvent::Failed { file, failure }).is_err() {
                    return;
                }
            }
        }
        n_bytes_before += n_to_read.unwrap_or(n_bytes_read);
    }
}

/// A parsing thread.
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
        (_, Payload::Lines(_, BlockPosition::Before)) => {}
        (Layout::Yfcc(columns), Payload::Lines(bytes, _)) => yfcc::read_block(bytes, columns, sink, tally),
        (Layout::JsonLines(keys), Payload::Lines(bytes, _)) => {
            json_lines::read_block(bytes, keys, sink, tally);
        }
        (Layout::Delimited(fields), Payload::Lines(bytes, position)) => {
            let n_header_rows = usize::from(*position == BlockPosition::First);
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

/// The position of a row of the block in the file, unless the lines before have to be counted for that.
fn in_file(position: Position, payload: &Payload) -> Position {
    match (position, payload) {
        (Position::Row(row), Payload::Rows(_, first)) => Position::Row(first + row),
        (Position::Line(line), Payload::Lines(bytes, BlockPosition::At(first))) => {
            let mut breaks = memchr::memchr_iter(b'\n', bytes);
            let start = line.checked_sub(2).and_then(|n| breaks.nth(n as usize));
            Position::Byte(first + start.map_or(0, |at| at as u64 + 1))
        }
        _ => position,
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
