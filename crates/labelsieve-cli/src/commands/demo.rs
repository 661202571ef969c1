//! `labelsieve demo`: the whole pipeline in a few seconds, each step as the command a user would type.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, Parser};
use labelsieve::Features;
use labelsieve::synthetic::{Recipe, SyntheticTask};
use labelsieve_data::NpzWriter;

use super::Command;
use crate::printer::Printer;

/// Run the whole pipeline on generated features
#[derive(Args)]
pub struct Demo {
    /// Folder for the files of the demo
    #[arg(long, value_name = "DIR", default_value = "labelsieve-demo")]
    dir: PathBuf,

    /// Seed of the generated features
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
        let recipe = Recipe { n_clean: 2, ..Recipe::default() };
        std::fs::create_dir_all(&self.dir).map_err(labelsieve_data::DataError::io("write", &self.dir))?;
        printer.note(
            "Generated features, not photos: 20 classes, each an invented word with several senses. Of the",
        );
        printer
            .note("candidates that the word brings, 60 % mean something else. 2 clean examples per class.\n");
        self.write(&recipe.generate(self.seed))?;
        let file = |name: &str| self.dir.join(name).display().to_string();
        let pools = ["--clean".to_owned(), file("clean.npz"), "--noisy".to_owned(), file("noisy.npz")];
        let ways = [
            ("beta", "every candidate counts the same", vec!["--method", "beta"]),
            ("gcn", "every candidate counts by its relevance", vec!["--method", "gcn"]),
        ];
        for (name, meaning, options) in ways {
            printer.note(&format!("# {meaning}"));
            let relevance = file(&format!("relevance-{name}.parquet"));
            let clean =
                [vec!["clean"], pools.iter().map(String::as_str).collect(), options, vec!["-o", &relevance]];
            self.step(printer, &clean.concat())?;
            for classifier in ["prototype", "cosine"] {
                let model = file(&format!("{name}-{classifier}.safetensors"));
                let train = [
                    vec!["train"],
                    pools.iter().map(String::as_str).collect(),
                    vec!["--relevance", &relevance, "--classifier", classifier, "-o", &model],
                ];
                self.step(printer, &train.concat())?;
                self.step(printer, &["evaluate", "--model", &model, "--test", &file("test.npz")])?;
            }
        }
        printer.note("\nNext: the same commands with your own features, e.g. a clip-retrieval folder or Parquet files.");
        printer.note("`labelsieve clean --help` lists the formats; `labelsieve bench sanity` shows when cleaning helps.");
        Ok(())
    }

    /// Shows a command and runs it.
    fn step(&self, printer: &Printer, words: &[&str]) -> Result<()> {
        printer.note(&format!("$ labelsieve {}", words.join(" ")));
        let line = Line::try_parse_from(["labelsieve"].iter().chain(words))?;
        line.command.run(printer)
    }

    fn write(&self, task: &SyntheticTask) -> Result<()> {
        let clean: Vec<&Features> = task.classes.iter().map(|class| &class.clean).collect();
        let noisy: Vec<&Features> = task.classes.iter().map(|class| &class.noisy).collect();
        save(&self.dir.join("clean.npz"), &clean)?;
        save(&self.dir.join("noisy.npz"), &noisy)?;
        let labels: Vec<i64> = task.test_labels.iter().map(|&label| label as i64).collect();
        save_with_labels(&self.dir.join("test.npz"), &[&task.test], &labels)
    }
}

/// Saves one set per class, labelled by its position.
fn save(path: &Path, sets: &[&Features]) -> Result<()> {
    let labels: Vec<i64> = sets
        .iter()
        .enumerate()
        .flat_map(|(class, set)| std::iter::repeat_n(class as i64, set.len()))
        .collect();
    save_with_labels(path, sets, &labels)
}

fn save_with_labels(path: &Path, sets: &[&Features], labels: &[i64]) -> Result<()> {
    let data: Vec<f32> = sets.iter().flat_map(|set| set.block(0..set.len())).copied().collect();
    NpzWriter::create(path)?
        .f32("features_all", &[labels.len(), sets[0].dim()], &data)?
        .i64("labels_all", &[labels.len()], labels)?
        .finish()?;
    Ok(())
}
