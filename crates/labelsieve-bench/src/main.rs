//! The `labelsieve-bench` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(labelsieve_bench::run(std::env::args_os()))
}
