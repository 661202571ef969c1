//! The job behind `classes`: class files of other kinds as TOML, ready to be edited.

use std::path::PathBuf;

use labelsieve_files::work::Result;
use labelsieve_files::work::outputs::{Files, OutputKind};
use serde::Serialize;

use crate::text::{read_class_file, write_class_file};

/// Reads classes of any kind and writes them as a class file.
#[derive(Clone, Debug)]
pub struct ConvertClasses {
    /// A folder with a folder per class, a list of WordNet synsets or another class file.
    pub source: PathBuf,
    /// The class file (.toml).
    pub output: PathBuf,
}

/// The answer of the job.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ClassesSummary {
    /// Classes in the file.
    pub n_classes: usize,
}

impl ConvertClasses {
    /// Writes the class file.
    pub fn run(&self) -> Result<ClassesSummary> {
        OutputKind::Classes.target(&self.output)?;
        Files::default().reads([&self.source]).writes([&self.output]).check()?;
        let classes = read_class_file(&self.source)?;
        write_class_file(&self.output, &classes)?;
        Ok(ClassesSummary { n_classes: classes.classes().len() })
    }
}
