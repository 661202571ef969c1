//! One file per command.

mod classes;
mod completions;
mod decisions;
mod demo;
mod embed;
mod embed_text;
mod evaluate;
mod finetune;
mod man;
mod match_text;
mod merge;
mod plan;
mod predict;
mod pretrain;
mod report;
mod review;
mod run;
mod score;
mod train;
pub mod words;

use anyhow::Result;
use clap::Subcommand;

pub use evaluate::Evaluate;
pub use predict::Predict;

use crate::front_end::Commands;
use crate::given::Given;
use crate::help;
use crate::printer::Printer;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run the whole pipeline: embed, match, score, train and report, each step as its own command
    Run(Box<run::Run>),
    /// Find the candidates of each class: examples whose texts contain one of its names
    Match(Box<match_text::Match>),
    /// Make a class file from a folder per class, a list of WordNet synsets or another class file
    Classes(classes::Classes),
    /// Train a backbone on base classes, with a cosine classifier
    Pretrain(Box<pretrain::Pretrain>),
    /// Compute features of images (unit length)
    Embed(Box<embed::Embed>),
    /// Compute features of class names with the text tower of CLIP, SigLIP or OpenCLIP, for `score --class-text`
    EmbedText(embed_text::EmbedText),
    /// Score the relevance of every candidate to its class
    Score(Box<score::Score>),
    /// Pack the classes of a run into bins, each to be scored by `labelsieve score --plan FILE --bin I`
    Plan(Box<plan::Plan>),
    /// Merge the parts of a run into the file that a single run would have written, byte for byte
    Merge(merge::Merge),
    /// Import decisions about candidates from other tools, or count them
    Decisions(decisions::Decisions),
    /// Train a classifier with every candidate weighted by its relevance
    Train(Box<train::Train>),
    /// Fine-tune a whole network on images weighted by their relevance
    #[command(name = "finetune")]
    FineTune(Box<finetune::FineTune>),
    /// Predict the classes of new examples
    Predict(Box<Predict>),
    /// Evaluate a classifier on labelled examples, or relevance against ground truth
    Evaluate(Box<Evaluate>),
    /// Write an HTML report of a run or a relevance file
    Report(report::Report),
    /// Look at candidates in a browser and decide about them; the relevance follows
    Review(Box<review::Review>),
    /// Run the whole pipeline on built-in icons
    Demo(demo::Demo),
    /// Print a shell completion script
    Completions(completions::Completions),
    /// Write a manual page for every command
    Man(man::Man),
}

impl Commands for Command {
    const NAME: &'static str = "labelsieve";
    const ABOUT: &'static str = "Find the relevant examples among web-collected candidates, and train on all of them weighted by relevance";

    fn dressed(command: clap::Command) -> clap::Command {
        help::with_groups_and_examples(command)
    }

    fn check_options(&self, given: &Given) -> Result<()> {
        match self {
            Command::Match(command) => command.check_options(given),
            Command::Pretrain(command) => command.check_options(given),
            Command::Score(command) => command.check_options(given),
            Command::Plan(command) => command.check_options(given),
            Command::Train(command) => command.check_options(given),
            Command::Predict(command) => command.check_options(given),
            Command::Evaluate(command) => command.check_options(given),
            Command::Report(command) => command.check_options(given),
            Command::Review(command) => command.check_options(given),
            // All options of these count, or clap refuses them together with what they need.
            Command::Run(_)
            | Command::Classes(_)
            | Command::Decisions(_)
            | Command::Embed(_)
            | Command::EmbedText(_)
            | Command::Merge(_)
            | Command::FineTune(_)
            | Command::Demo(_)
            | Command::Completions(_)
            | Command::Man(_) => Ok(()),
        }
    }

    fn run(&self, printer: &Printer) -> Result<()> {
        match self {
            Command::Run(command) => command.run(printer),
            Command::Match(command) => command.run(printer),
            Command::Classes(command) => command.run(printer),
            Command::Pretrain(command) => command.run(printer),
            Command::Embed(command) => command.run(printer),
            Command::EmbedText(command) => command.run(printer),
            Command::Score(command) => command.run(printer),
            Command::Plan(command) => command.run(printer),
            Command::Merge(command) => command.run(printer),
            Command::Decisions(command) => command.run(printer),
            Command::Train(command) => command.run(printer),
            Command::FineTune(command) => command.run(printer),
            Command::Predict(command) => command.run(printer),
            Command::Evaluate(command) => command.run(printer),
            Command::Report(command) => command.run(printer),
            Command::Review(command) => command.run(printer),
            Command::Demo(command) => command.run(printer),
            Command::Completions(command) => command.run(printer),
            Command::Man(command) => command.run(printer),
        }
    }
}
