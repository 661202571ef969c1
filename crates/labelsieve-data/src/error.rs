//! The one error type of this crate. Every message names the file, the place, what was expected and what came.

use std::path::{Path, PathBuf};

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
