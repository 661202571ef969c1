//! `labelsieve completions`: commands and options at the press of a key.

use std::io::Write;

use anyhow::Result;
use clap::Args;
use clap_complete::{Shell, generate};
use labelsieve_files::work::{Error, Monitor};

use crate::commands::Command;
use crate::front_end::command_line;
use crate::printer::Printer;

/// Print a shell completion script
#[derive(Args)]
pub struct Completions {
    /// Shell to generate the script for
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub fn run(&self, printer: &Printer) -> Result<()> {
        let mut script = Vec::new(); // the generator panics when it cannot write
        generate(self.shell, &mut command_line::<Command>(), "labelsieve", &mut script);
        let mut out = printer.stdout();
        Ok(out.write_all(&script).and_then(|()| out.flush()).map_err(Error::Stdout)?)
    }
}
