//! A log of finished work, so that a killed run can resume where it stopped.
//!
//! The file is an opening line and then records: key length and payload length (four bytes each, little-endian), the
//! CRC-32 of everything else in the record, key, payload. The first record holds the fingerprint of the run. Reading
//! stops at the first incomplete or damaged record; the rest is truncated and computed again. A journal that is dropped
//! before anything was finished deletes its file.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::{DataError, Result};

const OPENING: &[u8] = b"labelsieve journal 1\n";
const FINGERPRINT_KEY: &str = "fingerprint";
const PREFIX_LEN: usize = 12;

/// How a journal was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalStart {
    /// There was none, or an empty one.
    New,
    /// There was one with the same fingerprint; its records were returned.
    Resumed,
    /// There was one with another fingerprint; it was discarded.
    Replaced,
}

/// A key and the result that was computed for it.
pub type JournalRecord = (String, Vec<u8>);

/// An open journal, locked against other processes.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    start: JournalStart,
    tail: Mutex<Tail>,
    /// Whether the file contains finished work, so that it must not be deleted on drop.
    holds_work: AtomicBool,
}

/// The file and the end of its last whole record.
#[derive(Debug)]
struct Tail {
    file: File,
    end: u64,
}

impl Journal {
    /// Opens or starts the journal of a run, and returns the records of an earlier run with the same fingerprint.
    ///
    /// A file that is not a journal is refused, not overwritten.
    pub fn open(path: impl AsRef<Path>, fingerprint: &str) -> Result<(Journal, Vec<JournalRecord>)> {
        let mut records = Vec::new();
        let journal = Journal::open_by_record(path, fingerprint, |key, payload| {
            records.push((key.to_owned(), payload.to_vec()));
        })?;
        Ok((journal, records))
    }

    /// As [`Journal::open`], with one record in memory at a time: each is passed to `visit`.
    pub fn open_by_record(
        path: impl AsRef<Path>,
        fingerprint: &str,
        mut visit: impl FnMut(&str, &[u8]),
    ) -> Result<Journal> {
        let path = path.as_ref().to_path_buf();
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(DataError::io("open", &path))?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => DataError::InUse { path: path.clone() },
            TryLockError::Error(error) => DataError::io("lock", &path)(error),
        })?;
        let mut start = JournalStart::New;
        let mut n_records = 0;
        let end = read_records(&path, &file, |(key, payload)| {
            match start {
                JournalStart::New if key == FINGERPRINT_KEY && payload == fingerprint.as_bytes() => {
                    start = JournalStart::Resumed;
                }
                JournalStart::New => start = JournalStart::Replaced,
                JournalStart::Resumed => {
                    n_records += 1;
                    visit(&key, &payload);
                }
                JournalStart::Replaced => return ControlFlow::Break(()),
            }
            ControlFlow::Continue(())
        })?;
        let resumed = start == JournalStart::Resumed;
        let tail = Mutex::new(Tail { file, end: if resumed { end } else { 0 } });
        let holds_work = AtomicBool::new(n_records > 0);
        let journal = Journal { path, start, tail, holds_work };
        if resumed {
            journal.write(&[])?; // truncates an incomplete record
        } else {
            journal.write(OPENING)?;
            journal.write_record(FINGERPRINT_KEY, fingerprint.as_bytes())?;
        }
        Ok(journal)
    }

    /// Passes all records to `visit` in order, with one in memory at a time, until it breaks. `visit` must not append.
    pub fn for_each_record(&self, mut visit: impl FnMut(&str, &[u8]) -> ControlFlow<()>) -> Result<()> {
        // Through the handle that holds the lock: on Windows no other one can read.
        let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.file.seek(SeekFrom::Start(0)).map_err(DataError::io("read", &self.path))?;
        let mut is_first = true;
        read_records(&self.path, &tail.file, |(key, payload)| {
            if std::mem::replace(&mut is_first, false) {
                ControlFlow::Continue(()) // the fingerprint
            } else {
                visit(&key, &payload)
            }
        })?;
        Ok(())
    }

    /// How this journal was opened.
    pub fn start(&self) -> JournalStart {
        self.start
    }

    /// The number of records in a journal, by their lengths alone; another process may have it open. `None` for a file that
    /// is not a journal.
    pub fn count_records(path: impl AsRef<Path>) -> Option<usize> {
        let file = File::open(path).ok()?;
        let file_len = file.metadata().ok()?.len();
        let mut reader = BufReader::new(file);
        let mut opening = vec![0; OPENING.len()];
        reader.read_exact(&mut opening).ok()?;
        if opening != OPENING {
            return None;
        }
        let mut n = 0;
        let mut end = OPENING.len() as u64;
        let mut prefix = [0; PREFIX_LEN];
        while reader.read_exact(&mut prefix).is_ok() {
            let length =
                |at: usize| u32::from_le_bytes([prefix[at], prefix[at + 1], prefix[at + 2], prefix[at + 3]]);
            let record = u64::from(length(0)) + u64::from(length(4));
            end += PREFIX_LEN as u64 + record;
            if end > file_len || reader.seek_relative(record as i64).is_err() {
                break;
            }
            n += 1;
        }
        Some(usize::saturating_sub(n, 1)) // the first is the fingerprint
    }

    /// Records finished work. Once this returns, the record survives a kill of the process.
    pub fn append(&self, key: &str, payload: &[u8]) -> Result<()> {
        self.write_record(key, payload)?;
        self.holds_work.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn write_record(&self, key: &str, payload: &[u8]) -> Result<()> {
        let (Ok(key_len), Ok(payload_len)) = (u32::try_from(key.len()), u32::try_from(payload.len())) else {
            let found = format!("{} and {} bytes", key.len(), payload.len());
            return Err(DataError::malformed(&self.path, "record", "less than 4 GiB", found));
        };
        let mut lengths = [0; 8];
        lengths[..4].copy_from_slice(&key_len.to_le_bytes());
        lengths[4..].copy_from_slice(&payload_len.to_le_bytes());
        let checksum = checksum(&[&lengths, key.as_bytes(), payload]).to_le_bytes();
        self.write(&[&lengths, &checksum[..], key.as_bytes(), payload].concat())
    }

    /// Deletes the journal, once the final output has been written.
    pub fn remove(self) -> Result<()> {
        self.holds_work.store(true, Ordering::Relaxed); // or `drop` would delete it again
        std::fs::remove_file(&self.path).map_err(DataError::io("remove", &self.path))
    }

    /// Writes `bytes` after the last whole record and truncates the file there. The next write undoes a failed one.
    fn write(&self, bytes: &[u8]) -> Result<()> {
        let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let end = tail.end;
        let written = tail.file.set_len(end).and_then(|()| {
            tail.file.seek(SeekFrom::Start(end))?;
            tail.file.write_all(bytes)
        });
        written.map_err(DataError::io("write", &self.path))?;
        tail.end += bytes.len() as u64;
        Ok(())
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if !*self.holds_work.get_mut() {
            // A failure cannot be handled here, and an empty journal does no harm.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Passes all complete records to `visit`, until it breaks. Returns the end of the last one.
fn read_records(
    path: &Path,
    file: &File,
    mut visit: impl FnMut(JournalRecord) -> ControlFlow<()>,
) -> Result<u64> {
    let file_len = file.metadata().map_err(DataError::io("read", path))?.len();
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let mut opening = Vec::new();
    reader
        .by_ref()
        .take(OPENING.len() as u64)
        .read_to_end(&mut opening)
        .map_err(DataError::io("read", path))?;
    if !OPENING.starts_with(&opening) {
        return Err(DataError::NotAJournal { path: path.to_path_buf() });
    }
    let mut end = opening.len() as u64;
    while let Some(record) = read_record(&mut reader, file_len - end).map_err(DataError::io("read", path))? {
        end += (PREFIX_LEN + record.0.len() + record.1.len()) as u64;
        if visit(record).is_break() {
            break;
        }
    }
    Ok(end)
}

/// The next record, or `None` if the `remaining` bytes do not contain a complete, undamaged one.
fn read_record(reader: &mut impl Read, remaining: u64) -> std::io::Result<Option<JournalRecord>> {
    if remaining < PREFIX_LEN as u64 {
        return Ok(None);
    }
    let mut lengths = [0; 8];
    let mut expected = [0; 4];
    reader.read_exact(&mut lengths)?;
    reader.read_exact(&mut expected)?;
    let both = u64::from_le_bytes(lengths);
    let key_len = both & u64::from(u32::MAX);
    let payload_len = both >> 32;
    if key_len + payload_len > remaining - PREFIX_LEN as u64 {
        return Ok(None);
    }
    let mut key = vec![0; key_len as usize];
    let mut payload = vec![0; payload_len as usize];
    reader.read_exact(&mut key)?;
    reader.read_exact(&mut payload)?;
    if checksum(&[&lengths, &key, &payload]) != u32::from_le_bytes(expected) {
        return Ok(None);
    }
    Ok(String::from_utf8(key).ok().map(|key| (key, payload)))
}

fn checksum(parts: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &Path, fingerprint: &str) -> (JournalStart, Vec<JournalRecord>) {
        let (journal, records) = Journal::open(path, fingerprint).unwrap();
        (journal.start(), records)
    }

    fn record(key: &str, payload: &[u8]) -> JournalRecord {
        (key.to_owned(), payload.to_vec())
    }

    fn two_records(path: &Path) {
        let (journal, earlier) = Journal::open(path, "run 1").unwrap();
        assert_eq!((journal.start(), earlier), (JournalStart::New, vec![]));
        journal.append("owl", b"0.5").unwrap();
        journal.append("cat", b"").unwrap();
    }

    #[test]
    fn the_same_run_resumes_and_another_starts_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        two_records(&path);
        let both = vec![record("owl", b"0.5"), record("cat", b"")];
        assert_eq!(open(&path, "run 1"), (JournalStart::Resumed, both));
        let (journal, earlier) = Journal::open(&path, "run 2").unwrap();
        assert_eq!((journal.start(), earlier), (JournalStart::Replaced, vec![]));
        journal.append("owl", b"0.7").unwrap();
        drop(journal);
        assert_eq!(open(&path, "run 2"), (JournalStart::Resumed, vec![record("owl", b"0.7")]));
        Journal::open(&path, "run 2").unwrap().0.remove().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_run_that_finished_nothing_leaves_no_journal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        drop(Journal::open(&path, "run 1").unwrap());
        assert!(!path.exists());
        two_records(&path);
        drop(Journal::open(&path, "run 2").unwrap());
        assert!(!path.exists(), "a run with different settings cannot use it");
    }

    #[test]
    fn a_journal_cut_at_any_length_gives_its_whole_records_and_can_be_continued() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        two_records(&path);
        let whole = std::fs::read(&path).unwrap();
        let mut counts = Vec::new();
        for length in 0..=whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let (journal, earlier) = Journal::open(&path, "run 1").unwrap();
            assert!([record("owl", b"0.5"), record("cat", b"")].starts_with(&earlier));
            journal.append("dog", b"1").unwrap();
            counts.push(earlier.len());
            drop(journal);
            assert_eq!(open(&path, "run 1").1.len(), earlier.len() + 1);
        }
        assert!(counts.is_sorted());
        assert_eq!((counts[0], counts[whole.len()]), (0, 2));
    }

    #[test]
    fn a_damaged_record_ends_the_journal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        two_records(&path);
        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes.windows(3).position(|window| window == b"0.5").unwrap();
        bytes[at] = b'9';
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(open(&path, "run 1"), (JournalStart::Resumed, vec![]));
    }

    #[test]
    fn a_file_that_is_not_a_journal_is_left_alone() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "my thesis").unwrap();
        let error = Journal::open(file.path(), "run 1").unwrap_err().to_string();
        assert!(error.ends_with("` is not a journal of an earlier run"), "{error}");
        assert_eq!(std::fs::read(file.path()).unwrap(), b"my thesis");
    }

    #[test]
    fn finished_work_is_counted_while_the_journal_is_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        assert_eq!(Journal::count_records(&path), None);
        let (journal, _) = Journal::open(&path, "run 1").unwrap();
        assert_eq!(Journal::count_records(&path), Some(0));
        for n in 1..=3 {
            journal.append("owl", &vec![7; 100 * n]).unwrap();
            assert_eq!(Journal::count_records(&path), Some(n));
        }
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        assert_eq!(Journal::count_records(&path), Some(2));
        std::fs::write(&path, "my thesis, which is longer than an opening").unwrap();
        assert_eq!(Journal::count_records(&path), None);
    }

    #[test]
    fn a_second_run_on_the_same_journal_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        let (_held, _) = Journal::open(&path, "run 1").unwrap();
        let error = Journal::open(&path, "run 1").unwrap_err().to_string();
        assert_eq!(error, format!("another process is using `{}`", path.display()));
    }

    #[test]
    fn finished_work_can_be_read_again_record_by_record() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        two_records(&path);
        let mut seen = Vec::new();
        let journal =
            Journal::open_by_record(&path, "run 1", |key, payload| seen.push(record(key, payload))).unwrap();
        assert_eq!(seen, [record("owl", b"0.5"), record("cat", b"")]);
        journal.append("dog", b"1").unwrap();
        seen.clear();
        journal
            .for_each_record(|key, payload| {
                seen.push(record(key, payload));
                if key == "dog" { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
            .unwrap();
        assert_eq!(seen.last(), Some(&record("dog", b"1")));
        assert_eq!(seen.len(), 3);
    }

    #[test]
    fn many_threads_may_append() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        let (journal, _) = Journal::open(&path, "run 1").unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let journal = &journal;
                scope.spawn(move || {
                    (0..50).for_each(|i| journal.append(&format!("{thread}-{i}"), &[i; 100]).unwrap())
                });
            }
        });
        drop(journal);
        assert_eq!(open(&path, "run 1").1.len(), 200);
    }

    #[test]
    fn an_unwritable_path_is_named() {
        let error = Journal::open("/no/such/folder/j", "run 1").unwrap_err().to_string();
        assert!(error.starts_with("cannot open `/no/such/folder/j`"), "{error}");
    }
}
