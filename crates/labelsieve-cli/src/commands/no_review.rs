//! `labelsieve review` in a build without it.

use std::ffi::OsString;

use anyhow::Result;
use clap::Args;

use crate::hint::user_error;
use crate::options::Given;
use crate::printer::Printer;

/// Look at candidates in a browser and decide about them (not in this build)
#[derive(Args)]
pub struct Review {
    /// Whatever a review would take
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _rest: Vec<OsString>,
}

impl Review {
    pub fn check_options(&self, _given: &Given) -> Result<()> {
        Ok(())
    }

    pub fn run(&self, _printer: &Printer) -> Result<()> {
        Err(user_error(
            "this build of labelsieve has no review",
            "it was built without the feature `review`; `cargo install labelsieve-cli` installs the command with it",
        ))
    }
}
