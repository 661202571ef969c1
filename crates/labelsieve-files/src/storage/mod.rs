//! Files as such: atomic writes, the journal of a run, pipes, locks, and the kind of a file.

pub mod atomic;
pub mod encoding;
pub mod file_kind;
pub mod input;
pub mod journal;
pub mod locked_file;
pub mod regular_file;
pub mod unread;
