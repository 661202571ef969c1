//! `labelsieve match`: from class names to candidates.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use labelsieve::matching::{CandidateStatistics, ClassList, MatchRule, NameWarning, TextEncoding};
use labelsieve_data::text::{
    DamagedFile, OnBadRow, ScanSummary, TextColumns, TextFormat, TextSource, read_class_file, scan,
};
use labelsieve_data::{AtomicFile, CandidateWriter};

use crate::candidates::{CandidateSink, NameSearch, PluralCount};
use crate::hint::user_error;
use crate::leaks::LeakArgs;
use crate::options::Given;
use crate::outputs::{Files, OutputKind, Target, on_stdout};
use crate::printer::Printer;
use crate::text_hints::for_encoding;

/// Find the candidates of each class: examples whose texts contain one of its names
#[derive(Args)]
pub struct Match {
    /// The classes and their names: .toml, .csv, or .txt with one WordNet synset per line; - for standard input
    #[arg(long, value_name = "FILE")]
    classes: PathBuf,

    /// Texts: YFCC100M metadata, CSV, TSV, JSON Lines or Parquet, plain or .gz, .bz2, .zst; globs, pipes, - for
    /// standard input; folders of img2dataset or clip-retrieval, or of images with a metadata.csv, .jsonl or .parquet
    #[arg(long, value_name = "FILE", num_args = 1.., required = true)]
    text: Vec<PathBuf>,

    /// Columns to search, in order of trust [default: title, description, caption, text, tags, user_tags, as far as
    /// they exist]
    #[arg(long = "text-column", value_name = "NAME", value_delimiter = ',')]
    text_columns: Vec<String>,

    /// Column that names the example [default: id, key, uid, image_path or file_name; for a folder of images,
    /// file_name]
    #[arg(long, value_name = "NAME")]
    id_column: Option<String>,

    /// When a text contains a name
    #[arg(long, value_enum, default_value = "phrase")]
    rule: RuleArg,

    /// Format of the texts [default: by file name and content]
    #[arg(long, value_enum)]
    format: Option<FormatArg>,

    /// Texts are written as in URLs (`caf%C3%A9+bar`); YFCC100M always is
    #[arg(long)]
    percent_encoded: bool,

    /// Stop at the first malformed row or damaged file instead of counting and skipping it
    #[arg(long)]
    strict: bool,

    /// Write the number of candidates per class as JSON (.json)
    #[arg(long, value_name = "FILE")]
    stats: Option<PathBuf>,

    #[command(flatten)]
    leaks: LeakArgs,

    /// File of candidates to write, .parquet or .csv; - writes CSV to stdout, and the statistics to stderr
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

const MIB: u64 = 1 << 20;
/// Warnings of one kind that are printed one by one.
const SHOWN: usize = 5;

#[derive(Clone, Copy, ValueEnum)]
enum RuleArg {
    /// The words of the name, whole and in order
    Phrase,
    /// As `phrase`, each word in the singular or the plural
    Plural,
    /// One word of the name, in the singular or the plural
    AnyWord,
    /// The letters of the name, inside words too
    Substring,
}

#[derive(Clone, Copy, ValueEnum)]
enum FormatArg {
    Yfcc,
    Csv,
    Tsv,
    Jsonl,
    Parquet,
}

impl Match {
    pub fn check_options(&self, given: &Given) -> Result<()> {
        match self.leaks.is_on() {
            true => Ok(()),
            false => {
                given.refuse(&["near_duplicate"], "match without --guard-features", "give --guard-features")
            }
        }
    }

    pub fn run(&self, printer: &Printer) -> Result<()> {
        let target = OutputKind::Table.target(&self.output)?;
        if let Some(stats) = &self.stats {
            OutputKind::Statistics.target(stats)?;
        }
        let classes = read_class_file(&self.classes)?;
        let names =
            NameSearch::new(&classes, self.rule.into()).context("cannot search for the class names")?;
        warn_about_names(names.matcher.warnings(), &classes, printer);
        let source = TextSource::open(&self.text, &self.columns())?;
        let inputs = source.paths().chain([self.classes.as_path()]).chain(self.leaks.paths());
        Files::default().reads(inputs).writes([&self.output]).writes(&self.stats).check()?;
        let (fields, n_files) = (source.text_columns().join(", "), source.paths().count());
        printer.detail(&format!("searching {fields} of {n_files} files"));
        let checked = self.leaks.check(printer)?;

        let sink = || CandidateSink::new(&names, &classes, &source, checked.as_ref(), self.leaks.fate());

        let mut writer = match target {
            Target::File(output) => CandidateWriter::create(output, &self.provenance())?,
            Target::Stdout => CandidateWriter::to_stream(printer.stream()),
        };
        let bar = match source.n_bytes() {
            Some(n_bytes) => printer.progress(n_bytes / MIB, "MiB"),
            None => printer.counter("MiB"),
        };
        let mut counts = vec![0; classes.classes().len()];
        let mut plural = names.compares().then(|| PluralCount::new(counts.len()));
        let (mut n_leaks, mut n_unchecked) = (0, 0);
        let on_bad_row = if self.strict { OnBadRow::Stop } else { OnBadRow::Skip };
        let summary = scan(&source, on_bad_row, sink, CandidateSink::take, |found, progress| {
            found.classes.iter().for_each(|&class| counts[class] += 1);
            plural.iter_mut().for_each(|plural| plural.add(&found));
            n_leaks += found.n_leaks;
            n_unchecked += found.n_unchecked;
            bar.set_position(progress.n_bytes / MIB);
            bar.set_message(format!("{} rows", progress.n_rows));
            writer.write(&found.rows)
        });
        let summary = on_stdout(target, summary)?;
        bar.finish_and_clear();

        let estimate = plural.as_ref().map(|plural| plural.estimate(&counts, summary.n_rows));
        let statistics = CandidateStatistics::compared(&classes, &counts, estimate.as_deref());
        if let Some(path) = &self.stats {
            write_json(path, &statistics)?;
        }
        report_rows(&summary, printer);
        self.leaks.report(n_leaks, n_unchecked, printer);
        check_rows(&summary)?;
        if statistics.n_candidates == 0 {
            return Err(self.nothing_found(&classes, &source, &summary, &statistics, n_leaks));
        }
        on_stdout(target, writer.finish())?;
        if let Some(plural) = plural.filter(|plural| plural.n_rows < summary.n_rows) {
            let n_rows = plural.n_rows;
            printer.note(&format!("what --rule plural would find is estimated from {n_rows} of the rows"));
        }
        let n_candidates = statistics.n_candidates;
        let statistics = statistics.to_string();
        match target {
            Target::File(output) => {
                printer.note(&format!("{n_candidates} candidates written to `{}`", output.display()));
                printer.data(statistics.trim_end())
            }
            Target::Stdout => {
                printer.note(statistics.trim_end());
                Ok(())
            }
        }
    }

    /// A file without candidates would only fail later, in `clean`, so there is none.
    fn nothing_found(
        &self,
        classes: &ClassList,
        source: &TextSource,
        summary: &ScanSummary,
        statistics: &CandidateStatistics,
        n_leaks: u64,
    ) -> anyhow::Error {
        let output = self.output.display();
        if n_leaks > 0 {
            let message = format!(
                "all {n_leaks} candidates are copies of guarded examples; `{output}` was not written"
            );
            return user_error(message, "leave out --drop-leaks to have them flagged instead");
        }
        let names: Vec<&str> =
            classes.classes().iter().flat_map(|class| &class.names).map(String::as_str).collect();
        let searched = match names.as_slice() {
            [first, second, third, _, ..] => {
                format!("`{first}`, `{second}`, `{third}` and {} more names", names.len() - 3)
            }
            names => names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
        };
        let hint = match (MatchRule::from(self.rule), statistics.n_candidates_plural) {
            (_, Some(n)) if n > 0 => format!("--rule plural would find {n} candidates"),
            (MatchRule::AnyWord, _) => "search other columns with --text-column".to_owned(),
            (MatchRule::Plural, _) => "try --rule any-word, or other columns with --text-column".to_owned(),
            _ => "try --rule plural or any-word, or other columns with --text-column".to_owned(),
        };
        let columns = source.text_columns().join(", ");
        let message = format!(
            "no candidates: {} rows read, but none contains {searched} in {columns}; `{output}` was not written",
            summary.n_rows
        );
        user_error(message, hint)
    }

    fn columns(&self) -> TextColumns {
        TextColumns {
            format: self.format.map(TextFormat::from),
            id: self.id_column.clone(),
            texts: self.text_columns.clone(),
            encoding: self.percent_encoded.then_some(TextEncoding::Percent),
        }
    }

    /// What made the file, kept inside it.
    fn provenance(&self) -> Vec<(String, String)> {
        let rule = self.rule.to_possible_value().map_or(String::new(), |value| value.get_name().to_string());
        vec![
            ("labelsieve.version".into(), env!("CARGO_PKG_VERSION").into()),
            ("labelsieve.classes".into(), self.classes.display().to_string()),
            ("labelsieve.rule".into(), rule),
        ]
    }
}

/// Says which rows and files were left out and why.
fn report_rows(summary: &ScanSummary, printer: &Printer) {
    if summary.n_bad > 0 {
        let swallowed = match summary.n_swallowed {
            0 => String::new(),
            n => format!(", and with them {n} lines after quotes that do not close"),
        };
        printer.warning(&format!("{} malformed rows skipped{swallowed}; the first:", summary.n_bad));
        for (path, bad) in &summary.first_bad {
            let place = format!("{}:{}", path.display(), bad.position);
            printer.note(&format!("  {place}: expected {}, found {}", bad.expected, bad.found));
        }
    }
    // When nothing at all was read, the error says it.
    for (path, encoding) in summary.foreign.iter().take(if summary.n_rows > 0 { SHOWN } else { 0 }) {
        printer.hint(&for_encoding(path, *encoding));
    }
    for DamagedFile { path, message, unread } in summary.damaged.iter().take(SHOWN) {
        printer.warning(&format!("`{}` is damaged: {unread} ({message})", path.display()));
    }
    if summary.damaged.len() > SHOWN {
        printer.warning(&format!("… and {} more damaged files", summary.damaged.len() - SHOWN));
    }
    let damaged = match summary.damaged.len() {
        0 => String::new(),
        n => format!("; {n} of {} files damaged", summary.n_files),
    };
    let skipped = match summary.n_skipped {
        0 => String::new(),
        n => format!(" ({n} videos or failed downloads left out)"),
    };
    printer.note(&format!("{} rows read{skipped}{damaged}", summary.n_rows));
}

/// Nothing read is no result.
fn check_rows(summary: &ScanSummary) -> Result<()> {
    if summary.n_rows > 0 {
        return Ok(());
    }
    let message = match (summary.n_bad, summary.n_skipped) {
        (0, 0) => "no row could be read: the files hold none".to_owned(),
        (0, n) => format!("no row could be read: all {n} are videos or failed downloads"),
        (n, _) => format!("no row could be read: all {n} are malformed"),
    };
    let hint = match summary.foreign.first() {
        Some((path, encoding)) => for_encoding(path, *encoding),
        None => "say what the files are with --format, if they are taken for something else".to_owned(),
    };
    Err(user_error(message, hint))
}

fn warn_about_names(warnings: &[NameWarning], classes: &ClassList, printer: &Printer) {
    let id = |class: usize| classes.classes()[class].id.as_str();
    for warning in warnings.iter().take(SHOWN) {
        match warning {
            NameWarning::Shared { words, classes } => {
                let ids: Vec<&str> = classes.iter().map(|&class| id(class)).collect();
                printer.warning(&format!("`{words}` names {} classes: {}", ids.len(), ids.join(", ")));
            }
            NameWarning::Unsearchable { class, name } => {
                printer.warning(&format!(
                    "class `{}`: no text can contain `{name}`, which has no letters",
                    id(*class)
                ));
            }
        }
    }
    if warnings.len() > SHOWN {
        printer.warning(&format!("… and {} more names like these", warnings.len() - SHOWN));
    }
}

fn write_json(path: &PathBuf, statistics: &CandidateStatistics) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    serde_json::to_writer_pretty(&mut file, statistics)
        .with_context(|| format!("cannot write `{}`", path.display()))?;
    file.write_all(b"\n").with_context(|| format!("cannot write `{}`", path.display()))?;
    Ok(file.commit()?)
}

impl From<RuleArg> for MatchRule {
    fn from(rule: RuleArg) -> MatchRule {
        match rule {
            RuleArg::Phrase => MatchRule::Phrase,
            RuleArg::Plural => MatchRule::Plural,
            RuleArg::AnyWord => MatchRule::AnyWord,
            RuleArg::Substring => MatchRule::Substring,
        }
    }
}

impl From<FormatArg> for TextFormat {
    fn from(format: FormatArg) -> TextFormat {
        match format {
            FormatArg::Yfcc => TextFormat::Yfcc,
            FormatArg::Csv => TextFormat::Csv,
            FormatArg::Tsv => TextFormat::Tsv,
            FormatArg::Jsonl => TextFormat::JsonLines,
            FormatArg::Parquet => TextFormat::Parquet,
        }
    }
}
