//! The `labelsieve` command: arguments in, exit code out. The binary and the Python wheel both start it here.

mod attention;
mod bench;
mod candidates;
mod checkpoint;
mod commands;
mod copies;
mod curve;
mod device;
mod estimate;
mod hint;
mod image_inputs;
mod inputs;
mod leaks;
mod left_out;
mod lock;
mod near_name;
mod network;
mod network_fingerprint;
mod options;
mod outputs;
pub mod panics;
mod printer;
mod resume;
mod same_network;
mod signals;
mod swapped;
mod table;
mod text_hints;

use std::ffi::OsString;
use std::io::Write;
use std::panic::AssertUnwindSafe;

use clap::{CommandFactory, FromArgMatches, Parser};

use commands::Command;
use labelsieve::level::Level;
use options::Given;
use printer::{Printer, Verbosity};

const SUCCESS: u8 = 0;
const FAILURE: u8 = 1;
/// What Rust itself answers a panic with.
const MISTAKE: u8 = 101;

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

/// Runs the command that `arguments` spell, the program's name first, and returns the exit code. Meant to be the one
/// thing a process does: it claims the global thread pool, SIGINT and SIGTERM, and silences panics.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let mut command = Arguments::command();
    let parsed = command.try_get_matches_from_mut(arguments).and_then(|matches| {
        let arguments = Arguments::from_arg_matches(&matches)?;
        Ok((arguments, matches))
    });
    let (arguments, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(answer) => {
            let _ = answer.print(); // `--help` to nobody is no failure
            return answer.exit_code() as u8;
        }
    };
    let code = start(&arguments, &Given::new(&matches, &command));
    let _ = std::io::stdout().flush(); // a host that is not written in Rust would not
    code
}

fn start(arguments: &Arguments, given: &Given) -> u8 {
    let verbosity = match (arguments.quiet, arguments.verbose) {
        (true, _) => Verbosity::Quiet,
        (_, true) => Verbosity::Verbose,
        _ => Verbosity::Normal,
    };
    let printer = Printer::new(verbosity);
    if let Err(error) = Level::from_environment() {
        printer.error(&error.to_string());
        printer.hint(&format!("without {} the fastest level is used", Level::VARIABLE));
        return FAILURE;
    }
    let threads = arguments.threads.map_or(0, usize::from);
    if let Err(error) = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global() {
        printer.error(&format!("cannot start {threads} threads: {error}"));
        return FAILURE;
    }
    panics::install();
    signals::install();
    let work = || {
        arguments.command.check_options(given)?;
        arguments.command.run(&printer)
    };
    match std::panic::catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => SUCCESS,
        Ok(Err(error)) if printer::is_closed_pipe(&error) => SUCCESS, // e.g. `labelsieve … | head`
        Ok(Err(error)) => {
            printer.error(&format!("{error:#}"));
            if let Some(hint) = hint::for_error(&error) {
                printer.hint(&hint);
            }
            FAILURE
        }
        Err(panic) => {
            printer.error(&panics::describe(panic.as_ref()));
            printer.hint(concat!(
                "please report it, with the command you typed, at ",
                env!("CARGO_PKG_REPOSITORY"),
                "/issues"
            ));
            MISTAKE
        }
    }
}
