//! From class names and texts to candidates.

mod candidates;
mod leaks;
mod shard;

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use labelsieve::matching::{CandidateStatistics, ClassList, MatchRule, NameWarning};
use labelsieve_data::text::{
    DamagedFile, ForeignEncoding, OnBadRow, Position, ScanSummary, TextColumns, TextSource, read_class_file,
    scan,
};
use labelsieve_data::{AtomicFile, CandidateWriter, DataError, Shard, counted, is_stream};
use serde::Serialize;

pub use leaks::{LeakCheck, LeakFate};

use self::candidates::{CandidateSink, NameSearch, PluralCount};
use crate::error::{Context, Error, Result};
use crate::monitor::Monitor;
use crate::outputs::{Files, OutputKind, Target, on_stdout};
use crate::parts::{MatchDetail, PartDone};

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
    /// The part of the texts to search; the output is then a part too.
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
    /// Which part of the candidates this is, with [`Match::shard`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<PartDone>,
}

const MIB: u64 = 1 << 20;
/// Warnings of one kind that are told one by one.
const SHOWN: usize = 5;

impl Match {
    /// Searches all texts and writes the candidates.
    pub fn run(&self, monitor: &dyn Monitor) -> Result<Matched> {
        let kind = if self.shard.is_some() { OutputKind::Part } else { OutputKind::Table };
        let target = kind.target(&self.output)?;
        self.refuse_streams(self.texts.iter())?;
        if let Some(stats) = &self.stats {
            OutputKind::Statistics.target(stats)?;
        }
        let classes = read_class_file(&self.classes)?;
        let names = NameSearch::new(&classes, self.rule).context("cannot search for the class names")?;
        warn_about_names(names.matcher.warnings(), &classes, monitor);
        let source = TextSource::open(&self.texts, &self.columns)?;
        let guarded = self.leaks.iter().flat_map(LeakCheck::paths);
        let inputs = source.paths().chain([self.classes.as_path()]).chain(guarded);
        Files::default().reads(inputs).writes([&self.output]).writes(&self.stats).check()?;
        let part = self.shard.map(|shard| self.part(shard, &classes, &source)).transpose()?;
        if let Some(matched) = self.complete_part(part.as_ref(), &classes)? {
            monitor.note(&format!("`{}` is complete already", self.output.display()));
            return Ok(matched);
        }
        let source = match self.shard {
            Some(shard) => source.cut(shard),
            None => source,
        };
        let (fields, n_files) = (source.text_columns().join(", "), source.paths().count());
        monitor.detail(&format!("searching {fields} of {n_files} files"));
        let checked = self.leaks.as_ref().map(|leaks| leaks.check(monitor)).transpose()?;
        let fate = self.leaks.as_ref().map_or(LeakFate::Flag, |leaks| leaks.fate);

        let sink = || CandidateSink::new(&names, &classes, &source, checked.as_ref(), fate);
        let mut writer = match target {
            Target::File(output) => CandidateWriter::create(output, &self.provenance())?,
            Target::Stdout => CandidateWriter::to_stream(monitor.stdout()),
        };
        let progress = match source.n_bytes() {
            Some(n_bytes) => monitor.progress(n_bytes / MIB, "MiB"),
            None => monitor.counter("MiB"),
        };
        let mut counts = vec![0; classes.classes().len()];
        let mut plural = names.compares().then(|| PluralCount::new(counts.len()));
        let (mut n_leaks, mut n_unchecked) = (0, 0);
        let summary = scan(&source, self.on_bad_row, sink, CandidateSink::take, |found, read| {
            if monitor.watch().is_stopped() {
                return Err(DataError::io("read", &self.classes)(ErrorKind::Interrupted.into()));
            }
            found.classes.iter().for_each(|&class| counts[class] += 1);
            plural.iter_mut().for_each(|plural| plural.add(&found));
            n_leaks += found.n_leaks;
            n_unchecked += found.n_unchecked;
            progress.set_position(read.n_bytes / MIB);
            progress.set_message(&format!("{} rows", read.n_rows));
            writer.write(&found.rows)
        });
        monitor.watch().check()?; // before the error that ended the scan for it
        let summary = on_stdout(target, summary)?;
        progress.finish();

        let estimate = plural.as_ref().map(|plural| plural.estimate(&counts, summary.n_rows));
        let statistics = CandidateStatistics::compared(&classes, &counts, estimate.as_deref());
        if let Some(path) = &self.stats {
            write_json(path, &statistics)?;
        }
        tell_of_rows(&summary, monitor);
        if let Some(leaks) = &self.leaks {
            leaks.report(n_leaks, n_unchecked, monitor);
        }
        let detail = MatchDetail {
            n_rows: summary.n_rows,
            n_malformed: summary.n_bad,
            n_damaged_files: summary.damaged.len(),
            n_leaks,
        };
        match &part {
            None => {
                check_rows(&summary)?;
                if statistics.n_candidates == 0 {
                    return Err(self.nothing_found(&classes, &source, &summary, &statistics, n_leaks));
                }
            }
            Some(part) => writer.add_metadata(shard::finished(part, detail, &counts)?.metadata()),
        }
        on_stdout(target, writer.finish())?;
        if let Some(plural) = plural.filter(|plural| plural.n_rows < summary.n_rows) {
            let n_rows = plural.n_rows;
            monitor.note(&format!("the count for --rule plural is estimated from {n_rows} rows"));
        }
        Ok(Matched::new(statistics, detail, part.map(|part| PartDone::new(&part, false))))
    }

    /// A file without candidates would only fail later, in `clean`, so there is none.
    fn nothing_found(
        &self,
        classes: &ClassList,
        source: &TextSource,
        summary: &ScanSummary,
        statistics: &CandidateStatistics,
        n_leaks: u64,
    ) -> Error {
        let output = self.output.display();
        if n_leaks > 0 {
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
            counted(summary.n_rows as usize, "row")
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
        Matched { statistics, n_rows, n_malformed, n_damaged_files, n_leaks, part }
    }
}

/// Says which rows and files were left out and why.
fn tell_of_rows(summary: &ScanSummary, monitor: &dyn Monitor) {
    if summary.n_bad > 0 {
        let swallowed = match summary.n_swallowed {
            0 => String::new(),
            n => format!(", with {n} lines after unclosed quotes"),
        };
        monitor.warning(&format!("{} malformed rows skipped{swallowed}; the first:", summary.n_bad));
        for (path, bad) in &summary.first_bad {
            let place = match bad.position {
                Position::Line(n) | Position::Row(n) => format!("{}:{n}", path.display()),
                Position::Byte(_) => format!("{}: {}", path.display(), bad.position),
            };
            monitor.note(&format!("  {place}: expected {}, found {}", bad.expected, bad.found));
        }
    }
    // When nothing at all was read, the error says it.
    for (path, encoding) in summary.foreign.iter().take(if summary.n_rows > 0 { SHOWN } else { 0 }) {
        monitor.hint(&how_to_convert(path, *encoding));
    }
    for DamagedFile { path, message, unread } in summary.damaged.iter().take(SHOWN) {
        monitor.warning(&format!("`{}` is damaged: {unread} ({message})", path.display()));
    }
    if summary.damaged.len() > SHOWN {
        monitor.warning(&format!("… and {} more damaged files", summary.damaged.len() - SHOWN));
    }
    let damaged = match summary.damaged.len() {
        0 => String::new(),
        n => format!("; {n} of {} files damaged", summary.n_files),
    };
    let skipped = match summary.n_skipped {
        0 => String::new(),
        n => format!(" ({n} videos or failed downloads skipped)"),
    };
    monitor.note(&format!("{} read{skipped}{damaged}", counted(summary.n_rows as usize, "row")));
}

/// Nothing read is no result.
fn check_rows(summary: &ScanSummary) -> Result<()> {
    if summary.n_rows > 0 {
        return Ok(());
    }
    let message = match (summary.n_bad, summary.n_skipped) {
        (0, 0) => "no rows: the files are empty".to_owned(),
        (0, n) => format!("no readable rows: all {n} are videos or failed downloads"),
        (n, _) => format!("no readable rows: all {n} are malformed"),
    };
    let hint = match summary.foreign.first() {
        Some((path, encoding)) => how_to_convert(path, *encoding),
        None => "set --format if the format was not detected correctly".to_owned(),
    };
    Err(Error::input(message, hint))
}

/// How to convert a text to UTF-8.
pub fn how_to_convert(path: &Path, encoding: ForeignEncoding) -> String {
    match encoding.iconv_name() {
        Some(name) if is_stream(path) => {
            format!("convert it in the pipeline: … | iconv -f {name} -t UTF-8 | …")
        }
        Some(name) => {
            let converted = match (path.file_stem(), path.extension()) {
                (Some(stem), Some(extension)) => {
                    format!("{}.utf8.{}", stem.to_string_lossy(), extension.to_string_lossy())
                }
                _ => "converted".to_owned(),
            };
            let converted = path.with_file_name(converted);
            format!("convert it: iconv -f {name} -t UTF-8 {} > {}", path.display(), converted.display())
        }
        None if encoding == ForeignEncoding::BrokenUtf8 => "repair or remove these lines".to_owned(),
        None => "find out its encoding and convert it with iconv -f ENCODING -t UTF-8".to_owned(),
    }
}

fn warn_about_names(warnings: &[NameWarning], classes: &ClassList, monitor: &dyn Monitor) {
    let id = |class: usize| classes.classes()[class].id.as_str();
    for warning in warnings.iter().take(SHOWN) {
        match warning {
            NameWarning::Shared { words, classes } => {
                let ids: Vec<&str> = classes.iter().map(|&class| id(class)).collect();
                monitor.warning(&format!("`{words}` names {} classes: {}", ids.len(), ids.join(", ")));
            }
            NameWarning::Unsearchable { class, name } => {
                monitor.warning(&format!(
                    "class `{}`: no text can contain `{name}`, which has no letters",
                    id(*class)
                ));
            }
        }
    }
    if warnings.len() > SHOWN {
        monitor.warning(&format!("… and {} more names like these", warnings.len() - SHOWN));
    }
}

fn write_json(path: &PathBuf, statistics: &CandidateStatistics) -> Result<()> {
    let mut text = serde_json::to_vec_pretty(statistics)?;
    text.push(b'\n');
    let mut file = AtomicFile::create(path)?;
    file.write_all(&text).map_err(DataError::io("write", path))?;
    Ok(file.commit()?)
}
