//! The `labelsieve` command: arguments in, exit code out.

mod attention;
mod bench;
mod candidates;
mod checkpoint;
mod commands;
mod curve;
mod device;
mod estimate;
mod hint;
mod image_inputs;
mod inputs;
mod leaks;
mod network;
mod printer;
mod resume;
mod table;

use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

use clap::Parser;

use commands::Command;
use printer::{Printer, Verbosity};

/// Finds the relevant ones among web-collected examples, and learns from all of them by their relevance.
#[derive(Parser)]
#[command(name = "labelsieve", version, propagate_version = true, max_term_width = 100)]
struct Arguments {
    /// Says only what went wrong
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,

    /// Says more about what happens
    #[arg(short, long, global = true)]
    verbose: bool,

    /// Threads to use; the result does not depend on it [default: all cores]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,

    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let verbosity = match (arguments.quiet, arguments.verbose) {
        (true, _) => Verbosity::Quiet,
        (_, true) => Verbosity::Verbose,
        _ => Verbosity::Normal,
    };
    let printer = Printer::new(verbosity);
    let threads = arguments.threads.map_or(0, usize::from);
    if let Err(error) = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global() {
        printer.error(&format!("cannot start {threads} threads: {error}"));
        return ExitCode::FAILURE;
    }
    // Decoders panic on some damaged files and are caught where they are called; their report is not for users.
    std::panic::set_hook(Box::new(|_| ()));
    match std::panic::catch_unwind(AssertUnwindSafe(|| arguments.command.run(&printer))) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) if printer::is_closed_pipe(&error) => ExitCode::SUCCESS, // e.g. `labelsieve … | head`
        Ok(Err(error)) => {
            printer.error(&format!("{error:#}"));
            if let Some(hint) = hint::for_error(&error) {
                printer.hint(&hint);
            }
            ExitCode::FAILURE
        }
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
            printer.error(&format!("a mistake in labelsieve itself: {text}"));
            printer.hint("please report it with the command you typed");
            ExitCode::from(101)
        }
    }
}
