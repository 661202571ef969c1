//! Options of `report`.

use std::path::PathBuf;

use clap::Args;

/// A run or a relevance file, and the page that shows it.
#[derive(Args, Clone, Debug)]
pub struct ReportOptions {
    /// Run directory (from `labelsieve-bench photos` or `labelsieve demo`) or relevance file (from `labelsieve score`)
    #[arg(value_name = "RUN")]
    pub source: PathBuf,

    /// Output HTML file, self-contained
    #[arg(short, long, value_name = "FILE", required_unless_present = "figures")]
    pub output: Option<PathBuf>,

    /// Ground truth: Parquet or CSV with `id`, `class` and `relevant` [default: the run's own]
    #[arg(long, value_name = "FILE")]
    pub truth: Option<PathBuf>,

    /// Decisions to mark: .parquet, .csv or .tsv with `id`, `class` and `decision` [default: those in the relevance file]
    #[arg(long, value_name = "FILE")]
    pub decisions: Option<PathBuf>,

    /// Pictures of clean examples and candidates: folders, .parquet files with image bytes, .tar files, image
    /// files [default: the run's own]
    #[arg(long, value_name = "SOURCE", num_args = 1..)]
    pub images: Vec<PathBuf>,

    /// Image column [default: image, img, jpg or bytes]
    #[arg(long, value_name = "NAME", requires = "images")]
    pub image_column: Option<String>,

    /// Id column of images and texts [default: id, key, uid, image_path or file_name]
    #[arg(long, value_name = "NAME", requires = "images")]
    pub id_column: Option<String>,

    /// Captions of the examples: the files that `labelsieve match` takes [default: metadata.csv, .jsonl or .parquet in a
    /// folder of images, text columns of Parquet files, .txt and .json in tars]
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "images")]
    pub text: Vec<PathBuf>,

    /// Caption column; repeatable [default: caption, title, text or description]
    #[arg(long = "text-column", value_name = "NAME", requires = "images")]
    pub text_columns: Vec<String>,

    /// Output folder for the figures (.svg)
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,

    /// Heading of the page [default: the run's own]
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,

    /// Candidates shown with a picture per class, or `all`: half from the top of the ranking, a quarter each from the
    /// middle and the bottom; the others are listed
    #[arg(long, value_name = "N", default_value = "60", value_parser = per_class)]
    pub per_class: usize,
}

fn per_class(text: &str) -> Result<usize, String> {
    match text {
        "all" => Ok(usize::MAX),
        number => number.parse().map_err(|_| "expected a non-negative integer or `all`".to_owned()),
    }
}
