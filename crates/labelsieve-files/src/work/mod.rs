//! The environment of a job: reporting, outputs, resuming, and the error type of all jobs.
//!
//! A job reports to a [`Monitor`] and fails with an [`Error`]; options and commands in its messages are parts of [`Words`],
//! which each front end spells. [`outputs`] checks where results go, [`resume`] recognises a run to continue, [`parts`]
//! describes parts of a run for merging. The rest are helpers for messages: [`table`], [`near_name`], [`shell_word`],
//! [`byte_size`].

pub mod byte_size;
pub mod digest;
mod error;
mod json_answer;
mod monitor;
pub mod near_name;
pub mod outputs;
pub mod parts;
pub mod path_text;
pub mod resume;
mod seen_keys;
pub mod shell_word;
pub mod table;
mod words;

pub use error::{Context, Error, Result};
pub use json_answer::json_answer;
pub use monitor::{Meter, Monitor, Progress, SavedWork, Silent};
pub use seen_keys::SeenKeys;
pub use words::{JobCommand, JobOption, Part, Spelling, Words, command, option, words};
