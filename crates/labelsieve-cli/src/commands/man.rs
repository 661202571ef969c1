//! `labelsieve man`: the help of every command as pages for `man`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use labelsieve_files::DataError;
use labelsieve_files::work::Monitor;

use crate::commands::Command;
use crate::front_end::command_line;
use crate::printer::Printer;

/// Write a manual page for every command
#[derive(Args)]
pub struct Man {
    /// Output folder, created if missing, e.g. ~/.local/share/man/man1
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
}

impl Man {
    pub fn run(&self, printer: &Printer) -> Result<()> {
        std::fs::create_dir_all(&self.output).map_err(DataError::io("write", &self.output))?;
        clap_mangen::generate_to(command_line::<Command>(), &self.output)
            .map_err(DataError::io("write", &self.output))?;
        printer.note(&format!("manual pages written to `{}`", self.output.display()));
        Ok(())
    }
}
