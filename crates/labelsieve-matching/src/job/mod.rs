//! From class names and texts to candidates.

mod candidates;
mod downloads;
mod leaks;
mod search;
mod shard;
mod telling;

use std::io::Write;
use std::path::PathBuf;

use labelsieve_files::work::outputs::{Files, OutputKind, Target};
use labelsieve_files::work::parts::{MatchDetail, PartDone};
use labelsieve_files::work::{Context, Error, Monitor, Result};
use labelsieve_files::{AtomicFile, DataError, Shard, counted};
use serde::Serialize;

pub use downloads::{DownloadList, ListedPhotos};
pub use leaks::{LeakCheck, LeakFate};
pub use telling::how_to_convert;

use self::candidates::NameSearch;
use self::search::Found;
use self::telling::{check_rows, tell_of_rows, warn_about_names};
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
    /// How to read them, where the usual names do not say so.
    pub columns: TextColumns,
    /// Rule for matching names in texts.
    pub rule: MatchRule,
    /// What to do about malformed rows and damaged files.
    pub on_bad_row: OnBadRow,
    /// Examples that must not be among the candidates.
    pub leaks: Option<LeakCheck>,
    /// Columns of the texts that go along into the candidates.
    pub keep: Vec<String>,
    /// Where the photos to download go.
    pub download_list: Option<DownloadList>,
    /// The part of the texts to search; the outputs are then parts too.
    pub shard: Option<Shard>,
    /// Where the statistics go too, as JSON.
    pub stats: Option<PathBuf>,
    /// The file to write, `.parquet` or `.csv`; `-` for [`Monitor::stdout`].
    pub output: PathBuf,
}

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct Matched {
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
    /// What is in the list of photos to download, with [`Match::download_list`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub photos: Option<ListedPhotos>,
    /// Which part of the candidates this is, with [`Match::shard`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<PartDone>,
}

const MIB: u64 = 1 << 20;

impl Match {
    /// Searches all texts and writes the candidates.
    pub fn run(&self, monitor: &dyn Monitor) -> Result<Matched> {
        let target = self.check_outputs()?;
        self.check_keep()?;
        self.refuse_streams(self.texts.iter())?;
        let classes = read_class_file(&self.classes)?;
        let names = NameSearch::new(&classes, self.rule).context("cannot search for the class names")?;
        warn_about_names(names.matcher.warnings(), &classes, monitor);
        let source = TextSource::open(&self.texts, &self.all_columns())?;
        self.check_files(&source)?;
        let parts = self.shard.map(|shard| self.parts(shard, &classes, &source)).transpose()?;
        if let Some(matched) = self.complete_parts(parts.as_ref(), &classes)? {
            monitor.note(&format!("`{}` is complete already", self.output.display()));
            return Ok(matched);
        }
        let source = match self.shard {
            Some(shard) => source.cut(shard),
            None => source,
        };
        let fields = source.text_columns().join(", ");
        let n_files = source.paths().count();
        monitor.detail(&format!("searching {fields} of {n_files} files"));
        let checked = self.leaks.as_ref().map(|leaks| leaks.check(monitor)).transpose()?;

        let mut found = self.search(target, &names, (&classes, &source, checked.as_ref()), monitor)?;
        let statistics = found.statistics(&classes);
        if let Some(path) = &self.stats {
            write_json(path, &statistics)?;
        }
        tell_of_rows(&found.summary, monitor);
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
        found.tell_of_estimate(monitor);
        let detail = found.detail();
        let photos = found.finish(target, monitor)?;
        let part = parts.map(|parts| PartDone::new(&parts.candidates, false));
        Ok(Matched { photos, ..Matched::new(statistics, detail, part) })
    }

    /// Refuses names of outputs before any work is done for them.
    fn check_outputs(&self) -> Result<Target<'_>> {
        let kind = if self.shard.is_some() { OutputKind::Part } else { OutputKind::Table };
        if let Some(stats) = &self.stats {
            OutputKind::Statistics.target(stats)?;
        }
        if let Some(list) = &self.download_list
            && kind.target(&list.path)? == Target::Stdout
        {
            return Err(Error::input(
                "--download-list needs a file",
                "give it a name that ends in .parquet or .csv",
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

    /// Columns to keep must not be called as those that candidates have anyway.
    fn check_keep(&self) -> Result<()> {
        let columns = CandidateWriter::columns();
        if let Some(name) = self.keep.iter().find(|name| columns.contains(&name.as_str())) {
            let message = format!("--keep `{name}`: candidates have a column of that name of their own");
            return Err(Error::input(message, format!("they have {}; keep others", columns.join(", "))));
        }
        let is_double = |(at, name): (usize, &String)| self.keep[..at].contains(name).then(|| name.clone());
        match self.keep.iter().enumerate().find_map(is_double) {
            None => Ok(()),
            Some(name) => {
                Err(Error::input(format!("--keep `{name}` is given twice"), "name each column once"))
            }
        }
    }

    /// The columns to read, with those that go along.
    fn all_columns(&self) -> TextColumns {
        let named = self.keep.iter().cloned().map(KeepColumn::Named);
        let list = self.download_list.iter().flat_map(DownloadList::columns);
        TextColumns { keep: named.chain(list).collect(), ..self.columns.clone() }
    }

    /// A file without candidates would only fail later, in `clean`, so there is none.
    fn nothing_found(
        &self,
        classes: &ClassList,
        source: &TextSource,
        found: &Found,
        statistics: &CandidateStatistics,
    ) -> Error {
        let output = self.output.display();
        if found.n_leaks > 0 {
            let message =
                format!("all candidates are copies of guarded examples; `{output}` was not written");
            return Error::input(message, "drop --drop-leaks to flag them instead");
        }
        let names: Vec<&str> =
            classes.classes().iter().flat_map(|class| &class.names).map(String::as_str).collect();
        let searched = match names.as_slice() {
            [first, second, third, _, ..] => {
                format!("`{first}`, `{second}`, `{third}` and {} more names", names.len() - 3)
            }
            names => names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
        };
        let hint = match (self.rule, statistics.n_candidates_plural) {
            (_, Some(n)) if n > 0 => format!("--rule plural would find {}", counted(n as usize, "candidate")),
            (MatchRule::AnyWord, _) => "search other columns with --text-column".to_owned(),
            (MatchRule::Plural, _) => "try --rule any-word, or other columns with --text-column".to_owned(),
            _ => "try --rule plural or any-word, or other columns with --text-column".to_owned(),
        };
        let columns = source.text_columns().join(", ");
        let message = format!(
            "no candidates: {} read, but none contains {searched} in {columns}; `{output}` was not written",
            counted(found.summary.n_rows as usize, "row")
        );
        Error::input(message, hint)
    }

    /// What made the file, kept inside it.
    fn provenance(&self) -> Vec<(String, String)> {
        // Not where it lies: shards are searched on many machines.
        let classes = self.classes.file_name().unwrap_or_default().to_string_lossy();
        vec![
            ("labelsieve.version".into(), env!("CARGO_PKG_VERSION").into()),
            ("labelsieve.classes".into(), classes.into_owned()),
            ("labelsieve.rule".into(), self.rule.to_string()),
        ]
    }
}

impl Matched {
    fn new(statistics: CandidateStatistics, detail: MatchDetail, part: Option<PartDone>) -> Matched {
        let MatchDetail { n_rows, n_malformed, n_damaged_files, n_leaks } = detail;
        Matched { statistics, n_rows, n_malformed, n_damaged_files, n_leaks, photos: None, part }
    }
}

fn write_json(path: &PathBuf, statistics: &CandidateStatistics) -> Result<()> {
    let mut text = serde_json::to_vec_pretty(statistics)?;
    text.push(b'\n');
    let mut file = AtomicFile::create(path)?;
    file.write_all(&text).map_err(DataError::io("write", path))?;
    Ok(file.commit()?)
}
