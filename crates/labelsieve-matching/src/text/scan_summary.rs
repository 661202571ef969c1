//! Counts and problems of a scan.

use std::path::PathBuf;

use labelsieve_files::{DataError, ForeignEncoding, Result, Unread};

use super::rows::{BadRow, Position, Tally};
use super::scan_files::Failure;
use super::source::{TextFile, TextSource};

/// The treatment of malformed rows and damaged files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnBadRow {
    /// Count them and continue, with the next file if the rest of one cannot be read.
    Skip,
    /// Stop with an error that names the first.
    Stop,
}

/// A file of which a part could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedFile {
    /// The file.
    pub path: PathBuf,
    /// A description of the damage.
    pub message: String,
    /// The part that was not read.
    pub unread: Unread,
}

impl DamagedFile {
    /// `None` for an error that is not damage, e.g. a wrong argument or missing permission. `unread` is used unless the error
    /// has a more precise value.
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
    /// Rows that were passed to sinks.
    pub n_rows: u64,
    /// Rows to skip: videos, failed downloads.
    pub n_skipped: u64,
    /// Rows that break their format.
    pub n_bad: u64,
    /// The first few of those, with their files.
    pub first_bad: Vec<(PathBuf, BadRow)>,
    /// Lines of malformed rows after an unclosed quote, beyond the first line of each row.
    pub n_swallowed: u64,
    /// Files with rows that are not UTF-8, with the guessed encoding.
    pub foreign: Vec<(PathBuf, ForeignEncoding)>,
    /// Files of which a part could not be read.
    pub damaged: Vec<DamagedFile>,
}

/// Adds up the counts of blocks in input order, in which line numbers of the whole file become known.
pub(super) struct Summariser<'a> {
    source: &'a TextSource,
    on_bad_row: OnBadRow,
    /// The file of the last block.
    file: usize,
    /// The number of its lines so far.
    n_before: u64,
    summary: ScanSummary,
}

impl<'a> Summariser<'a> {
    /// Starts with the files that cannot be read at all.
    pub(super) fn new(source: &'a TextSource, on_bad_row: OnBadRow) -> Result<Summariser<'a>> {
        let n_files = source.files.len() + source.damaged.len();
        let summary = ScanSummary { n_files, ..ScanSummary::default() };
        let mut summariser = Summariser { source, on_bad_row, file: 0, n_before: 0, summary };
        source.damaged.iter().try_for_each(|unreadable| summariser.add_damaged(unreadable.file.clone()))?;
        Ok(summariser)
    }

    /// The rows so far.
    pub(super) fn n_rows(&self) -> u64 {
        self.summary.n_rows
    }

    pub(super) fn finish(self) -> ScanSummary {
        self.summary
    }

    /// Adds the counts of the next block.
    pub(super) fn add(&mut self, file: usize, tally: Tally, n_lines: u64) -> Result<()> {
        if file != self.file {
            self.file = file;
            self.n_before = 0;
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
            if self.summary.first_bad.len() < Tally::MAX_SHOWN {
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
    pub(super) fn fail(&mut self, file: usize, failure: Failure) -> Result<()> {
        let Failure { mut error, unread } = failure;
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
