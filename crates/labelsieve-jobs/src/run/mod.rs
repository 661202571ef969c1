//! The job behind `run`: from two folders of photos to a classifier and a report, each step a job of its own.

mod line;
mod sources;

use std::collections::HashMap;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

use labelsieve_files::inputs::decisions::Decisions;
use labelsieve_files::work::resume::lock::OutputLock;
use labelsieve_files::work::resume::{self, Key};
use labelsieve_files::work::{Error, Monitor, Result, SavedWork, command, option, words};
use labelsieve_files::{DataError, Journal, is_stream};
use labelsieve_matching::names::MatchRule;
use labelsieve_matching::text::{TextColumns, TextSource, read_class_file};
use labelsieve_networks::image_files::{ImageColumns, ImageSource};
use labelsieve_networks::opening::built_in::BuiltIn;
use labelsieve_networks::opening::embedder::model_files;
use labelsieve_numerics::Device;
use serde::{Serialize, Serializer};
use serde_json::json;

pub use line::{JobLine, LineOption, StepRunner};
pub use sources::RunSources;

/// The method of a run that chooses none.
const DEFAULT_METHOD: &str = "auto";

/// Methods that compare candidates with base classes.
const METHODS_WITH_BASE: [&str; 2] = ["auto", "mixture"];

/// Runs the whole pipeline in one folder, and resumes it there.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// Clean photos with their classes.
    #[serde(serialize_with = "resume::debug")]
    pub clean: PathBuf,
    /// Photos of candidates.
    #[serde(serialize_with = "resume::debug")]
    pub pool: PathBuf,
    /// Classes and their names; those of the folders of `clean` if none are given.
    #[serde(serialize_with = "resume::debug")]
    pub classes: Option<PathBuf>,
    /// Captions of the pool; those in its folder if none are given.
    #[serde(serialize_with = "resume::debug")]
    pub text: Vec<PathBuf>,
    /// When a caption contains a name.
    pub rule: MatchRule,
    /// Network for features.
    #[serde(serialize_with = "resume::debug")]
    pub model: Option<PathBuf>,
    /// Method for scoring relevance, by its name.
    pub method: String,
    /// Base classes to compare candidates with.
    #[serde(serialize_with = "resume::debug")]
    pub base: Option<PathBuf>,
    /// Decisions about candidates.
    #[serde(serialize_with = "resume::debug")]
    pub decisions: Option<PathBuf>,
    /// The folder of the run.
    #[serde(serialize_with = "resume::debug")]
    pub output: PathBuf,
    /// Where all steps work.
    #[serde(serialize_with = "device_of_key")]
    pub device: Device,
    /// Seed of all steps.
    pub seed: u64,
}

/// The answer of a run: every step as the front end writes it, and the file that it wrote.
#[derive(Clone, Debug, Serialize)]
pub struct RunSummary {
    /// The command of each step, as the front end writes it.
    pub commands: Vec<String>,
    /// The file that each step wrote.
    pub outputs: Vec<String>,
}

/// The device as keys of runs have it since they have been written.
fn device_of_key<S: Serializer>(device: &Device, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Debug)]
    struct DeviceArguments<'a> {
        #[expect(dead_code, reason = "its Debug is what the key holds")]
        device: &'a dyn Debug,
    }
    resume::debug(&DeviceArguments { device }, serializer)
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

/// A job, why it is run, and what it writes.
struct Step {
    why: &'static str,
    line: JobLine,
    output: PathBuf,
    /// Decides its result together with the key of the run.
    input: String,
}

impl Step {
    /// The state of what it wrote.
    fn state(&self) -> Result<String> {
        Ok(resume::state(&self.output)? + &self.input)
    }
}

/// The steps of a run, and what is known of an earlier one.
struct PreparedRun {
    steps: Vec<Step>,
    journal: RunJournal,
}

/// The journal of the run, and the lock of its folder.
struct RunJournal {
    path: PathBuf,
    journal: Journal,
    finished: HashMap<String, Vec<u8>>,
    _lock: OutputLock,
}

impl RunJournal {
    /// Whether a step was finished, and its file is still the one that it wrote.
    fn is_finished(&self, name: &str, step: &Step) -> bool {
        let noted = self.finished.get(name);
        noted.is_some_and(|state| step.state().is_ok_and(|found| found.as_bytes() == state.as_slice()))
    }
}

impl Run {
    /// Runs the steps that are not done already, or whose inputs have changed.
    pub fn run<S: StepRunner>(&self, runner: &S, monitor: &dyn Monitor) -> Result<RunSummary, S::Error> {
        let PreparedRun { steps, journal } = self.prepare(monitor)?;
        let mut is_done = true; // a step after one that is run again is run again too
        for step in &steps {
            let name = file_name(&step.output);
            let shown = step.output.display();
            is_done &= journal.is_finished(&name, step);
            if is_done {
                monitor.note(&format!("\n# {}: done already, in `{shown}`", step.why));
                continue;
            }
            monitor.keep(SavedWork::Steps { path: journal.path.clone(), total: steps.len() });
            runner.run(step.why, &step.line, monitor)?;
            journal.journal.append(&name, step.state()?.as_bytes()).map_err(Error::from)?;
        }
        Ok(RunSummary {
            commands: steps.iter().map(|step| runner.spelled(&step.line)).collect(),
            outputs: steps.iter().map(|step| step.output.display().to_string()).collect(),
        })
    }

    /// The network for features.
    pub fn network(&self) -> PathBuf {
        self.model.clone().unwrap_or_else(|| PathBuf::from(BuiltIn::usual().name))
    }

    /// Checks all inputs, claims the folder and finds out what is done already.
    fn prepare(&self, monitor: &dyn Monitor) -> Result<PreparedRun> {
        self.check_folders()?;
        let captions = self.captions()?;
        if captions.is_some() && self.classes.is_none() {
            read_class_file(&self.clean)?; // before hours of work, not after them
        }
        if self.base.is_some() && !METHODS_WITH_BASE.contains(&self.method.as_str()) {
            return Err(Error::input(
                words![option("method").set_to(&self.method), " does not use ", option("base")],
                "remove it, or choose a method that uses it",
            ));
        }
        let decisions = self.decisions.as_deref().map(Decisions::open).transpose()?;
        let decisions = decisions.map_or(String::new(), |decisions| format!(" {}", decisions.digest()));
        let base = match &self.base {
            Some(base) => format!(" {base:?} {}", resume::state(base)?),
            None => String::new(),
        };
        let scored_with = format!(" {}{base}{decisions}", self.method);
        let key = self.key(captions.as_ref())?;
        let lock = OutputLock::inside(&self.output)?;
        let marker = self.output.join(MARKER);
        std::fs::write(&marker, MARK).map_err(DataError::io("write", &marker))?;
        RunSources::write(&self.output, &[&self.clean, &self.pool], &self.text, self.base.as_ref())?;
        let steps = self.steps(captions.as_ref(), &scored_with);
        let path = self.output.join(JOURNAL);
        let units = resume::RecordUnits { unit: "steps", total: Some(steps.len()) };
        let (journal, records) = resume::open(&path, &key, units, monitor)?;
        let finished = records.into_iter().collect();
        Ok(PreparedRun { steps, journal: RunJournal { path, journal, finished, _lock: lock } })
    }

    /// Refuses folders that would get in each other's way.
    fn check_folders(&self) -> Result<()> {
        let clean = &self.clean;
        let pool = &self.pool;
        let output = &self.output;
        let entries = std::fs::read_dir(output).into_iter().flatten().flatten();
        let mut names = entries.map(|entry| entry.file_name()).filter(|name| name != "run.lock");
        let is_own = std::fs::read_to_string(output.join(MARKER)).is_ok_and(|text| text == MARK);
        if !is_own && names.next().is_some() {
            return Err(Error::input(
                words![format!("`{}` is not empty and was not made by ", output.display()), command("run")],
                words![
                    "choose a new or empty folder with ",
                    option("output"),
                    "; files of the run would replace others"
                ],
            ));
        }
        let above = output.ancestors().find_map(|folder| {
            if folder.as_os_str().is_empty() {
                std::env::current_dir().ok()
            } else {
                folder.canonicalize().ok()
            }
        });
        let is_inside = |folder: &&PathBuf| {
            folder.is_dir()
                && folder
                    .canonicalize()
                    .is_ok_and(|folder| above.as_ref().is_some_and(|above| above.starts_with(folder)))
        };
        if let Some(folder) = [clean, pool].into_iter().find(is_inside) {
            return Err(Error::input(
                format!("the output `{}` is inside the input `{}`", output.display(), folder.display()),
                "its files would be taken for examples; choose a folder elsewhere",
            ));
        }
        match name_of_two(clean, pool) {
            None => Ok(()),
            Some(name) => Err(Error::input(
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
        let (given, is_asked) = if self.text.is_empty() {
            (vec![self.pool.clone()], self.classes.is_some())
        } else {
            (self.text.clone(), true)
        };
        if let Some(stream) = given.iter().find(|path| is_stream(path)) {
            return Err(Error::input(
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
    fn steps(&self, captions: Option<&Captions>, scored_with: &str) -> Vec<Step> {
        let model = self.network();
        let path = |name: &str| self.output.join(name);
        let clean = path("clean.parquet");
        let pool = path("pool.parquet");
        let relevance = path("relevance.parquet");
        let candidates = path("candidates.parquet");
        let seed = self.seed.to_string();
        let device = self.device.to_string();
        let embed = |images: &Path, output: &Path| {
            let line = JobLine::new("embed").option("model", &model).option("images", images);
            line.option("device", &device).option("output", output)
        };
        let with_pools =
            |command: &'static str| JobLine::new(command).option("clean", &clean).option("pool", &pool);
        let step = |why, line, output: &Path| {
            let input = String::new();
            Step { why, line, output: output.to_path_buf(), input }
        };
        let mut steps = vec![
            step("Compute features of the clean photos", embed(&self.clean, &clean), &clean),
            step("Compute features of the pool", embed(&self.pool, &pool), &pool),
        ];
        let mut score = with_pools("score");
        if let Some(captions) = captions {
            let classes = self.classes.as_ref().unwrap_or(&self.clean);
            let find = JobLine::new("match").option("classes", classes).options("text", &captions.given);
            let find = find.option("rule", self.rule.to_string()).option("output", &candidates);
            steps.push(step(
                "Find the candidates: photos whose captions contain a class's name",
                find,
                &candidates,
            ));
            score = score.option("candidates", &candidates);
        }
        if self.method != DEFAULT_METHOD {
            score = score.option("method", &self.method);
        }
        if let Some(base) = &self.base {
            score = score.option("base", base);
        }
        if let Some(decisions) = &self.decisions {
            score = score.option("decisions", decisions);
        }
        let score = score.option("seed", &seed).option("device", &device).option("output", &relevance);
        let score = step("Score the relevance of every candidate to its class", score, &relevance);
        steps.push(Step { input: scored_with.to_owned(), ..score });
        let classifier = path("classifier.safetensors");
        let report = path("report.html");
        let train = with_pools("train").option("relevance", &relevance);
        let train = train.option("seed", &seed).option("device", &device).option("output", &classifier);
        steps.push(step(
            "Train a classifier with every candidate weighted by its relevance",
            train,
            &classifier,
        ));
        let mut show = JobLine::new("report")
            .argument("source", &relevance)
            .options("images", [&self.clean, &self.pool]);
        if !self.text.is_empty() {
            show = show.options("text", &self.text);
        }
        steps.push(step("Write a report", show.option("output", &report), &report));
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
        let here = entry.path();
        let there = other.join(&name);
        if entry.file_type().ok()?.is_dir() {
            return name_of_two(&here, &there).map(|below| name.join(below));
        }
        if name.file_stem() == Some("metadata".as_ref()) {
            return None;
        }
        let differ =
            std::fs::read(&there).is_ok_and(|there| std::fs::read(&here).is_ok_and(|here| here != there));
        differ.then_some(name)
    })
}
