//! Options of `decisions import`.

use std::path::PathBuf;

use clap::Args;
use labelsieve_review::import_decisions::ImportDecisions;
use labelsieve_review::{DecisionSource, DecisionWords, ImportOptions};

/// Exports of a tool, and the file that their decisions are added to.
#[derive(Args, Clone, Debug)]
pub struct ImportDecisionsOptions {
    /// Exports: JSON of Label Studio, a folder or JSON of FiftyOne, or a table (.csv, .tsv, .parquet)
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// The tool that wrote them [default: guessed from the file]
    #[arg(long, value_enum, value_name = "TOOL")]
    pub from: Option<DecisionSource>,

    /// Column or field of ids [default: id; example for FiftyOne]
    #[arg(long, value_name = "NAME")]
    pub id_column: Option<String>,

    /// Column or field of classes [default: class; any classification for FiftyOne]
    #[arg(long, value_name = "NAME")]
    pub class_column: Option<String>,

    /// Column, field or Label Studio control of decisions [default: decision; any choice for Label Studio]
    #[arg(long, value_name = "NAME")]
    pub decision_column: Option<String>,

    /// A word that accepts a candidate, besides accept; repeatable
    #[arg(long, value_name = "WORD")]
    pub accept: Vec<String>,

    /// A word that rejects a candidate, besides reject; repeatable
    #[arg(long, value_name = "WORD")]
    pub reject: Vec<String>,

    /// A word for neither, besides unsure; repeatable
    #[arg(long, value_name = "WORD")]
    pub unsure: Vec<String>,

    /// File of decisions (.parquet, .csv or .tsv); decisions are added after those it has
    #[arg(short, long, value_name = "FILE", default_value = "decisions.parquet")]
    pub output: PathBuf,
}

impl ImportDecisionsOptions {
    /// The job that they describe.
    pub fn job(&self) -> ImportDecisions {
        let words = DecisionWords {
            accept: self.accept.clone(),
            reject: self.reject.clone(),
            unsure: self.unsure.clone(),
        };
        let options = ImportOptions {
            source: self.from,
            id: self.id_column.clone(),
            class: self.class_column.clone(),
            decision: self.decision_column.clone(),
            words,
        };
        ImportDecisions { files: self.files.clone(), options, output: self.output.clone() }
    }
}
