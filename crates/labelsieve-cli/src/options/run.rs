//! Options of `run`.

use std::path::PathBuf;

use clap::Args;
use labelsieve_jobs::run::Run;
use labelsieve_matching::names::MatchRule;

use crate::arguments::{DEFAULT_METHOD, DeviceArguments, MethodName, SeedArguments};

/// Two folders of photos, and how they become a classifier.
#[derive(Args, Clone, Debug)]
pub struct RunOptions {
    /// Clean photos: a folder with a folder per class, or another source of images with classes
    #[arg(long, value_name = "SOURCE")]
    pub clean: PathBuf,

    /// Noisy photos, with captions (metadata.csv, .jsonl or .parquet in the folder, or --text) or in a folder per class
    #[arg(long, value_name = "SOURCE")]
    pub pool: PathBuf,

    /// Classes and their names, to find in captions: .toml, .csv or .txt [default: the folders of --clean]
    #[arg(long, value_name = "FILE")]
    pub classes: Option<PathBuf>,

    /// Captions of the pool, as `labelsieve match` takes them [default: those in the pool's folder, if any]
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub text: Vec<PathBuf>,

    /// Rule for matching names in captions
    #[arg(long, value_enum, default_value = "plural")]
    pub rule: MatchRule,

    /// Network for features, as `labelsieve embed` takes it [default: efficientnet-lite0, which is built in]
    #[arg(long, value_name = "NAME|FILE|FOLDER")]
    pub model: Option<PathBuf>,

    /// Method for scoring relevance, with its usual settings
    #[arg(long, value_enum, default_value = DEFAULT_METHOD)]
    pub method: MethodName,

    /// Base classes to compare candidates with, as `labelsieve score` takes them, e.g. the file of --model
    #[arg(long, value_name = "FILE")]
    pub base: Option<PathBuf>,

    /// Decisions about candidates, as `labelsieve score` takes them; a run with other decisions keeps its features, as does one
    /// with another method or other base classes
    #[arg(long, value_name = "FILE")]
    pub decisions: Option<PathBuf>,

    /// Output folder: a new or empty one, or that of an earlier run, which is resumed
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,

    #[command(flatten)]
    pub(crate) device: DeviceArguments,

    #[command(flatten)]
    pub(crate) seed: SeedArguments,
}

impl RunOptions {
    /// The job that they describe.
    pub fn job(&self) -> Run {
        Run {
            clean: self.clean.clone(),
            pool: self.pool.clone(),
            classes: self.classes.clone(),
            text: self.text.clone(),
            rule: self.rule,
            model: self.model.clone(),
            method: self.method.name(),
            base: self.base.clone(),
            decisions: self.decisions.clone(),
            output: self.output.clone(),
            device: self.device.device,
            seed: self.seed.seed,
        }
    }
}
