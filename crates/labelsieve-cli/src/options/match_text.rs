//! Options of `match`.

use std::path::PathBuf;

use clap::Args;
use labelsieve_files::Shard;
use labelsieve_matching::job::{DownloadList, LeakCheck, LeakFate, Match};
use labelsieve_matching::names::{MatchRule, TextEncoding};
use labelsieve_matching::text::{OnBadRow, TextColumns, TextFormat};

use crate::arguments::MixedArguments;

/// The heading of the leak guard's options.
const LEAKS: &str = "Leak guard";

/// Classes, the texts that name them, and the columns of both.
#[derive(Args, Clone, Debug)]
pub struct MatchOptions {
    /// Classes and their names: .toml, .csv, or .txt with one WordNet synset per line; - for standard input
    #[arg(long, value_name = "FILE")]
    pub classes: PathBuf,

    /// Texts: YFCC100M metadata, CSV, TSV, JSON Lines or Parquet, plain or .gz, .bz2, .zst; globs, pipes, - for
    /// standard input; folders of img2dataset or clip-retrieval, or of images with a metadata.csv, .jsonl or .parquet
    #[arg(long, value_name = "FILE", num_args = 1.., required = true)]
    pub text: Vec<PathBuf>,

    /// Columns to search, most trusted first [default: those of title, description, caption, text, tags, user_tags that
    /// exist]
    #[arg(long = "text-column", value_name = "NAME", value_delimiter = ',')]
    pub text_columns: Vec<String>,

    /// Id column [default: id, key, uid, image_path or file_name; for a folder of images,
    /// file_name]
    #[arg(long, value_name = "NAME")]
    pub id_column: Option<String>,

    /// Rule for matching names in texts
    #[arg(long, value_enum, default_value = "phrase")]
    pub rule: MatchRule,

    /// Format of the texts [default: by file name and content]
    #[arg(long, value_enum)]
    pub format: Option<TextFormat>,

    /// Decode percent-encoded texts (`caf%C3%A9+bar`); always on for YFCC100M
    #[arg(long)]
    pub percent_encoded: bool,

    /// Stop at the first malformed row or damaged file instead of counting and skipping it
    #[arg(long)]
    pub strict: bool,

    /// Columns of the texts to add to the candidates
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub keep: Vec<String>,

    /// Write the photos of the candidates, each once, as a list for img2dataset (.parquet or .csv)
    #[arg(long, value_name = "FILE")]
    pub download_list: Option<PathBuf>,

    /// Column of the photos' URLs [default: url, URL, image_url or downloadurl; that of YFCC100M]
    #[arg(long, value_name = "NAME", requires = "download_list")]
    pub url_column: Option<String>,

    /// Search one of N shards of the texts, from 0, cut by bytes; the output is a part for `labelsieve merge`
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,

    /// Write the number of candidates per class as JSON (.json)
    #[arg(long, value_name = "FILE")]
    pub stats: Option<PathBuf>,

    /// Output file, .parquet or .csv; - for CSV on stdout, with statistics on stderr
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,

    #[command(flatten)]
    pub(crate) leaks: LeakArguments,
}

/// The options that switch the leak guard on.
#[derive(Args, Clone, Debug)]
pub struct LeakArguments {
    /// Features of the clean and test examples, which must not be among the candidates
    #[arg(long, value_name = "FILE", requires = "features", help_heading = LEAKS)]
    pub guard_features: Vec<PathBuf>,

    /// Features of the candidates, by the same network
    #[arg(long, value_name = "FILE", requires = "guard_features", help_heading = LEAKS)]
    pub features: Option<PathBuf>,

    /// Minimum cosine similarity of two copies of the same photo
    #[arg(long, value_name = "COSINE", default_value_t = 0.95, value_parser = cosine, help_heading = LEAKS)]
    pub near_duplicate: f32,

    /// Drop copies instead of flagging them
    #[arg(long, requires = "guard_features", help_heading = LEAKS)]
    pub drop_leaks: bool,

    #[command(flatten, next_help_heading = LEAKS)]
    pub(crate) mixed: MixedArguments,
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

impl MatchOptions {
    /// The job that they describe.
    pub fn job(&self) -> Match {
        Match {
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
        }
    }

    fn download_list(&self) -> Option<DownloadList> {
        let path = self.download_list.clone()?;
        Some(DownloadList { path, url_column: self.url_column.clone() })
    }
}

fn cosine(text: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
        _ => Err("expected a number in [0, 1]".to_owned()),
    }
}
