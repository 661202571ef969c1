//! The `labelsieve` command.

mod commands;
mod leaks;
mod printer;

use std::process::ExitCode;

use clap::Parser;

/// Find candidates by their texts and tell the relevant ones
#[derive(Parser)]
#[command(version)]
enum Cli {
    Classes(commands::classes::ClassesArgs),
    Match(Box<commands::match_text::MatchArgs>),
}

fn main() -> ExitCode {
    let printer = printer::Printer;
    let result = match Cli::parse() {
        Cli::Classes(args) => commands::classes::run(&args, &printer),
        Cli::Match(args) => commands::match_text::run(&args, &printer),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
