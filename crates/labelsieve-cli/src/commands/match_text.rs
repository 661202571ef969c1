//! `labelsieve match`: from class names to candidates.

use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::ValueEnum;
use labelsieve::matching::{
    CandidateStatistics, ClassEntry, ClassList, MatchRule, Matcher, NameWarning, Searcher, TextEncoding,
};
use labelsieve_data::text::{
    OnBadRow, RowSink, ScanSummary, TextColumns, TextFormat, TextSource, read_class_file, scan,
};
use labelsieve_data::{AtomicFile, CandidateRow, CandidateWriter, LeakedExample};

use crate::leaks::{LeakArgs, find_leaks};
use crate::printer::Printer;

/// Find the candidates of each class: examples whose texts contain one of its names
#[derive(clap::Args)]
pub struct MatchArgs {
    /// The classes and their names: .toml, .csv, or .txt with one WordNet synset per line
    #[arg(long, value_name = "FILE")]
    classes: PathBuf,
    /// Texts: YFCC100M metadata, CSV, TSV, JSON Lines or Parquet, plain or .gz, .bz2, .zst; globs, folders of
    /// img2dataset or clip-retrieval
    #[arg(long, value_name = "FILE", num_args = 1.., required = true)]
    text: Vec<PathBuf>,
    /// Columns to search, in order of trust [default: title, description, caption, text, tags, user_tags, as far as
    /// they exist]
    #[arg(long = "text-column", value_name = "NAME", value_delimiter = ',')]
    text_columns: Vec<String>,
    /// Column that names the example [default: id, key, uid, image_path or file_name]
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
    /// Stop at the first malformed row instead of counting and skipping it
    #[arg(long)]
    strict: bool,
    /// Write the number of candidates per class as JSON
    #[arg(long, value_name = "FILE")]
    stats: Option<PathBuf>,
    #[command(flatten)]
    leaks: LeakArgs,
    /// The Parquet file of candidates to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

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

/// Runs the command.
pub fn run(args: &MatchArgs, printer: &Printer) -> Result<()> {
    let classes = read_class_file(&args.classes)?;
    let matcher = Matcher::new(&classes, args.rule.into()).context("cannot search for the class names")?;
    warn_about_names(matcher.warnings(), &classes, printer);
    let source = TextSource::open(&args.text, &args.columns())?;
    let leaks = find_leaks(&args.leaks, printer)?;

    let mut writer = CandidateWriter::create(&args.output, &args.provenance())?;
    let bar = printer.progress(source.n_bytes());
    let mut counts = vec![0; classes.classes().len()];
    let mut n_leaks = 0;
    let summary = scan(
        &source,
        if args.strict { OnBadRow::Stop } else { OnBadRow::Skip },
        || CandidateSink::new(&matcher, &classes, &source, &leaks),
        |sink| std::mem::take(&mut sink.found),
        |mut found, progress| {
            n_leaks += found.rows.iter().filter(|row| row.leak.is_some()).count();
            if args.leaks.drop_leaks {
                found.drop_leaks();
            }
            found.classes.iter().for_each(|&class| counts[class] += 1);
            bar.set_position(progress.n_bytes);
            bar.set_message(format!("{} rows", progress.n_rows));
            writer.write(&found.rows)
        },
    )?;
    bar.finish_and_clear();

    let statistics = CandidateStatistics::new(&classes, &counts);
    if let Some(path) = &args.stats {
        write_json(path, &statistics)?;
    }
    writer.finish()?;
    report(&summary, n_leaks, &statistics, args, printer);
    Ok(())
}

impl MatchArgs {
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

/// Collects the candidates of one block.
struct CandidateSink<'a> {
    searcher: Searcher<'a>,
    classes: &'a [ClassEntry],
    fields: &'a [String],
    leaks: &'a HashMap<String, LeakedExample>,
    found: Candidates,
}

/// Candidates, and the position of each one's class.
#[derive(Default)]
struct Candidates {
    rows: Vec<CandidateRow>,
    classes: Vec<usize>,
}

impl Candidates {
    fn drop_leaks(&mut self) {
        let mut keep = self.rows.iter().map(|row| row.leak.is_none()).collect::<Vec<_>>().into_iter();
        self.classes.retain(|_| keep.next().unwrap_or(true));
        self.rows.retain(|row| row.leak.is_none());
    }
}

impl<'a> CandidateSink<'a> {
    fn new(
        matcher: &'a Matcher,
        classes: &'a ClassList,
        source: &'a TextSource,
        leaks: &'a HashMap<String, LeakedExample>,
    ) -> CandidateSink<'a> {
        CandidateSink {
            searcher: matcher.searcher(),
            classes: classes.classes(),
            fields: source.text_columns(),
            leaks,
            found: Candidates::default(),
        }
    }
}

impl RowSink for CandidateSink<'_> {
    fn text(&mut self, column: usize, text: &str, encoding: TextEncoding) {
        self.searcher.push(column, text, encoding);
    }

    fn end_row(&mut self, id: &str) {
        let CandidateSink { searcher, classes, fields, leaks, found } = self;
        searcher.take_found(|hit| {
            let class = &classes[hit.class];
            found.classes.push(hit.class);
            found.rows.push(CandidateRow {
                id: id.to_string(),
                class: class.id.clone(),
                matched_name: class.names[hit.name].clone(),
                field: fields[hit.column].clone(),
                leak: leaks.get(id).cloned(),
            });
        });
    }

    fn forget_row(&mut self) {
        self.searcher.forget();
    }
}

fn warn_about_names(warnings: &[NameWarning], classes: &ClassList, printer: &Printer) {
    const SHOWN: usize = 5;
    let id = |class: usize| classes.classes()[class].id.as_str();
    for warning in warnings.iter().take(SHOWN) {
        match warning {
            NameWarning::Shared { words, classes } => {
                let ids: Vec<&str> = classes.iter().map(|&class| id(class)).collect();
                printer.warn(&format!("`{words}` names {} classes: {}", ids.len(), ids.join(", ")));
            }
            NameWarning::Unsearchable { class, name } => {
                printer.warn(&format!(
                    "class `{}`: no text can contain `{name}`, which has no letters",
                    id(*class)
                ));
            }
        }
    }
    if warnings.len() > SHOWN {
        printer.warn(&format!("… and {} more names like these", warnings.len() - SHOWN));
    }
}

fn write_json(path: &PathBuf, statistics: &CandidateStatistics) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    serde_json::to_writer_pretty(&mut file, statistics)
        .with_context(|| format!("cannot write `{}`", path.display()))?;
    file.write_all(b"\n").with_context(|| format!("cannot write `{}`", path.display()))?;
    Ok(file.commit()?)
}

fn report(
    summary: &ScanSummary,
    n_leaks: usize,
    statistics: &CandidateStatistics,
    args: &MatchArgs,
    printer: &Printer,
) {
    if summary.n_bad > 0 {
        printer.warn(&format!("{} malformed rows skipped; the first:", summary.n_bad));
        for (path, bad) in &summary.first_bad {
            let place = format!("{}:{}", path.display(), bad.position);
            printer.note(&format!("  {place}: expected {}, found {}", bad.expected, bad.found));
        }
    }
    let skipped = match summary.n_skipped {
        0 => String::new(),
        n => format!(" ({n} videos or failed downloads left out)"),
    };
    printer.note(&format!("{} rows read{skipped}", summary.n_rows));
    if n_leaks > 0 {
        let fate = if args.leaks.drop_leaks { "dropped" } else { "flagged in column `leak_of`" };
        printer.warn(&format!("{n_leaks} candidates are copies of guarded examples: {fate}"));
    }
    printer.note(&format!("{} candidates written to `{}`", statistics.n_candidates, args.output.display()));
    printer.data(&statistics.to_string());
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
