//! `labelsieve-bench`: the paper's tables from its released features, the same on photos, every method on generated pools,
//! every method on sets whose truth is known, where the time of one class goes, and what a person's decisions are worth; and the
//! systems that the paper compares with, which the product does without.
//!
//! `protocol/` is what the benchmarks with shots and episodes share, `sets/` what those on sets of known truth do; the others
//! have a file each. `commands/` are those that train such a system and use it.

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
use labelsieve_cli::{Given, Printer};
use mini_imagenet::MiniImageNet;
use paper::Paper;
use photos::Photos;
use relevance::Relevance;
use review::Review;
use sanity::Sanity;

pub use paper::legacy_numpy::LegacyNumpyRandom;
pub use paper::splits::{CategorySplits, EpisodeSplits, read_class_ids};

/// The heading of options that every command has, as in the other commands.
const COMMON: &str = "Common options";

/// Runs the command that `arguments` spell, the program's name first, and returns the exit code.
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
    /// Compare the methods on sets whose truth is known
    Relevance(Relevance),
    /// Let a simulated reviewer decide, in every order of looking
    Review(Review),
    /// Train a backbone by episodes of a few base classes, each the mean of a few examples
    Pretrain(Box<Pretrain>),
    /// Train a generator of class weights from few examples and similar base classes
    TrainAttention(TrainAttention),
    /// Train a hallucinator of examples or a matching network on episodes of base classes
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

impl Commands for Command {
    const NAME: &'static str = "labelsieve-bench";
    const ABOUT: &'static str = "Benchmarks of Labelsieve, and the systems that the paper compares with";

    fn check_options(&self, given: &Given) -> Result<()> {
        match self {
            Command::Pretrain(command) => command.check_options(given),
            Command::TrainAttention(command) => command.check_options(given),
            Command::TrainEpisodes(command) => command.check_options(given),
            Command::Train(command) => command.check_options(given),
            Command::Predict(command) => command.check_options(given),
            Command::Evaluate(command) => command.check_options(given),
            // All options of the benchmarks count, or they refuse them themselves.
            _ => Ok(()),
        }
    }

    /// Benchmarks write their result to stdout: tables for people, or JSON if that was asked for. A reader who has gone ends
    /// nothing, since files may still be to be written.
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
