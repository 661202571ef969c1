//! `labelsieve classes`: class files of other kinds as TOML, ready to be edited.

use anyhow::Result;
use clap::Args;
use labelsieve_files::counted;
use labelsieve_files::work::Monitor;

use crate::arguments::JsonArguments;
use crate::options::ClassesOptions;
use crate::printer::Printer;

/// Make a class file from a folder per class, a list of WordNet synsets or another class file
#[derive(Args)]
pub struct Classes {
    #[command(flatten)]
    options: ClassesOptions,

    #[command(flatten)]
    json: JsonArguments,
}

impl Classes {
    pub fn run(&self, printer: &Printer) -> Result<()> {
        let converted = self.options.job().run()?;
        if self.json.json {
            return printer.json("classes", &converted);
        }
        printer.note(&format!(
            "{} written to `{}`",
            counted(converted.n_classes, "class"),
            self.options.output.display()
        ));
        Ok(())
    }
}
