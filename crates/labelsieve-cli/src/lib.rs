//! The `labelsieve` command: arguments in, exit code out. The binary and the Python wheel both start it here.
//!
//! `labelsieve-bench` is a second program with the same [`front_end`]; it shares [`arguments`] and some of the [`commands`].

mod answers;
pub mod arguments;
pub mod commands;
pub mod front_end;
mod given;
pub mod help;
mod hint;
pub mod options;
pub mod panics;
mod printer;
pub mod report;
pub mod review;
mod signals;
mod spelling;
mod text_hints;

use std::ffi::OsString;

use commands::Command;

pub use given::Given;
pub use hint::user_error;
pub use printer::Printer;

/// The whole command line.
fn command() -> clap::Command {
    front_end::command_line::<Command>()
}

/// Runs the command that `arguments` spell, the program's name first, and returns the exit code. Meant to be the one
/// thing a process does: it claims the global thread pool, SIGINT and SIGTERM, and silences panics.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    front_end::run::<Command>(arguments.into_iter().collect())
}
