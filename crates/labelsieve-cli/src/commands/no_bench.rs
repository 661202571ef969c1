//! `labelsieve bench` in a build without it.

use std::ffi::OsString;

use anyhow::Result;
use clap::Args;

use crate::hint::user_error;
use crate::printer::Printer;

/// Run benchmarks (not in this build)
#[derive(Args)]
pub struct Bench {
    /// Whatever the benchmarks would take
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _rest: Vec<OsString>,
}

impl Bench {
    pub fn run(&self, _printer: &Printer) -> Result<()> {
        Err(user_error(
            "this build of labelsieve has no benchmarks",
            "the wheel leaves them out; `cargo install labelsieve-cli` installs the command with them",
        ))
    }
}
