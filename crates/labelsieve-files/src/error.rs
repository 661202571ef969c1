//! The error type of all file formats. Every message names the file, the place, and the expected and actual values.
//!
//! Callers match on variants and kinds; the texts are only for people.

use std::path::{Path, PathBuf};

use crate::storage::encoding::ForeignEncoding;
use crate::{ExpectedFile, FileKind, Unread};

/// An error of reading or writing a file.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The operating system refused a read or a write.
    #[error("cannot {action} `{}`: {cause}", path.display())]
    Io {
        /// The operation that failed.
        action: Action,
        /// The file or folder.
        path: PathBuf,
        /// The system's error. It is part of the message, so it is not a `source()`, which would print it twice.
        cause: std::io::Error,
    },
    /// The file violates its format.
    #[error("`{}`: {place}: expected {expected}, found {found}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The place inside it: a header field, a row, a column.
        place: String,
        /// The value that the format requires.
        expected: String,
        /// The value in the file.
        found: String,
    },
    /// A library that decodes the format refused the file.
    #[error("`{}` is not a readable {format} file: {message}", path.display())]
    Undecodable {
        /// The file.
        path: PathBuf,
        /// The format it should have.
        format: &'static str,
        /// The library's message.
        message: String,
    },
    /// A table lacks a column.
    #[error("`{}`: columns: expected {expected}, found {}", path.display(), listed(present))]
    MissingColumn {
        /// The table.
        path: PathBuf,
        /// The purpose of the column.
        role: ColumnRole,
        /// The requested name, if any.
        asked: Option<String>,
        /// A description of the accepted columns.
        expected: String,
        /// The columns that the table has.
        present: Vec<String>,
    },
    /// The file is of another kind.
    #[error("`{}`: expected {wanted}, found {found}", path.display())]
    WrongKind {
        /// The file or folder.
        path: PathBuf,
        /// The expected kind.
        wanted: ExpectedFile,
        /// The actual kind.
        found: FileKind,
    },
    /// A network where a classifier of features is wanted, or the other way round.
    #[error("`{}` is {found}, not {wanted}", path.display())]
    OtherTensors {
        /// The file.
        path: PathBuf,
        /// The expected contents.
        wanted: TensorsOf,
        /// The actual contents.
        found: TensorsOf,
    },
    /// The format of a text file can be detected neither by its name nor by its first line.
    #[error("`{}`: unknown format; expected {expected}", path.display())]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// The supported formats.
        expected: &'static str,
    },
    /// Another process is writing to the file.
    #[error("another process is using `{}`", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file at the path of the journal is not a journal.
    #[error("`{}` is not a journal of an earlier run", path.display())]
    NotAJournal {
        /// The file.
        path: PathBuf,
    },
    /// A stream was given twice but can be read only once.
    #[error("`{}` can be read only once but was given twice", path.display())]
    ReadTwice {
        /// The pipe, or the second name of standard input.
        path: PathBuf,
    },
    /// A stream could not be copied to a temporary file.
    #[error("cannot copy `{}` to a temporary file in `{}`: {cause}", path.display(), folder.display())]
    Spool {
        /// The stream.
        path: PathBuf,
        /// The folder of temporary files.
        folder: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
    /// A quoted field of a CSV file that is never closed.
    #[error(
        "`{}`: line {line}: expected a closing quote for the one that opens here, found {found}: {n_lines} lines \
         ({n_bytes} bytes) not read",
        path.display()
    )]
    UnclosedQuote {
        /// The file.
        path: PathBuf,
        /// The line of the quote, counted from 1.
        line: u64,
        /// The end of the file, or the limit on the length of a field.
        found: &'static str,
        /// The number of lines after the quote, which were not read.
        n_lines: u64,
        /// The size of these lines.
        n_bytes: u64,
    },
    /// Text in another encoding.
    #[error("`{}`: {place}: expected text in UTF-8, found {encoding}", path.display())]
    Encoding {
        /// The file.
        path: PathBuf,
        /// The place inside it.
        place: String,
        /// The encoding that the bytes appear to have.
        encoding: ForeignEncoding,
    },
    /// A file that is partly unreadable.
    #[error("`{}`: {message}: {unread}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// A description of the damage.
        message: String,
        /// The part that could not be read.
        unread: Unread,
    },
}

/// The operation that the system refused. Call sites give it as a verb: `DataError::io("read", path)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// To open for reading.
    Open,
    /// To read.
    Read,
    /// To create or write.
    Write,
    /// To delete.
    Remove,
    /// Anything else, as a verb.
    Other(&'static str),
}

impl From<&'static str> for Action {
    fn from(verb: &'static str) -> Action {
        match verb {
            "open" => Action::Open,
            "read" => Action::Read,
            "write" => Action::Write,
            "remove" => Action::Remove,
            other => Action::Other(other),
        }
    }
}

impl std::fmt::Display for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Action::Open => "open",
            Action::Read => "read",
            Action::Write => "write",
            Action::Remove => "remove",
            Action::Other(verb) => verb,
        })
    }
}

/// The kind of model in a file of tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorsOf {
    /// A network, perhaps with a classifier on top.
    Network,
    /// A classifier without a network.
    Classifier,
}

impl std::fmt::Display for TensorsOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            TensorsOf::Network => "a network",
            TensorsOf::Classifier => "a classifier of features",
        })
    }
}

/// The purpose of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnRole {
    /// Features.
    Embedding,
    /// Classes.
    Label,
    /// Names of examples.
    Id,
    /// Encoded images.
    Image,
    /// Texts to search.
    Text,
    /// Values to choose rows by.
    Filter,
    /// Values that are copied along with candidates.
    Kept,
    /// Addresses of photos.
    Url,
    /// A column whose name is part of the format.
    Fixed,
}

impl DataError {
    /// For `map_err` on the result of a system call: `.map_err(DataError::io("read", path))`.
    pub fn io(action: impl Into<Action>, path: impl AsRef<Path>) -> impl FnOnce(std::io::Error) -> DataError {
        let action = action.into();
        let path = path.as_ref().to_path_buf();
        move |cause| DataError::Io { action, path, cause }
    }

    /// A file that breaks its format at `place`.
    pub fn malformed(
        path: impl AsRef<Path>,
        place: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> DataError {
        DataError::Malformed {
            path: path.as_ref().to_path_buf(),
            place: place.into(),
            expected: expected.into(),
            found: found.into(),
        }
    }

    /// A file that a decoding library refused.
    pub fn undecodable(
        path: impl AsRef<Path>,
        format: &'static str,
        message: impl std::fmt::Display,
    ) -> DataError {
        DataError::Undecodable { path: path.as_ref().to_path_buf(), format, message: message.to_string() }
    }

    /// For `map_err`: sets the role of a missing column. Other errors are unchanged.
    pub fn for_column(role: ColumnRole) -> impl Fn(DataError) -> DataError {
        move |error| match error {
            DataError::MissingColumn { path, asked, expected, present, .. } => {
                DataError::MissingColumn { path, role, asked, expected, present }
            }
            other => other,
        }
    }
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Results of reading and writing files.
pub type Result<T> = std::result::Result<T, DataError>;
