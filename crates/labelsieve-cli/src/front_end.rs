//! From the arguments of a process to its exit code, for both programs: threads, signals, panics, errors and hints.

use std::ffi::OsString;
use std::io::Write;
use std::panic::AssertUnwindSafe;

use anyhow::Result;
use clap::{ArgAction, Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use labelsieve_files::work::Monitor;
use labelsieve_numerics::level::Level;

use crate::arguments::COMMON;
use crate::given::{self, Given};
use crate::printer::{self, Printer, Verbosity};
use crate::{hint, panics, signals};

const SUCCESS: u8 = 0;
const FAILURE: u8 = 1;
/// The exit code of a panic, as Rust sets it.
const INTERNAL_ERROR: u8 = 101;

/// The commands of a program.
pub trait Commands: Subcommand {
    /// The name of the program.
    const NAME: &'static str;
    /// Its purpose, in a line.
    const ABOUT: &'static str;

    /// The command line with help of its own.
    fn dressed(command: Command) -> Command {
        command
    }

    /// Refuses options that would do nothing.
    fn check_options(&self, given: &Given) -> Result<()>;

    /// Runs the command.
    fn run(&self, printer: &Printer) -> Result<()>;
}

#[derive(Parser)]
#[command(version, propagate_version = true, max_term_width = 100)]
#[command(disable_help_flag = true, disable_version_flag = true)]
struct Arguments<C: Subcommand> {
    #[command(subcommand)]
    command: C,

    /// Number of threads; results do not depend on it [default: all cores]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    #[arg(help_heading = COMMON, display_order = 1003)]
    threads: Option<u16>,

    /// Print only warnings and errors
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = COMMON, display_order = 1004)]
    quiet: bool,

    /// Print more detail
    #[arg(short, long, global = true, help_heading = COMMON, display_order = 1005)]
    verbose: bool,

    /// Print help
    #[arg(short, long, global = true, action = ArgAction::Help, help_heading = COMMON, display_order = 1006)]
    help: Option<bool>,

    /// Print the version
    #[arg(short = 'V', long, global = true, action = ArgAction::Version, help_heading = COMMON, display_order = 1007)]
    version: Option<bool>,
}

/// The whole command line of a program, for its completions, manual pages and tests.
pub fn command_line<C: Commands>() -> Command {
    C::dressed(Arguments::<C>::command().name(C::NAME).bin_name(C::NAME).about(C::ABOUT))
}

/// Runs the command that `arguments` spell, the program's name first, and returns the exit code.
/// Meant to be the one thing a process does: it claims the global thread pool, SIGINT and SIGTERM, and silences panics.
pub fn run<C: Commands>(arguments: Vec<OsString>) -> u8 {
    let mut command = command_line::<C>();
    let parsed = command.try_get_matches_from_mut(arguments).and_then(|matches| {
        let arguments = Arguments::<C>::from_arg_matches(&matches)?;
        Ok((arguments, matches))
    });
    let (arguments, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(answer) => {
            let _ = answer.print(); // a closed stdout is not a failure of `--help`
            if let Some(hint) = given::of_another_command(&answer, &command) {
                Printer::new(Verbosity::Normal).hint(&hint.into());
            }
            return answer.exit_code() as u8;
        }
    };
    let code = start(&arguments, &Given::new(&matches, &command));
    let _ = std::io::stdout().flush(); // a host that is not written in Rust would not
    code
}

fn start<C: Commands>(arguments: &Arguments<C>, given: &Given) -> u8 {
    let verbosity = match (arguments.quiet, arguments.verbose) {
        (true, _) => Verbosity::Quiet,
        (_, true) => Verbosity::Verbose,
        _ => Verbosity::Normal,
    };
    let printer = Printer::new(verbosity);
    if let Err(error) = Level::from_environment() {
        printer.error(&error.to_string());
        printer.hint(&format!("unset {} to use the fastest level", Level::VARIABLE).into());
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
            printer.error(&hint::message(&error));
            if let Some(hint) = hint::for_error(&error) {
                printer.hint(&hint);
            }
            FAILURE
        }
        Err(panic) => {
            printer.error(&panics::describe(panic.as_ref()));
            let where_to = concat!(
                "please report it, with the command you typed, at ",
                env!("CARGO_PKG_REPOSITORY"),
                "/issues"
            );
            printer.hint(&where_to.into());
            INTERNAL_ERROR
        }
    }
}
