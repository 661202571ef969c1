//! Every file that Labelsieve reads or writes. This crate knows formats, not the method.

mod atomic;
mod error;

pub use atomic::AtomicFile;
pub use error::{DataError, Result};

pub mod text;
