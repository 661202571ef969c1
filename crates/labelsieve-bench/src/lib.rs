//! `labelsieve bench`: the paper's tables from its released features, the same on photos, every method on generated pools,
//! every method on sets whose truth is known, where the time of one class goes, and what a person's decisions are worth.
//!
//! [`Bench`] is a subcommand of clap: whoever parses it runs it with a [`Monitor`] and a place for the result. `protocol/` is
//! what the benchmarks with shots and episodes share, `sets/` what those on sets of known truth do; the others have a file each.

mod class;
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

use std::io::Write;

use clap::Subcommand;
use labelsieve_files::work::{Monitor, Result};

pub use class::Class;
pub use mini_imagenet::MiniImageNet;
pub use paper::Paper;
pub use paper::legacy_numpy::LegacyNumpyRandom;
pub use paper::splits::{CategorySplits, EpisodeSplits, read_class_ids};
pub use photos::Photos;
pub use relevance::Relevance;
pub use review::Review;
pub use sanity::Sanity;

/// The heading of options that every command has, as in the other commands.
const COMMON: &str = "Common options";

/// Run benchmarks
#[derive(Subcommand)]
pub enum Bench {
    /// Reproduce the paper's tables from its released features
    Paper(Paper),
    /// Reproduce the paper's tables and figures on photos
    Photos(Photos),
    /// Make a photo set of mini-ImageNet for `bench photos`
    MiniImagenet(MiniImageNet),
    /// Time one class: search, graph, training
    Class(Class),
    /// Run every method on generated pools with ground truth
    Sanity(Sanity),
    /// Compare the methods on sets whose truth is known
    Relevance(Relevance),
    /// Let a simulated reviewer decide, in every order of looking
    Review(Review),
}

impl Bench {
    /// Measures, and writes the result to `out`: tables for people, or JSON if that was asked for. A reader of `out` who has
    /// gone ends nothing, since files may still be to be written.
    pub fn run(&self, monitor: &dyn Monitor, out: &mut dyn Write) -> Result<()> {
        match self {
            Bench::Paper(bench) => bench.run(monitor, out),
            Bench::Photos(bench) => bench.run(monitor, out),
            Bench::MiniImagenet(bench) => bench.run(monitor, out),
            Bench::Class(bench) => bench.run(out),
            Bench::Sanity(bench) => bench.run(monitor, out),
            Bench::Relevance(bench) => bench.run(monitor, out),
            Bench::Review(bench) => bench.run(monitor, out),
        }
    }
}
