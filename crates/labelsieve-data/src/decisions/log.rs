//! The log of a review that is under way: `FILE.log` beside the table of decisions.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::table_file::{check_columns, read_table, write_table};
use super::{DecisionRow, DecisionTable, records};
use crate::locked_file::open_locked;
use crate::{DataError, Result, TableFormat};

/// Adds decisions to a table. Rows go to the end of `FILE.log` first, which is quick and safe, and into the table when the
/// log is closed. No other process can add to the same table meanwhile.
///
/// Dropped, it closes as well as it can; [`DecisionLog::close`] also says why not.
#[derive(Debug)]
pub struct DecisionLog {
    path: PathBuf,
    log_path: PathBuf,
    tail: Mutex<Tail>,
}

/// The file, the end of its last whole record, and what it holds.
#[derive(Debug)]
struct Tail {
    file: File,
    /// 0 for a log without rows, which has no beginning either.
    end: u64,
    unfolded: Unfolded,
    state: State,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    /// Nothing has been checked; the table is not ours to write.
    Opening,
    Open,
    /// The log was deleted, and its name may be somebody else's by now.
    Closed,
}

impl DecisionLog {
    /// Opens a table of decisions to add to it, and returns all that it holds, including what a killed review left in its
    /// log. Starts an empty table if there is none. The ending decides between Parquet, CSV and TSV.
    ///
    /// A table that another log has open is [`DataError::InUse`]. One with further columns is refused, since writing it
    /// again would lose them.
    pub fn open(path: impl AsRef<Path>) -> Result<(DecisionLog, DecisionTable)> {
        let path = path.as_ref().to_path_buf();
        TableFormat::of(&path)?;
        let log_path = log_path(&path);
        let mut file = open_locked(&log_path).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => DataError::InUse { path: path.clone() },
            _ => DataError::io("open", &log_path)(error),
        })?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(DataError::io("read", &log_path))?;
        let contents = records::read(&log_path, &bytes)?;
        let end = if contents.rows.is_empty() { 0 } else { contents.end };
        let unfolded = Unfolded::of(contents);
        let tail = Mutex::new(Tail { file, end, unfolded, state: State::Opening });
        let log = DecisionLog { path, log_path, tail };
        let rows = log.begin()?;
        let table = DecisionTable { path: log.path.clone(), rows };
        Ok((log, table))
    }

    /// The part of [`DecisionLog::open`] for which the table is locked.
    fn begin(&self) -> Result<Vec<DecisionRow>> {
        let mut tail = self.lock();
        if !self.path.exists() {
            write_table(&self.path, &[])?;
        }
        check_columns(&self.path)?;
        let table = read_table(&self.path)?;
        if tail.unfolded.rows.is_empty() {
            tail.unfolded.n_rows_in_table = table.len(); // which may have changed since the log was begun
        }
        self.write(&mut tail, &[])?; // truncates an incomplete record
        sync_folder(&self.log_path)?;
        tail.state = State::Open;
        Ok(tail.unfolded.clone().after(table))
    }

    /// Adds decisions. Once this returns, they survive a kill of the process and a power loss; after an error, earlier
    /// ones are whole and none of these was added.
    pub fn append(&self, rows: &[DecisionRow]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut tail = self.lock();
        let mut bytes = match tail.end {
            0 => records::start(&self.log_path, tail.unfolded.n_rows_in_table)?,
            _ => Vec::new(),
        };
        bytes.extend(records::rows(&self.log_path, rows)?);
        self.write(&mut tail, &bytes)?;
        tail.unfolded.rows.extend_from_slice(rows);
        Ok(())
    }

    /// Writes the table again, atomically, with all rows, and empties the log. A kill at any moment loses and doubles
    /// nothing. Rows that somebody else added to the table meanwhile are kept.
    fn fold(&self, tail: &mut Tail) -> Result<()> {
        if tail.unfolded.rows.is_empty() {
            return Ok(());
        }
        let table = if self.path.exists() { read_table(&self.path)? } else { Vec::new() };
        let rows = tail.unfolded.clone().after(table);
        // In place of what a symbolic link leads to, beside which the log is.
        let target = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        write_table(&target, &rows)?;
        sync_folder(&self.log_path)?; // the new table must be on disk under its name before the log loses its rows
        let end = std::mem::replace(&mut tail.end, 0);
        if let Err(error) = self.write(tail, &[]) {
            tail.end = end; // its rows are recognised as the table's
            return Err(error);
        }
        tail.unfolded = Unfolded { n_rows_in_table: rows.len(), rows: Vec::new() };
        Ok(())
    }

    /// Moves all rows into the table, and deletes the log. After an error the log is still there, and whoever reads the table reads it too.
    pub fn close(self) -> Result<()> {
        self.finish()
    }

    fn finish(&self) -> Result<()> {
        let mut tail = self.lock();
        match tail.state {
            State::Closed => return Ok(()),
            State::Opening if !tail.unfolded.rows.is_empty() => return Ok(()),
            State::Opening => (),
            State::Open => self.fold(&mut tail)?,
        }
        tail.state = State::Closed;
        std::fs::remove_file(&self.log_path).map_err(DataError::io("remove", &self.log_path))
    }

    fn lock(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes `bytes` after the last whole record, truncates the file there, and waits until they are on disk.
    fn write(&self, tail: &mut Tail, bytes: &[u8]) -> Result<()> {
        let end = tail.end;
        let written = tail.file.set_len(end).and_then(|()| {
            tail.file.seek(SeekFrom::Start(end))?;
            tail.file.write_all(bytes)?;
            tail.file.sync_all()
        });
        if written.is_err() {
            let _ = tail.file.set_len(end); // readers ignore what is left, and the next write removes it
        }
        written.map_err(DataError::io("write", &self.log_path))?;
        tail.end += bytes.len() as u64;
        Ok(())
    }
}

impl Drop for DecisionLog {
    fn drop(&mut self) {
        let _ = self.finish(); // on failure the log still has the rows
    }
}

/// The rows of a log, some or all of which may be in the table already: a kill may come between writing the table and
/// emptying the log.
#[derive(Clone, Debug, Default)]
pub(super) struct Unfolded {
    n_rows_in_table: usize,
    rows: Vec<DecisionRow>,
}

impl Unfolded {
    /// What is in the log beside `table`, if there is one.
    pub(super) fn read(table: &Path) -> Result<Unfolded> {
        let path = log_path(table);
        match path.exists() {
            true => Ok(Unfolded::of(records::read(&path, &read_bytes(&path)?)?)),
            false => Ok(Unfolded::default()),
        }
    }

    fn of(contents: records::Contents) -> Unfolded {
        Unfolded { n_rows_in_table: contents.n_rows_in_table.unwrap_or(0), rows: contents.rows }
    }

    /// All rows: those of the table, then those of the log that it does not have yet.
    pub(super) fn after(mut self, mut table: Vec<DecisionRow>) -> Vec<DecisionRow> {
        let since = table.get(self.n_rows_in_table..).unwrap_or_default();
        let n_common = since.len().min(self.rows.len());
        let n_folded = if since[..n_common] == self.rows[..n_common] { n_common } else { 0 };
        table.extend(self.rows.drain(n_folded..));
        table
    }
}

/// `FILE.log`, beside the file that a symbolic link leads to.
fn log_path(table: &Path) -> PathBuf {
    let mut path = table.canonicalize().unwrap_or_else(|_| table.to_path_buf()).into_os_string();
    path.push(".log");
    PathBuf::from(path)
}

/// Nothing for a log that was deleted meanwhile: its rows are in the table.
fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    match std::fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        other => other.map_err(DataError::io("read", path)),
    }
}

/// Waits until the names of a file's folder are on disk.
#[cfg(unix)]
fn sync_folder(file: &Path) -> Result<()> {
    let folder = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        // Some network file systems do not sync folders; they keep names safe in their own way.
        Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Ok(()),
        other => other.map_err(DataError::io("write", folder)),
    }
}

/// Folders cannot be opened here; the system writes names through.
#[cfg(not(unix))]
fn sync_folder(_file: &Path) -> Result<()> {
    Ok(())
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
