//! Options of `classes`.

use std::path::PathBuf;

use clap::Args;
use labelsieve_matching::convert_classes::ConvertClasses;

/// Classes of some kind, and the class file that they become.
#[derive(Args, Clone, Debug)]
pub struct ClassesOptions {
    /// Classes: a folder with a folder per class, .toml, .csv, or .txt with one synset per line (`n03028079 church, church
    /// building`); - for standard input
    #[arg(value_name = "SOURCE")]
    pub source: PathBuf,

    /// Output file (.toml)
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

impl ClassesOptions {
    /// The job that they describe.
    pub fn job(&self) -> ConvertClasses {
        ConvertClasses { source: self.source.clone(), output: self.output.clone() }
    }
}
