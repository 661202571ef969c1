//! `labelsieve demo`: the whole pipeline on real icons, each step as the command a user would type.

mod comparison;
mod folder;
mod sample;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use labelsieve_files::work::{Monitor, SavedWork};
use labelsieve_report::{RunDirectory, RunInfo};

use self::comparison::Comparison;
use self::folder::Folder;
use self::sample::Sample;
use super::words::{Words, run_step, words};
use crate::answers::DemoAnswer;
use crate::arguments::{JsonArguments, SeedArguments};
use crate::printer::Printer;

/// Run the whole pipeline on built-in icons
#[derive(Args)]
pub struct Demo {
    /// Folder for the files of the demo: a new or empty one, or that of an earlier demo
    #[arg(long, value_name = "DIR", default_value = "labelsieve-demo")]
    dir: PathBuf,

    /// Clean examples per class, if that many exist
    #[arg(long, value_name = "K", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=10))]
    clean_examples: u8,

    #[command(flatten)]
    seed: SeedArguments,

    #[command(flatten)]
    json: JsonArguments,
}

impl Demo {
    pub fn run(&self, printer: &Printer) -> Result<()> {
        printer.keep(SavedWork::StartsOver);
        let as_notes = printer.for_steps();
        let steps = if self.json.json { &as_notes } else { printer };
        let folder = Folder::claim(&self.dir)?;
        printer.note("A word means several things: *mouse* is an animal and a device. Here are 32 such words, one meaning of");
        printer.note("each, a few clean examples, and some 2,800 icons that have the word in the names their authors gave them.");
        let sample = Sample::write(&folder, usize::from(self.clean_examples), printer)?;
        printer.note(&sample.summary());

        let mut commands = Vec::new();
        for (why, words) in self.steps(&folder) {
            commands.push(run_step(why, &words, steps)?);
        }
        let comparison = Comparison::measure(&folder, &sample, self.seed.seed)?;
        let report = folder.path("report.html");
        let show = words("report").path(folder.path("run")).option("-o", &report);
        commands.push(show.to_string());
        self.write_run(&folder, &sample, &comparison, commands)?;
        run_step("Write a report", &show, steps)?;
        if self.json.json {
            return printer
                .json("demo", &DemoAnswer { report: report.display().to_string(), rows: comparison.rows() });
        }

        printer.note("");
        printer.data(&comparison.text())?;
        printer.note(&format!(
            "\nOpen `{}` in a browser: every candidate with its relevance, the relevant ones first.",
            report.display()
        ));
        let review = words("review").path(&self.dir);
        printer.note(&format!(
            "Look at some candidates yourself and decide, and see the relevance follow: `{review}`."
        ));
        printer.note("Next, your own photos: `labelsieve run --clean FOLDER --pool FOLDER -o out`. The README starts from captions, features,");
        printer.note("clip-retrieval folders and Parquet files too.");
        Ok(())
    }

    /// The main path: why, and the command.
    fn steps(&self, folder: &Folder) -> Vec<(&'static str, Words)> {
        let path = |name: &str| folder.path(name);
        let embed = |part: &str| {
            words("embed")
                .option("--model", path("network.safetensors"))
                .option("--images", path(&format!("images/{part}")))
                .option("-o", path(&format!("{part}.parquet")))
                .option("--device", "cpu")
        };
        let with_pools = |command: &str| {
            words(command).option("--clean", path("clean.parquet")).option("--pool", path("pool.parquet"))
        };
        let seed = self.seed.seed.to_string();
        vec![
            (
                "Find the candidates: icons whose names contain the word",
                words("match")
                    .option("--classes", path("classes.toml"))
                    .option("--text", path("images/pool/metadata.csv"))
                    .option("--rule", "plural")
                    .option("-o", path("candidates.parquet")),
            ),
            ("Compute features of the clean examples, with a network trained on other icons", embed("clean")),
            ("Compute features of the candidates", embed("pool")),
            ("Compute features of the test icons", embed("test")),
            (
                "Score the relevance of every candidate to its word, beside the other words and the network's own classes",
                with_pools("score")
                    .option("--candidates", path("candidates.parquet"))
                    .option("--base", path("network.safetensors"))
                    .option("--seed", &seed)
                    .option("--device", "cpu")
                    .option("-o", path("relevance.parquet")),
            ),
            (
                "Train a classifier with every candidate weighted by its relevance",
                with_pools("train")
                    .option("--relevance", path("relevance.parquet"))
                    .option("--seed", &seed)
                    .option("--device", "cpu")
                    .option("-o", path("model.safetensors")),
            ),
            (
                "Compare relevance with ground truth: somebody looked at every icon",
                words("evaluate")
                    .option("--relevance", path("relevance.parquet"))
                    .option("--truth", path("truth.parquet")),
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
                "{} The noise is real: icons that show another meaning of the word.",
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
        let info =
            info.setting("clean examples per class", self.clean_examples).setting("seed", self.seed.seed);
        let run = RunDirectory::create(folder.path("run"), info)?;
        run.write_tables(&[comparison.table()])?;
        copy(&folder.path("relevance.parquet"), &run.relevance_path())?;
        copy(&folder.path("truth.parquet"), &run.truth_path())?;
        sample.write_thumbnails(&run.thumbnails_path())
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::copy(from, to).map_err(labelsieve_files::DataError::io("write", to))?;
    Ok(())
}
