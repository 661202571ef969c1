//! `labelsieve run`: from two folders of photos to a classifier and a report, each step as the command a user would type.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use labelsieve::matching::MatchRule;
use labelsieve_data::images::{ImageColumns, ImageSource};
use labelsieve_data::text::{TextColumns, TextSource};
use labelsieve_data::{AtomicFile, DataError, Journal, is_stream};
use labelsieve_pipeline::Monitor;
use labelsieve_pipeline::inputs::built_in;
use labelsieve_pipeline::resume::lock::OutputLock;
use labelsieve_pipeline::resume::{self, Key};
use serde::Serialize;
use serde_json::json;

use super::words::{Words, run_step, words};
use crate::arguments::{DeviceArguments, JsonArguments, SeedArguments};
use crate::hint::user_error;
use crate::printer::Printer;

/// Run the whole pipeline: embed, match, clean, train and report, each step as its own command
#[derive(Args, Serialize)]
pub struct Run {
    /// Clean photos: a folder with a folder per class, or another source of images with classes
    #[arg(long, value_name = "SOURCE")]
    #[serde(serialize_with = "resume::debug")]
    clean: PathBuf,

    /// Noisy photos, with captions (metadata.csv, .jsonl or .parquet in the folder, or --text) or in a folder per class
    #[arg(long, value_name = "SOURCE")]
    #[serde(serialize_with = "resume::debug")]
    pool: PathBuf,

    /// Classes and their names, to find in captions: .toml, .csv or .txt [default: the folders of --clean]
    #[arg(long, value_name = "FILE")]
    #[serde(serialize_with = "resume::debug")]
    classes: Option<PathBuf>,

    /// Captions of the pool, as `labelsieve match` takes them [default: those in the pool's folder, if any]
    #[arg(long, value_name = "FILE", num_args = 1..)]
    #[serde(serialize_with = "resume::debug")]
    text: Vec<PathBuf>,

    /// Rule for matching names in captions
    #[arg(long, value_enum, default_value = "plural")]
    rule: MatchRule,

    /// Network for features (.safetensors) [default: the built-in one, trained on small photos]
    #[arg(long, value_name = "FILE")]
    #[serde(serialize_with = "resume::debug")]
    model: Option<PathBuf>,

    /// Output folder: a new or empty one, or that of an earlier run, which is resumed
    #[arg(short, long, value_name = "DIR")]
    #[serde(serialize_with = "resume::debug")]
    output: PathBuf,

    #[command(flatten)]
    #[serde(skip)]
    device: DeviceArguments,

    #[command(flatten)]
    #[serde(flatten)]
    seed: SeedArguments,

    #[command(flatten)]
    #[serde(skip)]
    json: JsonArguments,
}

/// Notes finished steps, with the state of what they wrote.
const JOURNAL: &str = "steps.journal";

/// Texts in which class names are looked for.
struct Captions {
    /// As `match` takes them.
    given: Vec<PathBuf>,
    /// The files that these are.
    files: Vec<PathBuf>,
}

/// A command, why it is run, and what it writes.
struct Step {
    why: &'static str,
    words: Words,
    output: PathBuf,
}

impl Run {
    pub fn run(&self, printer: &Printer) -> Result<()> {
        let journal = self.output.join(JOURNAL);
        check_folder(&self.output, &journal)?;
        let captions = self.captions()?;
        let key = self.key(captions.as_ref())?;
        let _lock = OutputLock::inside(&self.output)?;
        let (journal, records) = Journal::open(&journal, &key.text(printer))?;
        let finished: HashMap<String, Vec<u8>> = records.into_iter().collect();
        let model = match &self.model {
            Some(model) => model.clone(),
            None => self.write_built_in()?,
        };
        let steps = self.steps(&model, captions.as_ref());
        let step_printer = printer.for_steps(self.json);
        let mut is_done = true; // what follows a step that is run again is run again too
        for step in &steps {
            let name = step.output.display().to_string();
            is_done &= finished.get(&name).is_some_and(|stamp| {
                resume::stamp(&step.output).is_ok_and(|found| found.as_bytes() == stamp.as_slice())
            });
            if is_done {
                printer.note(&format!("\n# {}: done already, in `{name}`", step.why));
                continue;
            }
            run_step(step.why, &step.words, &step_printer)?;
            journal.append(&name, resume::stamp(&step.output)?.as_bytes())?;
        }
        let report = self.output.join("report.html");
        if self.json.json {
            let commands: Vec<String> = steps.iter().map(|step| step.words.to_string()).collect();
            let outputs: Vec<&Path> = steps.iter().map(|step| step.output.as_path()).collect();
            return printer.json("run", &json!({ "commands": commands, "outputs": outputs }));
        }
        printer.note(&format!(
            "\nOpen `{}` in a browser, or predict the classes of new photos:",
            report.display()
        ));
        printer.note(&format!(
            "$ {}",
            words("embed").option("--model", &model).option("--images", "NEW").option("-o", "new.parquet")
        ));
        let classifier = self.output.join("classifier.safetensors");
        let predict = words("predict").option("--model", classifier).option("--features", "new.parquet");
        printer.note(&format!("$ {predict}"));
        Ok(())
    }

    /// Captions, if there are any: a pool with a folder per class needs none.
    fn captions(&self) -> Result<Option<Captions>> {
        let (given, is_asked) = match self.text.is_empty() {
            true => (vec![self.pool.clone()], self.classes.is_some()),
            false => (self.text.clone(), true),
        };
        if given.iter().any(|path| is_stream(path)) {
            return Ok(Some(Captions { files: given.clone(), given })); // to look into it would be to read it
        }
        match TextSource::open(&given, &TextColumns::default()) {
            Ok(source) => {
                let files = source.paths().map(Path::to_path_buf).collect();
                Ok(Some(Captions { given, files }))
            }
            Err(_) if !is_asked && !self.has_captions() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the pool should have captions, so that one cannot do without them when they cannot be read.
    fn has_captions(&self) -> bool {
        ["csv", "jsonl", "parquet"]
            .iter()
            .any(|ending| self.pool.join("metadata").with_extension(ending).exists())
    }

    /// All that decides the results.
    fn key(&self, captions: Option<&Captions>) -> Result<Key> {
        let images = |path: &Path| ImageSource::open(&[path.to_path_buf()], &ImageColumns::default());
        let files = [&self.classes, &self.model].into_iter().flatten();
        let files = files.chain(captions.iter().flat_map(|captions| &captions.files));
        let files: Vec<&Path> = files.map(PathBuf::as_path).collect();
        let key = Key::new("run", self, &["output"])?.with_files(&files)?;
        let key = key.with(&json!({ "captions": captions.is_some(), "network": built_in::NETWORK_NAME }));
        Ok(key.with_images(&images(&self.clean)?)?.with_images(&images(&self.pool)?)?)
    }

    fn write_built_in(&self) -> Result<PathBuf> {
        let path = self.output.join(format!("{}.safetensors", built_in::NETWORK_NAME));
        if std::fs::metadata(&path).is_ok_and(|file| file.len() == built_in::NETWORK.len() as u64) {
            return Ok(path); // as an earlier run wrote it; a new one would look like another network to `embed`
        }
        let mut file = AtomicFile::create(&path)?;
        file.write_all(built_in::NETWORK).map_err(DataError::io("write", &path))?;
        file.commit()?;
        Ok(path)
    }

    fn steps(&self, model: &Path, captions: Option<&Captions>) -> Vec<Step> {
        let path = |name: &str| self.output.join(name);
        let (clean, pool) = (path("clean.parquet"), path("pool.parquet"));
        let (relevance, candidates) = (path("relevance.parquet"), path("candidates.parquet"));
        let (seed, device) = (self.seed.seed.to_string(), self.device.device.to_string());
        let embed = |images: &Path, output: &Path| {
            let words = words("embed").option("--model", model).option("--images", images);
            words.option("--device", &device).option("-o", output)
        };
        let with_pools = |command: &str| words(command).option("--clean", &clean).option("--noisy", &pool);
        let step = |why, words, output: &Path| Step { why, words, output: output.to_path_buf() };
        let mut steps = vec![
            step("Compute features of the clean photos", embed(&self.clean, &clean), &clean),
            step("Compute features of the pool", embed(&self.pool, &pool), &pool),
        ];
        let mut score = with_pools("clean");
        if let Some(captions) = captions {
            let classes = self.classes.as_ref().unwrap_or(&self.clean);
            let find = words("match").option("--classes", classes).options("--text", &captions.given);
            let find = find.option("--rule", self.rule.to_string()).option("-o", &candidates);
            steps.push(step(
                "Find the candidates: photos whose captions contain a class's name",
                find,
                &candidates,
            ));
            score = score.option("--candidates", &candidates);
        }
        let score = score.option("--seed", &seed).option("--device", &device).option("-o", &relevance);
        steps.push(step("Score the relevance of every candidate to its class", score, &relevance));
        let (classifier, report) = (path("classifier.safetensors"), path("report.html"));
        let train = with_pools("train").option("--relevance", &relevance).option("--classifier", "cosine");
        let train = train.option("--seed", &seed).option("--device", &device).option("-o", &classifier);
        steps.push(step(
            "Train a classifier with every candidate weighted by its relevance",
            train,
            &classifier,
        ));
        let mut show = words("report").path(&relevance).options("--images", [&self.clean, &self.pool]);
        if !self.text.is_empty() {
            show = show.options("--text", &self.text);
        }
        steps.push(step("Write a report", show.option("-o", &report), &report));
        steps
    }
}

/// Files of a run would replace others in a folder that somebody keeps something else in.
fn check_folder(folder: &Path, journal: &Path) -> Result<()> {
    let is_taken = std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    match is_taken && !journal.exists() {
        false => Ok(()),
        true => Err(user_error(
            format!("`{}` is not empty and was not made by `labelsieve run`", folder.display()),
            "choose a new or empty folder with -o; files of the run would replace others",
        )),
    }
}
