//! The one error type of this crate. Every message names the file, the place, what was expected and what came.

use std::path::{Path, PathBuf};

use crate::text::{ColumnRole, ForeignEncoding, Lost};

/// What can go wrong between a file and the method.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The operating system refused a read or a write.
    #[error("cannot {action} `{}`: {cause}", path.display())]
    Io {
        /// What was attempted, e.g. `read`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's answer; part of the message, and therefore no `source()` that would be printed once more.
        cause: std::io::Error,
    },
    /// The file does not hold what its format promises.
    #[error("`{}`: {place}: expected {expected}, found {found}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The place inside it: a header field, a row, a column.
        place: String,
        /// What the format asks for.
        expected: String,
        /// What the file holds.
        found: String,
    },
    /// A library that decodes the format refused the file.
    #[error("`{}` is not a readable {format} file: {message}", path.display())]
    Undecodable {
        /// The file.
        path: PathBuf,
        /// The format it should have.
        format: &'static str,
        /// The library's answer.
        message: String,
    },
    /// A second reader of a stream that the first has emptied.
    #[error("`{}` can be read only once, and was given twice", path.display())]
    ReadTwice {
        /// Standard input, under the name by which it was given the second time, or a pipe.
        path: PathBuf,
    },
    /// A stream that had to be copied to a file could not be.
    #[error("cannot copy `{}` to a temporary file in `{}`: {cause}", path.display(), folder.display())]
    Spool {
        /// The stream.
        path: PathBuf,
        /// The folder of temporary files.
        folder: PathBuf,
        /// The system's answer.
        cause: std::io::Error,
    },
    /// A column that was asked for, or one of the usual ones, is not there.
    #[error("`{}`: {role}: expected {expected}, found {found}", path.display())]
    Column {
        /// The file.
        path: PathBuf,
        /// What the column is for.
        role: ColumnRole,
        /// The names that would do.
        expected: Box<str>,
        /// The name that was asked for, or the columns that there are.
        found: Box<str>,
        /// The column whose name is nearest to the one that was asked for.
        nearest: Option<Box<str>>,
    },
    /// A quoted field of a CSV file that never ends, and everything after it.
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
        /// What came instead: the end of the file, or more than a field may hold.
        found: &'static str,
        /// Lines behind the quote that could not be told apart from its field.
        n_lines: u64,
        /// The bytes of these lines.
        n_bytes: u64,
    },
    /// Text in another encoding.
    #[error("`{}`: {place}: expected text in UTF-8, found {encoding}", path.display())]
    Encoding {
        /// The file.
        path: PathBuf,
        /// The place inside it.
        place: String,
        /// What the bytes look like.
        encoding: ForeignEncoding,
    },
    /// A file of which a part cannot be read.
    #[error("`{}`: {message}: {lost}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
        /// What could not be read.
        lost: Lost,
    },
}

impl DataError {
    /// For `map_err` on the result of a system call: `.map_err(DataError::io("read", path))`.
    pub fn io(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(std::io::Error) -> DataError {
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
}

/// The result of everything in this crate.
pub type Result<T> = std::result::Result<T, DataError>;
