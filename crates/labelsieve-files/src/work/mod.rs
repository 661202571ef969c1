//! The frame of a job: how it reports, where its results go, how it resumes, and its one error type.

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
pub use monitor::{Kept, Meter, Monitor, Progress, Silent};
pub use seen_keys::SeenKeys;
pub use words::{JobCommand, JobOption, Part, Spelling, Words, command, option, words};
