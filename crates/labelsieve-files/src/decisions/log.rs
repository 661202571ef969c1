//! The log of a review in progress: `FILE.log` beside the table of decisions.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::table_file::{check_columns, read_table, write_table};
use super::{DecisionRow, DecisionTable, records};
use crate::storage::locked_file::{hold, is_still_at, open_locked};
use crate::{DataError, Result, TableFormat};

/// Linux follows as many symbolic links in a row.
const MAX_LINKS: usize = 40;

/// Adds decisions to a table. Rows are appended to `FILE.log`, which is quick and safe, and moved into the table when the
/// log is closed. No other process can add to the same table meanwhile.
///
/// Dropping it closes it and ignores errors; [`DecisionLog::close`] reports them.
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
    /// The rows of the table when it was opened, to restore it if it is deleted.
    table: Vec<DecisionRow>,
    /// A lock on the table, which still holds if the log is deleted.
    held: Option<File>,
    logged: LoggedRows,
    state: State,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    /// Nothing has been checked; the table is not ours to write.
    Opening,
    Open,
    /// The log was deleted, and another process may use its name by now.
    Closed,
}

impl DecisionLog {
    /// Opens a table of decisions for appending, and returns its rows, including those in the log of a killed review.
    /// Starts an empty table if there is none. The ending decides between Parquet, CSV and TSV.
    ///
    /// Fails with [`DataError::InUse`] if another log has the table open. A table with further columns is refused, since
    /// rewriting it would lose them.
    pub fn open(path: impl AsRef<Path>) -> Result<(DecisionLog, DecisionTable)> {
        let path = path.as_ref().to_path_buf();
        TableFormat::of(&path)?;
        let log_path = log_path(&path);
        let mut file = open_locked(&log_path).map_err(in_use_or("open", &path, &log_path))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(DataError::io("read", &log_path))?;
        let contents = records::read(&log_path, &bytes)?;
        let end = if contents.rows.is_empty() { 0 } else { contents.end };
        let logged = LoggedRows::of(contents);
        let tail =
            Mutex::new(Tail { file, end, table: Vec::new(), held: None, logged, state: State::Opening });
        let log = DecisionLog { path, log_path, tail };
        let rows = log.begin()?;
        let table = DecisionTable { path: log.path.clone(), rows };
        Ok((log, table))
    }

    /// The part of [`DecisionLog::open`] for which the table is locked.
    fn begin(&self) -> Result<Vec<DecisionRow>> {
        let mut tail = self.lock();
        self.restore_table(&mut tail)?;
        check_columns(&self.path)?;
        let table = read_table(&self.path)?;
        if tail.logged.rows.is_empty() {
            tail.logged.n_rows_in_table = table.len(); // which may have changed since the log was begun
        }
        self.write(&mut tail, &[])?; // truncates an incomplete record
        sync_folder(&self.log_path)?;
        tail.state = State::Open;
        tail.table.clone_from(&table);
        Ok(tail.logged.clone().after(table))
    }

    /// Writes the table if there is none: empty at first, with its earlier rows if it was deleted meanwhile.
    fn restore_table(&self, tail: &mut Tail) -> Result<()> {
        if self.path.exists() && tail.state == State::Open {
            return Ok(());
        }
        if !self.path.exists() {
            write_table(&link_target(&self.path), &tail.table)?;
        }
        tail.held = hold(&self.path).map_err(in_use_or("open", &self.path, &self.path))?;
        Ok(())
    }

    /// Recreates the log if it was deleted: anything written to a deleted file is lost.
    fn restore_log(&self, tail: &mut Tail) -> Result<()> {
        if is_still_at(&self.log_path, &tail.file) {
            return Ok(());
        }
        let file = open_locked(&self.log_path).map_err(in_use_or("open", &self.path, &self.log_path))?;
        let length = file.metadata().map_err(DataError::io("read", &self.log_path))?.len();
        if length > 0 {
            let found = "another file in its place";
            return Err(DataError::malformed(&self.log_path, "start", "the log of this review", found));
        }
        tail.file = file;
        tail.end = 0;
        sync_folder(&self.log_path)
    }

    /// Adds decisions. Once this returns, they survive a kill of the process and a power loss. After an error, earlier
    /// decisions are intact and none of these was added.
    pub fn append(&self, rows: &[DecisionRow]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut tail = self.lock();
        self.restore_table(&mut tail)?;
        self.restore_log(&mut tail)?;
        let mut bytes = Vec::new();
        if tail.end == 0 {
            bytes.extend(records::start(&self.log_path, tail.logged.n_rows_in_table)?);
            if !tail.logged.rows.is_empty() {
                bytes.extend(records::rows(&self.log_path, &tail.logged.rows)?); // of a log that was deleted
            }
        }
        bytes.extend(records::rows(&self.log_path, rows)?);
        self.write(&mut tail, &bytes)?;
        tail.logged.rows.extend_from_slice(rows);
        Ok(())
    }

    /// Rewrites the table atomically with all rows, and empties the log. A kill at any moment neither loses nor duplicates
    /// rows. Rows that another program added to the table meanwhile are kept.
    fn fold(&self, tail: &mut Tail) -> Result<()> {
        if tail.logged.rows.is_empty() {
            return Ok(());
        }
        self.restore_table(tail)?;
        let rows = tail.logged.clone().after(read_table(&self.path)?);
        write_table(&link_target(&self.path), &rows)?;
        sync_folder(&self.log_path)?; // the new table must be on disk under its name before the log loses its rows
        let end = std::mem::replace(&mut tail.end, 0);
        if let Err(error) = self.write(tail, &[]) {
            tail.end = end; // its rows are recognised as the table's
            return Err(error);
        }
        tail.logged = LoggedRows { n_rows_in_table: rows.len(), rows: Vec::new() };
        tail.table = rows;
        Ok(())
    }

    /// Moves all rows into the table, and deletes the log. After an error the log is still there, and is read along with the
    /// table.
    pub fn close(self) -> Result<()> {
        self.finish()
    }

    fn finish(&self) -> Result<()> {
        let mut tail = self.lock();
        match tail.state {
            State::Closed => return Ok(()),
            State::Opening if !tail.logged.rows.is_empty() => return Ok(()),
            State::Opening => (),
            State::Open => self.fold(&mut tail)?,
        }
        tail.state = State::Closed;
        if is_still_at(&self.log_path, &tail.file) {
            std::fs::remove_file(&self.log_path).map_err(DataError::io("remove", &self.log_path))
        } else {
            Ok(()) // it was deleted meanwhile
        }
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
            let _ = tail.file.set_len(end); // readers ignore an incomplete record, and the next write removes it
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

/// The rows of a log, some or all of which may already be in the table: a kill may come between writing the table and
/// emptying the log.
#[derive(Clone, Debug, Default)]
pub(super) struct LoggedRows {
    n_rows_in_table: usize,
    rows: Vec<DecisionRow>,
}

impl LoggedRows {
    /// Reads the log beside `table`, if there is one.
    pub(super) fn read(table: &Path) -> Result<LoggedRows> {
        let path = log_path(table);
        if path.exists() {
            Ok(LoggedRows::of(records::read(&path, &read_bytes(&path)?)?))
        } else {
            Ok(LoggedRows::default())
        }
    }

    fn of(contents: records::Contents) -> LoggedRows {
        LoggedRows { n_rows_in_table: contents.n_rows_in_table.unwrap_or(0), rows: contents.rows }
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
    let mut path = link_target(table).into_os_string();
    path.push(".log");
    PathBuf::from(path)
}

/// The target of a symbolic link, even if it does not exist yet; writing to the link itself would replace it.
fn link_target(path: &Path) -> PathBuf {
    let mut target = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        let Ok(next) = std::fs::read_link(&target) else { break };
        target = target.parent().unwrap_or(Path::new("")).join(next); // which may be absolute
    }
    target.canonicalize().unwrap_or(target)
}

/// Turns a lock held by another process into [`DataError::InUse`] of the table.
fn in_use_or(verb: &'static str, table: &Path, file: &Path) -> impl FnOnce(std::io::Error) -> DataError {
    move |error| match error.kind() {
        ErrorKind::WouldBlock => DataError::InUse { path: table.to_path_buf() },
        _ => DataError::io(verb, file)(error),
    }
}

/// The bytes of a log; none if it was deleted meanwhile, since its rows are then in the table.
fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    match std::fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        other => other.map_err(DataError::io("read", path)),
    }
}

/// Syncs the folder of a file, so that its entries are on disk.
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
