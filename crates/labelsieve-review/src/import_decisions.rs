//! Decisions from other tools, added to a file of decisions.

mod merge;

use std::path::{Path, PathBuf};

use labelsieve_files::inputs::left_out::listed;
use labelsieve_files::work::outputs::{Files, OutputKind};
use labelsieve_files::work::{Error, Monitor, Result, option, words};
use labelsieve_files::{DataError, DecisionCounts, DecisionLog, counted};
use serde::Serialize;

use crate::import::COLUMNS;
use crate::{ImportOptions, ImportedDecisions, import_decisions};

/// Adds decisions made in Label Studio, FiftyOne or a table.
#[derive(Clone, Debug)]
pub struct ImportDecisions {
    /// The files of the other tools.
    pub files: Vec<PathBuf>,
    /// How to read them.
    pub options: ImportOptions,
    /// The file of decisions (`.parquet`, `.csv` or `.tsv`), which keeps what it has.
    pub output: PathBuf,
}

/// Summary of an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImportSummary {
    /// Decisions that were added, and withdrawals of earlier ones.
    pub n_new: usize,
    /// Decisions that the file had already.
    pub n_known: usize,
    /// Accepting ones among all that were read.
    pub n_accept: usize,
    /// Rejecting ones.
    pub n_reject: usize,
    /// Neither.
    pub n_unsure: usize,
    /// Examples without a decision, and decisions that were withdrawn.
    pub n_undecided: usize,
    /// Answers that were cancelled or skipped.
    pub n_cancelled: usize,
    /// Entries that were not understood.
    pub n_not_understood: usize,
}

impl ImportDecisions {
    /// Reads all files and adds what is new.
    pub fn run(&self, monitor: &dyn Monitor) -> Result<ImportSummary> {
        OutputKind::Decisions.target(&self.output)?;
        self.check_words()?;
        Files::default()
            .reads(&self.files)
            .writes([&self.output])
            .writes_beside(&self.output, &[".log"])
            .check()?;
        let mut found = ImportedDecisions::default();
        for file in &self.files {
            let read = import_decisions(file, &self.options).map_err(|error| unreadable(file, error))?;
            let unclear = &read.not_understood;
            if !unclear.is_empty() {
                let shown = file.display();
                let entries = counted(unclear.len(), "entry");
                let places = listed(unclear.iter().cloned(), unclear.len());
                monitor.warning(&format!("`{shown}`: {entries} not understood: {places}"));
            }
            found.extend(read);
        }
        let has_decisions = found.rows.iter().any(|row| row.decision.is_some());
        if !has_decisions && (found.rows.is_empty() || !self.output.exists()) {
            return Err(self.nothing(&found));
        }
        merge::sort_by_time(&mut found.rows, monitor);
        let counts = DecisionCounts::of(found.rows.iter().map(|row| row.decision));
        let (log, before) = DecisionLog::open(&self.output).map_err(|error| match error {
            DataError::InUse { path } => Error::input(
                format!("another process is using `{}`", path.display()),
                words!["end the review that is under way, or choose another ", option("output")],
            ),
            error => error.into(),
        })?;
        merge::drop_idle_withdrawals(&mut found.rows, &before);
        let new = merge::new_rows(&found.rows, &before);
        merge::warn_of_overruled(&found.rows, &before, &new, monitor);
        log.append(&new)?;
        log.close()?;
        Ok(ImportSummary {
            n_new: new.len(),
            n_known: found.rows.len() - new.len(),
            n_accept: counts.n_accept,
            n_reject: counts.n_reject,
            n_unsure: counts.n_unsure,
            n_undecided: found.n_undecided,
            n_cancelled: found.n_cancelled,
            n_not_understood: found.not_understood.len(),
        })
    }

    /// Rejects a word that would mean two things.
    fn check_words(&self) -> Result<()> {
        let words = &self.options.words;
        let mut seen: Vec<(String, &'static str)> = Vec::new();
        for (given, meaning) in
            [(&words.accept, "accept"), (&words.reject, "reject"), (&words.unsure, "unsure")]
        {
            for word in given.iter().map(|word| word.trim().to_lowercase()) {
                if let Some((_, other)) = seen.iter().find(|(known, of)| *known == word && *of != meaning) {
                    return Err(Error::input(
                        words![
                            format!("`{word}` is given with "),
                            option(other),
                            " and with ",
                            option(meaning),
                        ],
                        "a word can mean one decision only",
                    ));
                }
                seen.push((word, meaning));
            }
        }
        Ok(())
    }

    fn nothing(&self, found: &ImportedDecisions) -> Error {
        let files = listed(self.files.iter().map(|file| format!("`{}`", file.display())), self.files.len());
        Error::input(
            format!(
                "no decisions in {files}: {} undecided, {} cancelled, {} not understood",
                counted(found.n_undecided, "example"),
                counted(found.n_cancelled, "answer"),
                counted(found.not_understood.len(), "entry")
            ),
            words![
                "say what answers mean with ",
                option("accept").set_to("WORD"),
                " and ",
                option("reject").set_to("WORD"),
                ", and which column they are in with ",
                option("decision_column")
            ],
        )
    }
}

/// Says what to do about a file of another tool that cannot be read.
fn unreadable(file: &Path, error: DataError) -> Error {
    match error {
        _ if file.is_dir() => Error::input(
            format!("`{}` is a folder without samples.json and labels.json", file.display()),
            "pass a file, or the folder of a FiftyOne export",
        ),
        DataError::UnknownFormat { .. } => {
            Error::input(error.to_string(), words!["name the tool that wrote it with ", option("from")])
        }
        DataError::Malformed { ref place, .. } if place == COLUMNS => Error::input(
            error.to_string(),
            words![
                "name the columns with ",
                option("id_column"),
                ", ",
                option("class_column"),
                " and ",
                option("decision_column"),
            ],
        ),
        error => error.into(),
    }
}
