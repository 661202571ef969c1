//! `labelsieve classes`: class files of other kinds as TOML, ready to be edited.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use labelsieve_files::counted;
use labelsieve_files::work::Monitor;
use labelsieve_files::work::outputs::{Files, OutputKind};
use labelsieve_matching::text::{read_class_file, write_class_file};

use crate::answers::ClassesAnswer;
use crate::arguments::JsonArguments;
use crate::printer::Printer;

/// Make a class file from a folder per class, a list of WordNet synsets or another class file
#[derive(Args)]
pub struct Classes {
    /// Classes: a folder with a folder per class, .toml, .csv, or .txt with one synset per line (`n03028079 church, church
    /// building`); - for standard input
    #[arg(value_name = "SOURCE")]
    input: PathBuf,

    /// Output file (.toml)
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    #[command(flatten)]
    json: JsonArguments,
}

impl Classes {
    pub fn run(&self, printer: &Printer) -> Result<()> {
        OutputKind::Classes.target(&self.output)?;
        Files::default().reads([&self.input]).writes([&self.output]).check()?;
        let classes = read_class_file(&self.input)?;
        write_class_file(&self.output, &classes)?;
        let n_classes = classes.classes().len();
        if self.json.json {
            return printer.json("classes", &ClassesAnswer { n_classes });
        }
        printer.note(&format!("{} written to `{}`", counted(n_classes, "class"), self.output.display()));
        Ok(())
    }
}
