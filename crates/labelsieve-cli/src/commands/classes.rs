//! `labelsieve classes`: class files of other kinds as TOML, ready to be edited.

use std::path::PathBuf;

use anyhow::Result;
use labelsieve_data::text::{read_class_file, write_class_file};

use crate::printer::Printer;

/// Convert a class file or a list of WordNet synsets to TOML
#[derive(clap::Args)]
pub struct ClassesArgs {
    /// Classes: .toml, .csv, or .txt with one synset per line (`n03028079 church, church building`)
    input: PathBuf,
    /// The TOML file to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Runs the command.
pub fn run(args: &ClassesArgs, printer: &Printer) -> Result<()> {
    let classes = read_class_file(&args.input)?;
    write_class_file(&args.output, &classes)?;
    printer.note(&format!("{} classes written to `{}`", classes.classes().len(), args.output.display()));
    Ok(())
}
