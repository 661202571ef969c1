//! The unreadable part of a damaged file.

use std::fmt;

/// The part of a damaged file that could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// Rows of a Parquet file, by the file's own count.
    Rows {
        /// Rows that were not read.
        n: u64,
        /// Rows in the file.
        of: u64,
    },
    /// Bytes as stored.
    Bytes {
        /// Bytes that were not read.
        n: u64,
        /// The size of the file.
        of: u64,
    },
    /// An unknown amount: the file is truncated, or the input is a pipe.
    Rest,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unread::Rows { n, of } => write!(f, "{n} of {of} rows not read"),
            Unread::Bytes { n, of } => write!(f, "{n} of {of} bytes not read"),
            Unread::Rest => f.write_str("the rest is missing"),
        }
    }
}
