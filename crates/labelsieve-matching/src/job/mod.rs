//! The matching stage: finding the candidates of each class.
//!
//! [`Match`] is the job. `search` scans the texts and writes `candidates`, `leaks` compares them with clean and test examples,
//! `downloads` lists their photos, `shard` handles parts of a run, `messages` reports skipped rows and ambiguous names.

mod candidates;
mod downloads;
mod leaks;
mod messages;
mod search;
mod shard;

use std::io::Write;
use std::path::PathBuf;

use labelsieve_files::work::outputs::{Files, OutputKind, Target};
use labelsieve_files::work::parts::{MatchDetail, PartDone};
use labelsieve_files::work::{Context, Error, Monitor, Result, option, words};
use labelsieve_files::{AtomicFile, DataError, Shard, counted};
use serde::Serialize;

pub use downloads::{DownloadList, ListedPhotos};
pub use leaks::{LeakCheck, LeakFate};
pub use messages::how_to_convert;

use self::candidates::NameSearch;
use self::messages::{check_rows, report_rows, warn_about_names};
use self::search::{SearchResult, TextScan};
use crate::CandidateWriter;
use crate::names::{CandidateStatistics, ClassList, MatchRule};
use crate::text::{KeepColumn, OnBadRow, TextColumns, TextSource, read_class_file};

/// Finds the candidates of each class: examples whose texts contain one of its names.
#[derive(Clone, Debug)]
pub struct Match {
    /// The classes and their names.
    pub classes: PathBuf,
    /// The texts.
    pub texts: Vec<PathBuf>,
    /// Their format and columns, where they differ from the defaults.
    pub columns: TextColumns,
    /// Rule for matching names in texts.
    pub rule: MatchRule,
    /// The treatment of malformed rows and damaged files.
    pub on_bad_row: OnBadRow,
    /// Examples that must not be among the candidates.
    pub leaks: Option<LeakCheck>,
    /// Columns of the texts to copy to the candidates.
    pub keep: Vec<String>,
    /// The list of photos to download.
    pub download_list: Option<DownloadList>,
    /// The part of the texts to search; the outputs are then parts as well.
    pub shard: Option<Shard>,
    /// A file for the statistics, as JSON.
    pub stats: Option<PathBuf>,
    /// The file to write, `.parquet` or `.csv`; `-` for [`Monitor::stdout`].
    pub output: PathBuf,
}

/// The result of the job.
#[derive(Clone, Debug, Serialize)]
pub struct MatchResult {
    /// Candidates per class.
    #[serde(flatten)]
    pub statistics: CandidateStatistics,
    /// Rows that were searched.
    pub n_rows: u64,
    /// Rows that could not be read.
    pub n_malformed: u64,
    /// Files that could not be read to their end.
    pub n_damaged_files: usize,
    /// Candidates that are copies of guarded examples.
    pub n_leaks: u64,
    /// The counts of the list of photos, with [`Match::download_list`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub photos: Option<ListedPhotos>,
    /// Which part of the candidates this is, with [`Match::shard`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<PartDone>,
}

const MIB: u64 = 1 << 20;

impl Match {
    /// Searches all texts and writes the candidates.
    pub fn run(&self, monitor: &dyn Monitor) -> Result<MatchResult> {
        let target = self.check_outputs()?;
        self.check_keep()?;
        self.refuse_streams(self.texts.iter())?;
        let classes = read_class_file(&self.classes)?;
        let names = NameSearch::new(&classes, self.rule).context("cannot search for the class names")?;
        warn_about_names(names.matcher.warnings(), &classes, monitor);
        let source = TextSource::open(&self.texts, &self.all_columns())?;
        self.check_files(&source)?;
        let parts = self.shard.map(|shard| self.parts(shard, &classes, &source)).transpose()?;
        if let Some(result) = self.complete_parts(parts.as_ref(), &classes)? {
            monitor.note(&format!("`{}` is already complete", self.output.display()));
            return Ok(result);
        }
        let source = match self.shard {
            Some(shard) => source.cut(shard),
            None => source,
        };
        let fields = source.text_columns().join(", ");
        let n_files = source.paths().count();
        monitor.detail(&format!("searching {fields} of {n_files} files"));
        let checked = self.leaks.as_ref().map(|leaks| leaks.check(monitor)).transpose()?;

        let scan = TextScan { names: &names, classes: &classes, source: &source, checked: checked.as_ref() };
        let mut found = self.search(target, &scan, monitor)?;
        let statistics = found.statistics(&classes);
        if let Some(path) = &self.stats {
            write_json(path, &statistics)?;
        }
        report_rows(&found.summary, monitor);
        if let Some(leaks) = &self.leaks {
            leaks.report(found.n_leaks, found.n_unchecked, monitor);
        }
        match &parts {
            None => {
                check_rows(&found.summary)?;
                if statistics.n_candidates == 0 {
                    return Err(self.nothing_found(&classes, &source, &found, &statistics));
                }
            }
            Some(parts) => parts.describe(&mut found)?,
        }
        found.report_estimate(monitor);
        let detail = found.detail();
        let photos = found.finish(target, monitor)?;
        let part = parts.map(|parts| PartDone::new(&parts.candidates, false));
        Ok(MatchResult { photos, ..MatchResult::new(statistics, detail, part) })
    }

    /// Checks the names of outputs before any work is done.
    fn check_outputs(&self) -> Result<Target<'_>> {
        let kind = if self.shard.is_some() { OutputKind::Part } else { OutputKind::Table };
        if let Some(stats) = &self.stats {
            OutputKind::Statistics.target(stats)?;
        }
        if let Some(list) = &self.download_list
            && kind.target(&list.path)? == Target::Stdout
        {
            return Err(Error::input(
                words![option("download_list"), " needs a file"],
                "use a file name ending in .parquet or .csv",
            ));
        }
        kind.target(&self.output)
    }

    fn check_files(&self, source: &TextSource) -> Result<()> {
        let guarded = self.leaks.iter().flat_map(LeakCheck::paths);
        let inputs = source.paths().chain([self.classes.as_path()]).chain(guarded);
        let list = self.download_list.iter().map(|list| &list.path);
        Files::default().reads(inputs).writes([&self.output]).writes(&self.stats).writes(list).check()
    }

    /// Checks that columns to keep are distinct and do not have the name of a candidate column.
    fn check_keep(&self) -> Result<()> {
        let columns = CandidateWriter::columns();
        if let Some(name) = self.keep.iter().find(|name| columns.contains(&name.as_str())) {
            let message =
                words![option("keep"), format!(" `{name}`: candidate files already have this column")];
            return Err(Error::input(message, format!("their own columns are {}", columns.join(", "))));
        }
        let is_double = |(at, name): (usize, &String)| self.keep[..at].contains(name).then(|| name.clone());
        match self.keep.iter().enumerate().find_map(is_double) {
            None => Ok(()),
            Some(name) => {
                let message = words![option("keep"), format!(" `{name}` is given twice")];
                Err(Error::input(message, "name each column once"))
            }
        }
    }

    /// The columns to read, including those to keep.
    fn all_columns(&self) -> TextColumns {
        let named = self.keep.iter().cloned().map(KeepColumn::Named);
        let list = self.download_list.iter().flat_map(DownloadList::columns);
        TextColumns { keep: named.chain(list).collect(), ..self.columns.clone() }
    }

    /// The error for a search without candidates: an empty file would only fail later, when it is scored.
    fn nothing_found(
        &self,
        classes: &ClassList,
        source: &TextSource,
        found: &SearchResult,
        statistics: &CandidateStatistics,
    ) -> Error {
        let output = self.output.display();
        if found.n_leaks > 0 {
            let message =
                format!("all candidates are copies of guarded examples; `{output}` was not written");
            return Error::input(
                message,
                words!["leave out ", option("drop_leaks"), " to flag them instead"],
            );
        }
        let names: Vec<&str> =
            classes.classes().iter().flat_map(|class| &class.names).map(String::as_str).collect();
        let searched = match names.as_slice() {
            [first, second, third, _, ..] => {
                format!("`{first}`, `{second}`, `{third}` and {} more names", names.len() - 3)
            }
            names => names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
        };
        let rule = |name: &str| option("rule").set_to(name);
        let hint = match (self.rule, statistics.n_candidates_plural) {
            (_, Some(n)) if n > 0 => {
                words![rule("plural"), format!(" would find {}", counted(n as usize, "candidate"))]
            }
            (MatchRule::AnyWord, _) => words!["search other columns with ", option("text_column")],
            (MatchRule::Plural, _) => {
                words!["try ", rule("any-word"), ", or other columns with ", option("text_column")]
            }
            _ => {
                words!["try ", rule("plural"), " or any-word, or other columns with ", option("text_column")]
            }
        };
        let columns = source.text_columns().join(", ");
        let message = format!(
            "no candidates: {} read, but none contains {searched} in {columns}; `{output}` was not written",
            counted(found.summary.n_rows as usize, "row")
        );
        Error::input(message, hint)
    }

    /// The metadata of the output: version, classes and rule.
    fn provenance(&self) -> Vec<(String, String)> {
        // Without the folder, which may differ: shards are searched on many machines.
        let classes = self.classes.file_name().unwrap_or_default().to_string_lossy();
        vec![
            ("labelsieve.version".into(), env!("CARGO_PKG_VERSION").into()),
            ("labelsieve.classes".into(), classes.into_owned()),
            ("labelsieve.rule".into(), self.rule.to_string()),
        ]
    }
}

impl MatchResult {
    fn new(statistics: CandidateStatistics, detail: MatchDetail, part: Option<PartDone>) -> MatchResult {
        let MatchDetail { n_rows, n_malformed, n_damaged_files, n_leaks } = detail;
        MatchResult { statistics, n_rows, n_malformed, n_damaged_files, n_leaks, photos: None, part }
    }
}

fn write_json(path: &PathBuf, statistics: &CandidateStatistics) -> Result<()> {
    let mut text = serde_json::to_vec_pretty(statistics)?;
    text.push(b'\n');
    let mut file = AtomicFile::create(path)?;
    file.write_all(&text).map_err(DataError::io("write", path))?;
    Ok(file.commit()?)
}
