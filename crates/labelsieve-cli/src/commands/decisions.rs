//! `labelsieve decisions`: what people decided about candidates, from other tools and by class.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};
use labelsieve::Decision;
use labelsieve_files::work::Monitor;
use labelsieve_files::work::table::layout;
use labelsieve_files::{DecisionCounts, counted, read_decisions};

use crate::answers::{DecidedClass, ShownDecisions};
use crate::arguments::JsonArguments;
use crate::options::ImportDecisionsOptions;
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
    #[command(flatten)]
    options: ImportDecisionsOptions,

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
        let imported = self.options.job().run(printer)?;
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
            self.options.output.display(),
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
