//! Files independent of their format.
//!
//! [`atomic`] writes files that appear whole or not at all, [`journal`] records finished work of a run, [`locked_file`] keeps
//! other processes out. [`input`] opens files and pipes, [`regular_file`] only files with random access. [`file_kind`] and
//! [`encoding`] guess the contents of files that could not be read, for messages.

pub mod atomic;
pub mod encoding;
pub mod file_kind;
pub mod input;
pub mod journal;
pub mod locked_file;
pub mod regular_file;
pub mod unread;
