//! `labelsieve decisions`: what people decided about candidates, from other tools and by class.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};
use labelsieve::Decision;
use labelsieve_files::work::Monitor;
use labelsieve_files::work::table::layout;
use labelsieve_files::{DecisionCounts, counted, read_decisions};
use labelsieve_review::import_decisions::ImportDecisions;
use labelsieve_review::{DecisionSource, DecisionWords, ImportOptions};

use crate::answers::{DecidedClass, ShownDecisions};
use crate::arguments::JsonArguments;
use crate::printer::Printer;

/// Import decisions about candidates from other tools, or count them
#[derive(Args)]
pub struct Decisions {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Add decisions from Label Studio, FiftyOne or a table to a file of decisions
    Import(Import),
    /// Count the decisions of each class
    Show(Show),
}

#[derive(Args)]
struct Import {
    /// Exports: JSON of Label Studio, a folder or JSON of FiftyOne, or a table (.csv, .tsv, .parquet)
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// The tool that wrote them [default: guessed from the file]
    #[arg(long, value_enum, value_name = "TOOL")]
    from: Option<DecisionSource>,

    /// Column or field of ids [default: id; example for FiftyOne]
    #[arg(long, value_name = "NAME")]
    id_column: Option<String>,

    /// Column or field of classes [default: class; any classification for FiftyOne]
    #[arg(long, value_name = "NAME")]
    class_column: Option<String>,

    /// Column, field or Label Studio control of decisions [default: decision; any choice for Label Studio]
    #[arg(long, value_name = "NAME")]
    decision_column: Option<String>,

    /// A word that accepts a candidate, besides accept; repeatable
    #[arg(long, value_name = "WORD")]
    accept: Vec<String>,

    /// A word that rejects a candidate, besides reject; repeatable
    #[arg(long, value_name = "WORD")]
    reject: Vec<String>,

    /// A word for neither, besides unsure; repeatable
    #[arg(long, value_name = "WORD")]
    unsure: Vec<String>,

    /// File of decisions (.parquet, .csv or .tsv); decisions are added after those it has
    #[arg(short, long, value_name = "FILE", default_value = "decisions.parquet")]
    output: PathBuf,

    #[command(flatten)]
    json: JsonArguments,
}

#[derive(Args)]
struct Show {
    /// File of decisions (.parquet, .csv or .tsv)
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    json: JsonArguments,
}

impl Decisions {
    pub fn run(&self, printer: &Printer) -> Result<()> {
        match &self.action {
            Action::Import(import) => import.run(printer),
            Action::Show(show) => show.run(printer),
        }
    }
}

impl Import {
    fn run(&self, printer: &Printer) -> Result<()> {
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
        let job = ImportDecisions { files: self.files.clone(), options, output: self.output.clone() };
        let imported = job.run(printer)?;
        if self.json.json {
            return printer.json("decisions import", &imported);
        }
        printer.note(&format!(
            "{} accepted, {} rejected, {} unsure; {} undecided, {} cancelled",
            imported.n_accept,
            imported.n_reject,
            imported.n_unsure,
            imported.n_undecided,
            counted(imported.n_cancelled, "answer")
        ));
        printer.note(&format!(
            "{} added to `{}`, {} already there",
            counted(imported.n_new, "new decision"),
            self.output.display(),
            imported.n_known
        ));
        Ok(())
    }
}

impl Show {
    fn run(&self, printer: &Printer) -> Result<()> {
        let table = read_decisions(&self.file)?;
        let mut classes: BTreeMap<&str, Vec<Option<Decision>>> = BTreeMap::new();
        for ((_, class), decision) in table.latest() {
            classes.entry(class).or_default().push(Some(decision));
        }
        let count = |decisions: &Vec<Option<Decision>>| DecisionCounts::of(decisions.iter().copied());
        let counts: Vec<(&str, DecisionCounts)> =
            classes.iter().map(|(class, of)| (*class, count(of))).collect();
        if self.json.json {
            let classes = counts.iter().map(|(class, counts)| DecidedClass {
                class,
                n_accept: counts.n_accept,
                n_reject: counts.n_reject,
                n_unsure: counts.n_unsure,
            });
            let answer = ShownDecisions { classes: classes.collect(), n_rows: table.rows.len() };
            return printer.json("decisions show", &answer);
        }
        let all = count(&classes.into_values().flatten().collect());
        let row = |name: &str, n: &DecisionCounts| {
            // A line break in a name would break the table.
            vec![
                name.replace('\n', "\\n"),
                n.n_accept.to_string(),
                n.n_reject.to_string(),
                n.n_unsure.to_string(),
            ]
        };
        let mut rows: Vec<Vec<String>> = counts.iter().map(|(class, n)| row(class, n)).collect();
        rows.push(row("all", &all));
        let lines = layout(&["class", "accept", "reject", "unsure"], &rows);
        lines.iter().try_for_each(|line| printer.data(line))
    }
}
