//! Options of `review`.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use clap::{ArgGroup, Args};

use crate::arguments::{ColumnArguments, DeviceArguments, MixedArguments};

/// Relevance to look at, the files that it was made from, and the server of the page.
#[derive(Args, Clone, Debug)]
#[command(group(ArgGroup::new("verified").args(["clean", "class_text"]).multiple(true)))]
pub struct ReviewOptions {
    /// Relevance file (from `labelsieve score`), or the folder of `labelsieve run` or `demo`, in which everything else is
    /// found
    #[arg(value_name = "RELEVANCE", required_unless_present = "demo")]
    pub source: Option<PathBuf>,

    /// Review the demo's icons; runs the demo first if `labelsieve-demo` does not exist
    #[arg(long, conflicts_with = "source")]
    pub demo: bool,

    /// Pictures of clean examples and candidates: folders, .parquet files with image bytes, .tar files, image files
    #[arg(long, value_name = "SOURCE", num_args = 1..)]
    pub images: Vec<PathBuf>,

    /// Image column [default: image, img, jpg or bytes]
    #[arg(long, value_name = "NAME")]
    pub image_column: Option<String>,

    /// Captions of the examples: the files that `labelsieve match` takes [default: those beside the images]
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub text: Vec<PathBuf>,

    /// Caption column; repeatable [default: caption, title, text or description]
    #[arg(long = "text-column", value_name = "NAME")]
    pub text_columns: Vec<String>,

    /// Features of the clean examples, as given to `labelsieve score`; without features, relevance stays as it is
    #[arg(long, value_name = "FILE", requires = "pool")]
    pub clean: Option<PathBuf>,

    /// Features of the candidates, as given to `labelsieve score`
    #[arg(long, value_name = "FILE", requires = "verified")]
    pub pool: Option<PathBuf>,

    /// Class texts, if given to `labelsieve score`
    #[arg(long, value_name = "FILE", requires = "pool")]
    pub class_text: Option<PathBuf>,

    /// Candidates of each class, if given to `labelsieve score`
    #[arg(long, value_name = "FILE", requires = "pool")]
    pub candidates: Option<PathBuf>,

    /// Base classes, if given to `labelsieve score`
    #[arg(long, value_name = "FILE")]
    pub base: Option<PathBuf>,

    /// Classes of the clean examples, for .npy
    #[arg(long, value_name = "FILE", requires = "clean")]
    pub clean_labels: Option<PathBuf>,

    /// Labels of the candidates, for .npy
    #[arg(long, value_name = "FILE", requires = "pool")]
    pub pool_labels: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) mixed: MixedArguments,

    #[command(flatten)]
    pub(crate) columns: ColumnArguments,

    /// File of the decisions (.parquet, .csv or .tsv), which is continued if it exists [default in a folder:
    /// decisions.parquet]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Who decides, noted with every decision [default: the name of the account]
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,

    /// Heading of the page
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,

    /// Port of the server [default: any free one]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub port: u16,

    /// Address to listen on; any but a loopback address lets other machines in that know the token
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub host: IpAddr,

    /// Do not open a browser
    #[arg(long)]
    pub no_open: bool,

    #[command(flatten)]
    pub(crate) device: DeviceArguments,
}
