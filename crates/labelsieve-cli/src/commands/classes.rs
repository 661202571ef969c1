//! `labelsieve classes`: class files of other kinds as TOML, ready to be edited.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use labelsieve_data::text::{read_class_file, write_class_file};
use labelsieve_pipeline::Monitor;
use labelsieve_pipeline::outputs::{Files, OutputKind};

use crate::printer::Printer;

/// Convert a class file or a list of WordNet synsets to TOML
#[derive(Args)]
pub struct Classes {
    /// Classes: .toml, .csv, or .txt with one synset per line (`n03028079 church, church building`); - for standard
    /// input
    #[arg(value_name = "FILE")]
    input: PathBuf,

    /// The file to write (.toml)
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

impl Classes {
    pub fn run(&self, printer: &Printer) -> Result<()> {
        OutputKind::Classes.target(&self.output)?;
        Files::default().reads([&self.input]).writes([&self.output]).check()?;
        let classes = read_class_file(&self.input)?;
        write_class_file(&self.output, &classes)?;
        printer.note(&format!("{} classes written to `{}`", classes.classes().len(), self.output.display()));
        Ok(())
    }
}
