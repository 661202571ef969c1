//! `labelsieve match`: from class names to candidates.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use labelsieve_files::work::Monitor;
use labelsieve_files::work::shell_word::shell_word;
use labelsieve_files::{Shard, counted};
use labelsieve_matching::job::{DownloadList, LeakCheck, LeakFate, Match as Job};
use labelsieve_matching::names::{MatchRule, TextEncoding};
use labelsieve_matching::text::{OnBadRow, TextColumns, TextFormat};

use crate::arguments::{JsonArguments, MixedArguments};
use crate::options::Given;
use crate::printer::{Printer, refuse_json_beside};

/// The heading of the leak guard's options.
const LEAKS: &str = "Leak guard";

/// Find the candidates of each class: examples whose texts contain one of its names
#[derive(Args)]
pub struct Match {
    /// Classes and their names: .toml, .csv, or .txt with one WordNet synset per line; - for standard input
    #[arg(long, value_name = "FILE")]
    classes: PathBuf,

    /// Texts: YFCC100M metadata, CSV, TSV, JSON Lines or Parquet, plain or .gz, .bz2, .zst; globs, pipes, - for
    /// standard input; folders of img2dataset or clip-retrieval, or of images with a metadata.csv, .jsonl or .parquet
    #[arg(long, value_name = "FILE", num_args = 1.., required = true)]
    text: Vec<PathBuf>,

    /// Columns to search, most trusted first [default: those of title, description, caption, text, tags, user_tags that
    /// exist]
    #[arg(long = "text-column", value_name = "NAME", value_delimiter = ',')]
    text_columns: Vec<String>,

    /// Id column [default: id, key, uid, image_path or file_name; for a folder of images,
    /// file_name]
    #[arg(long, value_name = "NAME")]
    id_column: Option<String>,

    /// Rule for matching names in texts
    #[arg(long, value_enum, default_value = "phrase")]
    rule: MatchRule,

    /// Format of the texts [default: by file name and content]
    #[arg(long, value_enum)]
    format: Option<TextFormat>,

    /// Decode percent-encoded texts (`caf%C3%A9+bar`); always on for YFCC100M
    #[arg(long)]
    percent_encoded: bool,

    /// Stop at the first malformed row or damaged file instead of counting and skipping it
    #[arg(long)]
    strict: bool,

    /// Columns of the texts to add to the candidates
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    keep: Vec<String>,

    /// Write the photos of the candidates, each once, as a list for img2dataset (.parquet or .csv)
    #[arg(long, value_name = "FILE")]
    download_list: Option<PathBuf>,

    /// Column of the photos' URLs [default: url, URL, image_url or downloadurl; that of YFCC100M]
    #[arg(long, value_name = "NAME", requires = "download_list")]
    url_column: Option<String>,

    /// Search one of N shards of the texts, from 0, cut by bytes; the output is a part for `labelsieve merge`
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,

    /// Write the number of candidates per class as JSON (.json)
    #[arg(long, value_name = "FILE")]
    stats: Option<PathBuf>,

    /// Output file, .parquet or .csv; - for CSV on stdout, with statistics on stderr
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    #[command(flatten)]
    leaks: LeakArguments,

    #[command(flatten)]
    json: JsonArguments,
}

/// The options that switch the leak guard on.
#[derive(Args)]
struct LeakArguments {
    /// Features of the clean and test examples, which must not be among the candidates
    #[arg(long, value_name = "FILE", requires = "features", help_heading = LEAKS)]
    guard_features: Vec<PathBuf>,

    /// Features of the candidates, by the same network
    #[arg(long, value_name = "FILE", requires = "guard_features", help_heading = LEAKS)]
    features: Option<PathBuf>,

    /// Minimum cosine similarity of two copies of the same photo
    #[arg(long, value_name = "COSINE", default_value_t = 0.95, value_parser = cosine, help_heading = LEAKS)]
    near_duplicate: f32,

    /// Drop copies instead of flagging them
    #[arg(long, requires = "guard_features", help_heading = LEAKS)]
    drop_leaks: bool,

    #[command(flatten, next_help_heading = LEAKS)]
    mixed: MixedArguments,
}

/// The command that downloads a list; ids survive it in a column of their own.
fn how_to_download(list: &Path) -> String {
    let ending = list.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    format!(
        "img2dataset --url_list {} --input_format {ending} --url_col url --caption_col caption \
         --save_additional_columns '[\"id\"]' --output_format webdataset --output_folder photos",
        shell_word(list)
    )
}

fn cosine(text: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
        _ => Err("expected a number in [0, 1]".to_owned()),
    }
}

impl LeakArguments {
    fn check(&self) -> Option<LeakCheck> {
        Some(LeakCheck {
            guard_features: self.guard_features.clone(),
            features: self.features.clone()?,
            near_duplicate: self.near_duplicate,
            fate: if self.drop_leaks { LeakFate::Drop } else { LeakFate::Flag },
            mixed: self.mixed.mixed(),
        })
    }
}

impl Match {
    pub fn check_options(&self, given: &Given) -> Result<()> {
        match self.leaks.guard_features.is_empty() {
            false => Ok(()),
            true => {
                given.refuse(&["near_duplicate"], "match without --guard-features", "give --guard-features")
            }
        }
    }

    fn download_list(&self) -> Option<DownloadList> {
        let path = self.download_list.clone()?;
        Some(DownloadList { path, url_column: self.url_column.clone() })
    }

    pub fn run(&self, printer: &Printer) -> Result<()> {
        refuse_json_beside(self.json, &self.output)?;
        let job = Job {
            classes: self.classes.clone(),
            texts: self.text.clone(),
            columns: TextColumns {
                format: self.format,
                id: self.id_column.clone(),
                texts: self.text_columns.clone(),
                encoding: self.percent_encoded.then_some(TextEncoding::Percent),
                keep: Vec::new(),
            },
            rule: self.rule,
            on_bad_row: if self.strict { OnBadRow::Stop } else { OnBadRow::Skip },
            leaks: self.leaks.check(),
            keep: self.keep.clone(),
            download_list: self.download_list(),
            shard: self.shard,
            stats: self.stats.clone(),
            output: self.output.clone(),
        };
        let matched = job.run(printer)?;
        if let (Some(list), None) = (&self.download_list, &matched.part) {
            printer.hint(&how_to_download(list).into());
        }
        if self.json.json {
            return printer.json("match", &matched);
        }
        let statistics = matched.statistics.to_string();
        let statistics = statistics.trim_end();
        if self.output == Path::new("-") {
            printer.note(statistics);
            return Ok(());
        }
        let (n, output) = (matched.statistics.n_candidates, self.output.display());
        match matched.part {
            Some(part) if part.was_complete => {}
            _ => printer.note(&format!("{} written to `{output}`", counted(n as usize, "candidate"))),
        }
        printer.data(statistics)
    }
}
