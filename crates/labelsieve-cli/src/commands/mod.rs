//! One file per command.

pub mod classes;
pub mod match_text;
