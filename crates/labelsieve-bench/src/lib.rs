//! `labelsieve-bench`: the paper's tables and figures, further benchmarks, and the systems that the paper compares with, which are not
//! part of the product.
//!
//! # Benchmarks
//! - `paper/`: the paper's tables from its released features; `photos/`: its tables and figures on photos, including the protocol of
//!   mini-ImageNet, which `mini_imagenet/` converts to a photo set. Both share `protocol/`: shots, episodes, tuning, journal and tables.
//! - `relevance/`: all relevance methods on sets with ground truth; `review/`: a simulated reviewer. Both read the sets of `sets/`.
//! - `sanity`: all methods on generated pools; `class`: the time of each stage for one class.
//!
//! # Compared systems
//! `classifier/` implements them in memory, `files/` loads and saves them, `jobs/` trains them from files to files, `commands/` parses the
//! arguments. `systems/` measures them as rows of the `paper` and `photos` tables.
//!
//! `output` prints results: tables, or JSON.

mod class;
pub mod classifier;
mod commands;
mod files;
#[cfg(test)]
#[path = "../../labelsieve/src/golden.rs"]
mod golden;
mod jobs;
mod mini_imagenet;
mod output;
mod paper;
mod photos;
mod protocol;
mod relevance;
mod review;
mod sanity;
mod sets;
mod systems;
use std::ffi::OsString;

use anyhow::Result;
use clap::Subcommand;
use class::Class;
use commands::{Pretrain, Train, TrainAttention, TrainEpisodes};
use labelsieve_cli::commands::{Evaluate, Predict};
use labelsieve_cli::front_end::{self, Commands};
use labelsieve_cli::help::{self, Example};
use labelsieve_cli::{Given, Printer};
use mini_imagenet::MiniImageNet;
use paper::Paper;
use photos::Photos;
use relevance::Relevance;
use review::Review;
use sanity::Sanity;

pub use paper::legacy_numpy::LegacyNumpyRandom;
pub use paper::splits::{CategorySplits, EpisodeSplits, read_class_ids};

/// The heading of the common options in the help, as in `labelsieve`.
const COMMON: &str = "Common options";

/// Runs a command line, whose first argument is the program's name, and returns the exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    front_end::run::<Command>(arguments.into_iter().collect())
}

#[derive(Subcommand)]
enum Command {
    /// Reproduce the paper's tables from its released features
    Paper(Box<Paper>),
    /// Reproduce the paper's tables and figures on photos
    Photos(Box<Photos>),
    /// Make a photo set of mini-ImageNet for `labelsieve-bench photos`
    MiniImagenet(MiniImageNet),
    /// Time one class: search, graph, training
    Class(Class),
    /// Run every method on generated pools with ground truth
    Sanity(Sanity),
    /// Compare the relevance methods on sets with ground truth
    Relevance(Relevance),
    /// Compare the orders in which a simulated reviewer decides about candidates
    Review(Review),
    /// Train a backbone as a prototypical network, on episodes of a few base classes
    Pretrain(Box<Pretrain>),
    /// Train a generator of class weights from few examples and similar base classes
    TrainAttention(TrainAttention),
    /// Train a hallucinator or a matching network on episodes of base classes
    TrainEpisodes(TrainEpisodes),
    /// Train a classifier that the paper compares with
    Train(Box<Train>),
    /// Predict the classes of new examples, with any classifier
    Predict(Box<Predict>),
    /// Evaluate any classifier on labelled examples, or relevance against ground truth
    #[command(override_usage = "labelsieve-bench evaluate [OPTIONS] --model <FILE> --test <FILE>\n       \
                                labelsieve-bench evaluate [OPTIONS] --relevance <FILE> --truth <FILE>")]
    Evaluate(Box<Evaluate>),
}

/// As the documents show them, shortened.
const EXAMPLES: [Example; 13] = [
    Example { command: "paper", line: "labelsieve-bench paper --features DIR --splits DIR" },
    Example { command: "photos", line: "labelsieve-bench photos configs/tiny.toml --data DIR -o runs/tiny" },
    Example {
        command: "mini-imagenet",
        line: "labelsieve-bench mini-imagenet --splits LISTS --images IMAGENET -o mini-imagenet.parquet",
    },
    Example { command: "class", line: "labelsieve-bench class rows.npz --repeats 5" },
    Example { command: "sanity", line: "labelsieve-bench sanity" },
    Example { command: "relevance", line: "labelsieve-bench relevance -o runs/relevance" },
    Example { command: "review", line: "labelsieve-bench review -o runs/review --draws 10" },
    Example {
        command: "pretrain",
        line: "labelsieve-bench pretrain --images photos/base --ways 20 --shots 5 --queries 15 -o network.safetensors",
    },
    Example {
        command: "train-attention",
        line: "labelsieve-bench train-attention --base base.parquet -o generator.safetensors",
    },
    Example {
        command: "train-episodes",
        line: "labelsieve-bench train-episodes --base base.parquet --system pmn -o system.safetensors",
    },
    Example {
        command: "train",
        line: "labelsieve-bench train --clean clean.parquet --pool pool.parquet --relevance relevance.parquet --classifier diffusion -o model.safetensors",
    },
    Example {
        command: "predict",
        line: "labelsieve-bench predict --model model.safetensors --features new.parquet -o predictions.csv",
    },
    Example {
        command: "evaluate",
        line: "labelsieve-bench evaluate --model model.safetensors --test test.parquet",
    },
];

impl Commands for Command {
    const NAME: &'static str = "labelsieve-bench";
    const ABOUT: &'static str = "Benchmarks of Labelsieve, and the systems that the paper compares with";

    fn dressed(command: clap::Command) -> clap::Command {
        help::with_examples(command, &EXAMPLES)
    }

    fn check_options(&self, given: &Given) -> Result<()> {
        match self {
            Command::Pretrain(command) => command.check_options(given),
            Command::TrainAttention(command) => command.check_options(given),
            Command::TrainEpisodes(command) => command.check_options(given),
            Command::Train(command) => command.check_options(given),
            Command::Predict(command) => command.check_options(given),
            Command::Evaluate(command) => command.check_options(given),
            // Benchmarks use all their options, or check them when they run.
            _ => Ok(()),
        }
    }

    /// Benchmarks print their results to stdout, as tables or JSON. A closed pipe does not stop them, since they may still have files to
    /// write.
    fn run(&self, printer: &Printer) -> Result<()> {
        let mut out = printer.lines();
        match self {
            Command::Paper(bench) => bench.run(printer, &mut out)?,
            Command::Photos(bench) => bench.run(printer, &mut out)?,
            Command::MiniImagenet(bench) => bench.run(printer, &mut out)?,
            Command::Class(bench) => bench.run(&mut out)?,
            Command::Sanity(bench) => bench.run(printer, &mut out)?,
            Command::Relevance(bench) => bench.run(printer, &mut out)?,
            Command::Review(bench) => bench.run(printer, &mut out)?,
            Command::Pretrain(command) => command.run(printer)?,
            Command::TrainAttention(command) => command.run(printer)?,
            Command::TrainEpisodes(command) => command.run(printer)?,
            Command::Train(command) => command.run(printer)?,
            Command::Predict(command) => command.run_with(files::load_classifier, printer)?,
            Command::Evaluate(command) => command.run_with(files::load_classifier, printer)?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_an_example_that_parses() {
        help::assert_examples(&front_end::command_line::<Command>());
    }
}
