//! `labelsieve run`: from two folders of photos to a classifier and a report, each step as the command a user would type.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use labelsieve_files::inputs::decisions::Decisions;
use labelsieve_files::work::resume::lock::OutputLock;
use labelsieve_files::work::resume::{self, Key};
use labelsieve_files::work::{Monitor, SavedWork};
use labelsieve_files::{DataError, is_stream};
use labelsieve_matching::names::MatchRule;
use labelsieve_matching::text::{TextColumns, TextSource, read_class_file};
use labelsieve_networks::image_files::{ImageColumns, ImageSource};
use labelsieve_networks::opening::built_in::BuiltIn;
use labelsieve_networks::opening::embedder::model_files;
use serde::Serialize;
use serde_json::json;

use super::run_sources::RunSources;
use super::words::{Words, run_step, words};
use crate::answers::RunAnswer;
use crate::arguments::{DEFAULT_METHOD, DeviceArguments, JsonArguments, MethodName, SeedArguments};
use crate::hint::user_error;
use crate::printer::Printer;

/// Run the whole pipeline: embed, match, score, train and report, each step as its own command
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

    /// Network for features, as `labelsieve embed` takes it [default: efficientnet-lite0, which is built in]
    #[arg(long, value_name = "NAME|FILE|FOLDER")]
    #[serde(serialize_with = "resume::debug")]
    model: Option<PathBuf>,

    /// Method for scoring relevance, with its usual settings
    #[arg(long, value_enum, default_value = DEFAULT_METHOD)]
    #[serde(serialize_with = "resume::debug")]
    method: MethodName,

    /// Base classes to compare candidates with, as `labelsieve score` takes them, e.g. the file of --model
    #[arg(long, value_name = "FILE")]
    #[serde(serialize_with = "resume::debug")]
    base: Option<PathBuf>,

    /// Decisions about candidates, as `labelsieve score` takes them; a run with other decisions keeps its features, as does one
    /// with another method or other base classes
    #[arg(long, value_name = "FILE")]
    #[serde(serialize_with = "resume::debug")]
    decisions: Option<PathBuf>,

    /// Output folder: a new or empty one, or that of an earlier run, which is resumed
    #[arg(short, long, value_name = "DIR")]
    #[serde(serialize_with = "resume::debug")]
    output: PathBuf,

    #[command(flatten)]
    #[serde(serialize_with = "resume::debug")]
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
/// Marks a folder as that of a run.
const MARKER: &str = "RUN.txt";
const MARK: &str = "`labelsieve run` made this folder. It may replace what is in it.\n";

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
    /// What decides its result besides the key of the run.
    input: String,
}

impl Step {
    /// The state of what it wrote.
    fn state(&self) -> Result<String> {
        Ok(resume::state(&self.output)? + &self.input)
    }
}

impl Run {
    pub fn run(&self, printer: &Printer) -> Result<()> {
        self.check_folders()?;
        let captions = self.captions()?;
        if captions.is_some() && self.classes.is_none() {
            read_class_file(&self.clean)?; // before hours of work, not after them
        }
        if self.base.is_some() && !matches!(self.method, MethodName::Auto | MethodName::Mixture) {
            let method = self.method.name();
            return Err(user_error(
                format!("--method {method} does not use --base"),
                "remove it, or choose a method that uses it",
            ));
        }
        let decisions = self.decisions.as_deref().map(Decisions::open).transpose()?;
        let decisions = decisions.map_or(String::new(), |decisions| format!(" {}", decisions.digest()));
        let base = match &self.base {
            Some(base) => format!(" {base:?} {}", resume::state(base)?),
            None => String::new(),
        };
        let scored_with = format!(" {}{base}{decisions}", self.method.name());
        let key = self.key(captions.as_ref())?;
        let _lock = OutputLock::inside(&self.output)?;
        let marker = self.output.join(MARKER);
        std::fs::write(&marker, MARK).map_err(DataError::io("write", &marker))?;
        RunSources::write(&self.output, &[&self.clean, &self.pool], &self.text, self.base.as_ref())?;
        let model = match &self.model {
            Some(model) => model.clone(),
            None => PathBuf::from(BuiltIn::usual().name),
        };
        let steps = self.steps(&model, captions.as_ref(), &scored_with);
        let path = self.output.join(JOURNAL);
        let (journal, records) = resume::open(
            &path,
            &key,
            resume::RecordUnits { unit: "steps", total: Some(steps.len()) },
            printer,
        )?;
        let finished: HashMap<String, Vec<u8>> = records.into_iter().collect();
        let step_printer = printer.for_steps();
        let mut is_done = true; // what follows a step that is run again is run again too
        for step in &steps {
            let (name, shown) = (file_name(&step.output), step.output.display());
            is_done &= finished
                .get(&name)
                .is_some_and(|state| step.state().is_ok_and(|found| found.as_bytes() == state.as_slice()));
            if is_done {
                printer.note(&format!("\n# {}: done already, in `{shown}`", step.why));
                continue;
            }
            printer.keep(SavedWork::Steps { path: path.clone(), total: steps.len() });
            run_step(step.why, &step.words, &step_printer)?;
            journal.append(&name, step.state()?.as_bytes())?;
        }
        let report = self.output.join("report.html");
        if self.json.json {
            let commands: Vec<String> = steps.iter().map(|step| step.words.to_string()).collect();
            let outputs: Vec<String> = steps.iter().map(|step| step.output.display().to_string()).collect();
            return printer.json("run", &RunAnswer { commands, outputs });
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
        printer.note("\nLook at the candidates and decide about them, five per class go a long way:");
        printer.note(&format!("$ {}", words("review").path(&self.output)));
        Ok(())
    }

    /// Refuses folders that would get in each other's way.
    fn check_folders(&self) -> Result<()> {
        let (clean, pool, output) = (&self.clean, &self.pool, &self.output);
        let entries = std::fs::read_dir(output).into_iter().flatten().flatten();
        let mut names = entries.map(|entry| entry.file_name()).filter(|name| name != "run.lock");
        let is_own = std::fs::read_to_string(output.join(MARKER)).is_ok_and(|text| text == MARK);
        if !is_own && names.next().is_some() {
            return Err(user_error(
                format!("`{}` is not empty and was not made by `labelsieve run`", output.display()),
                "choose a new or empty folder with -o; files of the run would replace others",
            ));
        }
        let above = output.ancestors().find_map(|folder| match folder.as_os_str().is_empty() {
            true => std::env::current_dir().ok(),
            false => folder.canonicalize().ok(),
        });
        let is_inside = |folder: &&PathBuf| {
            folder.is_dir()
                && folder
                    .canonicalize()
                    .is_ok_and(|folder| above.as_ref().is_some_and(|above| above.starts_with(folder)))
        };
        if let Some(folder) = [clean, pool].into_iter().find(is_inside) {
            return Err(user_error(
                format!("the output `{}` is inside the input `{}`", output.display(), folder.display()),
                "its files would be taken for examples; choose a folder elsewhere",
            ));
        }
        match name_of_two(clean, pool) {
            None => Ok(()),
            Some(name) => Err(user_error(
                format!(
                    "`{}` is the name of two different photos, in `{}` and in `{}`",
                    name.display(),
                    clean.display(),
                    pool.display()
                ),
                "examples go by their path below the folder: rename the photos of one of the two",
            )),
        }
    }

    /// Captions, if there are any: a pool with a folder per class needs none.
    fn captions(&self) -> Result<Option<Captions>> {
        let (given, is_asked) = match self.text.is_empty() {
            true => (vec![self.pool.clone()], self.classes.is_some()),
            false => (self.text.clone(), true),
        };
        if let Some(stream) = given.iter().find(|path| is_stream(path)) {
            return Err(user_error(
                format!("`{}` can be read only once, but captions are read several times", stream.display()),
                "save them to a file",
            ));
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
        let model = self.model.as_deref().map(model_files).transpose()?.unwrap_or_default();
        let files = self.classes.iter().chain(&model);
        let files = files.chain(captions.iter().flat_map(|captions| &captions.files));
        let files: Vec<&Path> = files.map(PathBuf::as_path).collect();
        let key = Key::new("run", self, &["output", "method", "base", "decisions"])?.with_files(&files)?;
        let key = key.with(&json!({ "captions": captions.is_some(), "network": BuiltIn::usual().name }));
        let clean = images(&self.clean)?.fingerprint()?;
        Ok(key.with_fingerprint(clean).with_fingerprint(images(&self.pool)?.fingerprint()?))
    }

    /// `scored_with` says which method, base classes and decisions these are.
    fn steps(&self, model: &Path, captions: Option<&Captions>, scored_with: &str) -> Vec<Step> {
        let path = |name: &str| self.output.join(name);
        let (clean, pool) = (path("clean.parquet"), path("pool.parquet"));
        let (relevance, candidates) = (path("relevance.parquet"), path("candidates.parquet"));
        let (seed, device) = (self.seed.seed.to_string(), self.device.device.to_string());
        let embed = |images: &Path, output: &Path| {
            let words = words("embed").option("--model", model).option("--images", images);
            words.option("--device", &device).option("-o", output)
        };
        let with_pools = |command: &str| words(command).option("--clean", &clean).option("--pool", &pool);
        let step = |why, words, output: &Path| {
            let input = String::new();
            Step { why, words, output: output.to_path_buf(), input }
        };
        let mut steps = vec![
            step("Compute features of the clean photos", embed(&self.clean, &clean), &clean),
            step("Compute features of the pool", embed(&self.pool, &pool), &pool),
        ];
        let mut score = with_pools("score");
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
        if self.method.name() != DEFAULT_METHOD {
            score = score.option("--method", self.method.name());
        }
        if let Some(base) = &self.base {
            score = score.option("--base", base);
        }
        if let Some(decisions) = &self.decisions {
            score = score.option("--decisions", decisions);
        }
        let score = score.option("--seed", &seed).option("--device", &device).option("-o", &relevance);
        let score = step("Score the relevance of every candidate to its class", score, &relevance);
        steps.push(Step { input: scored_with.to_owned(), ..score });
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

/// The name of a file in the folder of the run, which may move.
fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A file of `folder`, or below it, that is another file of the same name in `other`: examples go by these names.
fn name_of_two(folder: &Path, other: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    entries.into_iter().find_map(|entry| {
        let name = PathBuf::from(entry.file_name());
        let (here, there) = (entry.path(), other.join(&name));
        match entry.file_type().ok()?.is_dir() {
            true => name_of_two(&here, &there).map(|below| name.join(below)),
            false if name.file_stem() == Some("metadata".as_ref()) => None,
            false => {
                let differ = std::fs::read(&there)
                    .is_ok_and(|there| std::fs::read(&here).is_ok_and(|here| here != there));
                differ.then_some(name)
            }
        }
    })
}
