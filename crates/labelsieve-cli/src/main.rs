//! The `labelsieve` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(labelsieve_cli::run(std::env::args_os()))
}
