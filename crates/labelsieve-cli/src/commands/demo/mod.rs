//! `labelsieve demo`: the whole pipeline on real icons, each step as the command a user would type.

mod comparison;
mod sample;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, Parser};
use labelsieve_data::{RunDirectory, RunInfo};

use self::comparison::Comparison;
use self::sample::Sample;
use super::Command;
use crate::printer::Printer;

/// Run the whole pipeline on icons that come with the program
#[derive(Args)]
pub struct Demo {
    /// Folder for the files of the demo
    #[arg(long, value_name = "DIR", default_value = "labelsieve-demo")]
    dir: PathBuf,

    /// Clean examples per class, as far as there are so many
    #[arg(long, value_name = "K", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=10))]
    clean_examples: u8,

    /// The same seed gives the same result
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// A command line inside a command line.
#[derive(Parser)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

impl Demo {
    pub fn run(&self, printer: &Printer) -> Result<()> {
        let folder = Folder(&self.dir);
        std::fs::create_dir_all(&self.dir).map_err(labelsieve_data::DataError::io("write", &self.dir))?;
        printer.note("A word means several things: *mouse* is an animal and a device. Here are 32 such words, one meaning of");
        printer.note("each, a few clean examples, and some 2,800 icons that have the word in the names their authors gave them.");
        let sample = Sample::write(&folder, usize::from(self.clean_examples), printer)?;
        printer.note(&sample.summary());

        let mut commands = Vec::new();
        for (why, words) in self.steps(&folder) {
            printer.note(&format!("\n# {why}\n$ labelsieve {words}"));
            commands.push(format!("labelsieve {words}"));
            let words = words.split_whitespace().map(str::to_owned);
            Line::try_parse_from([String::from("labelsieve")].into_iter().chain(words))?
                .command
                .run(printer)?;
        }
        let comparison = Comparison::measure(&folder, &sample)?;
        let report = folder.path("report.html");
        let show = format!("report {} -o {report}", folder.path("run"));
        commands.push(format!("labelsieve {show}"));
        self.write_run(&folder, &sample, &comparison, commands)?;
        printer.note(&format!("\n# Look at it\n$ labelsieve {show}"));
        let words = show.split_whitespace().map(str::to_owned);
        Line::try_parse_from([String::from("labelsieve")].into_iter().chain(words))?.command.run(printer)?;

        printer.note("");
        printer.data(&comparison.text())?;
        printer.note(&format!(
            "\nOpen `{report}` in a browser: every candidate with its relevance, the relevant ones first."
        ));
        printer.note("Next, your own data: a folder of images with captions, a clip-retrieval folder or a Parquet file with");
        printer.note(
            "embeddings; the README has five lines for each. `labelsieve clean --help` lists all formats.",
        );
        Ok(())
    }

    /// The main path: why, and the command.
    fn steps(&self, folder: &Folder) -> Vec<(&'static str, String)> {
        let path = |name: &str| folder.path(name);
        let network = path("network.safetensors");
        let embed = |part: &str| {
            format!(
                "embed --model {network} --images {} -o {} --device cpu",
                path(&format!("images/{part}")),
                path(&format!("{part}.parquet"))
            )
        };
        let pools = format!("--clean {} --noisy {}", path("clean.parquet"), path("pool.parquet"));
        vec![
            (
                "Find the candidates: icons whose names contain the word",
                format!(
                    "match --classes {} --text {} --rule plural -o {}",
                    path("classes.toml"),
                    path("images/pool/metadata.csv"),
                    path("candidates.parquet")
                ),
            ),
            ("Turn the clean examples into features, with a network trained on other icons", embed("clean")),
            ("The candidates", embed("pool")),
            ("And the icons to test on", embed("test")),
            (
                "Score the relevance of every candidate to its word",
                format!(
                    "clean {pools} --candidates {} --seed {} --device cpu -o {}",
                    path("candidates.parquet"),
                    self.seed,
                    path("relevance.parquet")
                ),
            ),
            (
                "Learn a classifier in which every candidate counts by its relevance",
                format!(
                    "train {pools} --relevance {} --classifier cosine --seed {} --device cpu -o {}",
                    path("relevance.parquet"),
                    self.seed,
                    path("model.safetensors")
                ),
            ),
            (
                "Was the relevance right? Somebody looked at every icon",
                format!(
                    "evaluate --relevance {} --truth {}",
                    path("relevance.parquet"),
                    path("truth.parquet")
                ),
            ),
        ]
    }

    fn write_run(
        &self,
        folder: &Folder,
        sample: &Sample,
        comparison: &Comparison,
        commands: Vec<String>,
    ) -> Result<()> {
        let info = RunInfo {
            description: format!(
                "{} The noise is real: what the word brings besides the meaning that counts.",
                sample.summary()
            ),
            class_names: sample.display_names.clone(),
            commands,
            notes: vec![
                "Icons of many authors under MIT, Apache-2.0, ISC, CC0 and CC-BY licences; ATTRIBUTION.md beside the \
                 images names them all."
                    .to_owned(),
            ],
            ..RunInfo::new("Icons for 32 ambiguous words")
        };
        let info = info.setting("clean examples per class", self.clean_examples).setting("seed", self.seed);
        let run = RunDirectory::create(folder.path("run"), info)?;
        run.write_tables(&[comparison.table()])?;
        copy(&folder.path("relevance.parquet"), &run.relevance_path())?;
        copy(&folder.path("truth.parquet"), &run.truth_path())?;
        sample.write_thumbnails(&run.thumbnails_path())
    }
}

/// The folder of the demo.
struct Folder<'a>(&'a Path);

impl Folder<'_> {
    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

fn copy(from: &str, to: &Path) -> Result<()> {
    std::fs::copy(from, to).map_err(labelsieve_data::DataError::io("write", to))?;
    Ok(())
}
