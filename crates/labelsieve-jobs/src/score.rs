//! From tables to relevance: every candidate of every class is scored and written with the reasons for its score.
//!
//! A candidate's way through the job, file by file:
//!
//! 1. [`inputs::pools`](crate::inputs::pools) opens the tables and joins candidates with classes; `share` keeps the classes of
//!    one part, where a run is cut into parts.
//! 2. [`inputs::decisions`](crate::inputs::decisions) joins the decisions of people.
//! 3. `run` loads class after class, in batches that fit in [memory](crate::memory), and skips those that a journal has.
//! 4. [`scoring`](crate::scoring) makes each class a problem for the engine and collects its relevance.
//! 5. `doubts` finds classes whose relevance says little; [`choices`] and [`advice`] sum up what the method chose and which
//!    candidates to keep.
//! 6. `table` writes the rows.

pub mod advice;
pub mod choices;
mod doubts;
mod run;
mod share;
mod table;

use std::collections::HashMap;
use std::path::PathBuf;

use labelsieve::{Decision, Method};
use labelsieve_files::inputs::copies::Copies;
use labelsieve_files::inputs::decisions::{DecisionCounts, Decisions};
use labelsieve_files::work::outputs::{Files, OutputKind, Target, on_stdout};
use labelsieve_files::work::{Error, Monitor, Result, Words, option, resume, words};
use labelsieve_files::{AtomicFile, Part, ScratchFolder, counted};
use labelsieve_numerics::Device;
use serde::Serialize;
use serde_json::{Value, json};

pub use self::share::Share;
pub use labelsieve_files::work::parts::PartDone;

use self::advice::ClassAdvice;
use self::choices::Choice;
use self::run::{ClassResults, ScoringRun, workload};
use self::share::ShareInputs;
use crate::device;
use crate::estimate::Estimate;
use crate::inputs::class_text::TextCounts;
use crate::inputs::decisions::of_pools;
use crate::inputs::pools::{PoolFiles, Pools};
use crate::memory::MemoryLimit;
use crate::scoring::{ClassRelevance, RECORDS};

/// Scores every candidate of every class.
#[derive(Clone, Debug, Serialize)]
pub struct Score {
    /// The examples.
    #[serde(flatten)]
    pub files: PoolFiles,
    /// Decisions of people about candidates.
    #[serde(serialize_with = "resume::debug")]
    pub decisions: Option<PathBuf>,
    /// How relevance is scored.
    pub method: Method,
    /// Where it is scored.
    #[serde(serialize_with = "resume::debug")]
    pub device: Device,
    /// Random seed; the same seed gives the same result.
    pub seed: u64,
    /// Which classes are scored.
    pub share: Share,
    /// The file to write, `.parquet` or `.csv`; `-` for [`Monitor::stdout`]. For a part, `.parquet`.
    #[serde(serialize_with = "resume::debug")]
    pub output: PathBuf,
    /// A limit of memory, which does not change the result; none: as much as it needs.
    pub memory: Option<MemoryLimit>,
    /// The share of neighbours that a search among very many candidates should find, below 1; none: all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recall: Option<f64>,
}

/// Summary of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScoreSummary {
    /// Classes with clean examples.
    pub n_classes: usize,
    /// Candidates that were scored.
    pub n_candidates: usize,
    /// Their mean relevance.
    pub mean_relevance: f64,
    /// Candidates that take no part: they are clean examples of their own class.
    pub copies: Copies,
    /// Candidates that could not be scored: their class has no clean example, or they have no features.
    pub n_left_out: usize,
    /// Classes without candidates, which are listed with their clean examples alone.
    pub without_candidates: Vec<String>,
    /// Classes whose candidates have nearly equal relevance.
    pub flat: Vec<String>,
    /// Classes with hardly more candidates than the graph gives neighbours to each, for methods that read the graph.
    pub small_pools: Vec<String>,
    /// Which candidates of each class to keep, where the method gives probabilities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<Vec<ClassAdvice>>,
    /// The choices of the method with reasons and numbers of classes, where it chooses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
    /// Classes whose neighbours were searched approximately.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub approximate: Vec<ClassRecall>,
    /// Candidates that people decided about, where decisions were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decisions: Option<DecisionCounts>,
    /// Classes whose name is a clean example, where texts were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class_texts: Option<TextCounts>,
    /// The part of a run that was scored, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<PartDone>,
}

/// A class whose neighbours were searched approximately.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassRecall {
    /// Its name.
    pub class: String,
    /// The share of neighbours that were found, measured on some candidates.
    pub recall: f64,
}

/// Decisions joined with the candidates of each class.
struct ClassDecisions {
    classes: Vec<Vec<Option<Decision>>>,
    /// Decisions about no candidate.
    n_unmatched: usize,
}

impl Score {
    /// Memory and time that scoring these examples would take, within the limit of memory if there is one. Device and output
    /// do not matter.
    pub fn estimate(&self, monitor: &dyn Monitor) -> Result<Estimate> {
        self.method.build()?;
        let decisions = self.decisions.as_deref().map(Decisions::open).transpose()?;
        let scratch = self.memory.as_ref().map(|limit| limit.scratch(None)).transpose()?;
        let memory = self.memory.as_ref().zip(scratch.as_ref());
        let pools = self.open(memory, decisions.as_ref(), monitor)?.pools;
        let work = workload(&pools, &self.method);
        let in_scope = pools.scope.classes();
        let estimate = work.of_classes(in_scope).estimate()?;
        let Some((limit, scratch)) = memory else { return Ok(estimate) };
        let out_of_core = limit.within(scratch, &work, &pools).out_of_core(in_scope, &pools)?;
        Ok(Estimate {
            memory_bytes: estimate.memory_bytes.min(limit.bytes),
            out_of_core: (out_of_core.n_classes > 0).then_some(out_of_core),
            ..estimate
        })
    }

    /// Rejects settings and file names that cannot work, before anything is read.
    pub fn check(&self) -> Result<Target<'_>> {
        let kind = if self.share.is_part() { OutputKind::Part } else { OutputKind::Table };
        let target = kind.target(&self.output)?;
        self.method.build()?;
        if let (Some(_), Device::Cuda(_)) = (&self.memory, self.device) {
            return Err(Error::input(
                "a limit of memory needs the CPU",
                words!["choose ", option("device").set_to("cpu"), ", or leave out ", option("memory")],
            ));
        }
        self.check_recall()?;
        if let Some(output) = target.file() {
            let decisions = self.decisions.as_deref().map(Decisions::files);
            let files = Files::default().reads(self.files.paths()).reads(decisions.into_iter().flatten());
            let files = files.reads(self.share.plan()).writes([output]);
            files.writes_beside(output, &[".partial"]).check()?;
        }
        Ok(target)
    }

    fn check_recall(&self) -> Result<()> {
        let Some(recall) = self.recall else { return Ok(()) };
        let wrong = |message: &str, hint: Words| Err(Error::input(message, hint));
        let approximate = || option("neighbours_approximate");
        if !(recall > 0.0 && recall < 1.0) {
            return wrong(
                &format!(
                    "recall of approximate neighbours: expected a number between 0 and 1, found {recall}"
                ),
                words!["0.95 is usual; leave out ", approximate(), " to find all neighbours"],
            );
        }
        if let Device::Cuda(_) = self.device {
            return wrong(
                "approximate neighbours need the CPU: a GPU searches exactly, and fast",
                words!["choose ", option("device").set_to("cpu"), ", or leave out ", approximate()],
            );
        }
        if self.memory.is_some() {
            return wrong(
                "approximate neighbours need all candidates of a class in memory",
                words!["leave out ", option("memory"), " or ", approximate()],
            );
        }
        if self.share.is_part() {
            return wrong(
                "approximate neighbours are not supported for parts of a run",
                words!["leave out ", approximate()],
            );
        }
        Ok(())
    }

    /// Scores all classes, or those that an earlier run of the same job left undone, and writes the table.
    pub fn run(&self, monitor: &dyn Monitor) -> Result<ScoreSummary> {
        let target = self.check()?;
        let decisions = self.decisions.as_deref().map(Decisions::open).transpose()?;
        let scratch = self.memory.as_ref().map(|limit| limit.scratch(target.file())).transpose()?;
        let memory = self.memory.as_ref().zip(scratch.as_ref());
        let inputs = self.open(memory, decisions.as_ref(), monitor)?;
        if let Some(output) = target.file() {
            if let Some(complete) = self.complete_part(&inputs, output)? {
                monitor.note(&format!("`{}` is already complete", output.display()));
                return Ok(complete);
            }
            drop(AtomicFile::create(output)?); // fail early if the output is not writable
        }
        let ShareInputs { pools, network, part } = inputs;
        let decided = decisions.as_ref().map(|decisions| ClassDecisions::join(decisions, &pools, monitor));
        let decided = decided.transpose()?;
        let needs_cpu = self.memory.is_some() || self.recall.is_some();
        let device = device::open(if needs_cpu { Device::Cpu } else { self.device }, monitor)?;
        let class_texts = self.files.class_text.as_ref().map(|_| TextCounts::of(&pools));
        let settings = self.settings(&pools, device.kind(), class_texts.as_ref());
        let run = ScoringRun {
            job: self,
            pools: &pools,
            decisions: decided.as_ref().map_or(&[], |decided| &decided.classes),
            engine: device.engine(),
            memory,
            monitor,
        };
        let mut results = match target {
            Target::File(output) => {
                let key = self.key(&settings, part.as_ref(), decisions.as_ref())?;
                let key = key.on_device(device.kind()).with_files(&self.files.paths())?;
                ClassResults::resume(output, &key, &pools, monitor)?
            }
            Target::Stdout => {
                monitor.note("writing relevance to stdout; an interrupted run cannot be resumed");
                ClassResults::default()
            }
        };
        run.score(&mut results)?;
        run.warn_if_all_are_clean(&results.scored);
        let counts = decided.as_ref().map(|decided| decided.counts(&results.scored, monitor));
        let doubts = run.doubts(&results.scored);
        let settings = table::TableSettings { network, settings, counts, part };
        let summary = on_stdout(target, table::write(&run, &results.scored, &doubts, settings, target))?;
        doubts.say(&self.method, monitor);
        if let Some(journal) = results.journal {
            journal.remove()?;
        }
        Ok(ScoreSummary { class_texts, ..summary })
    }

    /// The examples of this share, read within the limit of memory.
    fn open(
        &self,
        memory: Option<(&MemoryLimit, &ScratchFolder)>,
        decisions: Option<&Decisions>,
        monitor: &dyn Monitor,
    ) -> Result<ShareInputs> {
        let mut files = self.files.clone();
        files.pool.columns.spill = memory.map(|(limit, scratch)| limit.spill(scratch));
        let identity = share::RunIdentity { decisions, method: &self.method, seed: self.seed };
        self.share.open(&files, identity, monitor)
    }

    /// The settings that decide the result, as the file records them.
    fn settings(&self, pools: &Pools, device: &str, class_texts: Option<&TextCounts>) -> Value {
        let mut settings = json!({
            "command": "score", "method": self.method, "seed": self.seed, "device": device,
        });
        if let (Some(path), Some(base)) = (&self.files.base, &pools.base) {
            // Without its folder: parts are made on many machines.
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            settings["base"] = json!({ "file": file, "n_classes": base.names.len() });
        }
        if let Some(recall) = self.recall {
            settings["neighbours_approximate"] = json!(recall);
        }
        if let Some(counts) = class_texts {
            settings["class_texts"] = json!(counts);
        }
        settings
    }

    /// The key by which an interrupted run is found again.
    fn key(
        &self,
        settings: &Value,
        part: Option<&Part>,
        decisions: Option<&Decisions>,
    ) -> Result<resume::Key> {
        let excluded = ["device", "output", "decisions", "share", "memory"];
        let mut key = resume::Key::new("score", self, &excluded)?.with(settings).with(&json!(part));
        if let Some(decisions) = decisions {
            key = key.with(&json!({ "decisions": decisions.digest() }));
        }
        Ok(key.with(&json!({ "records": RECORDS })))
    }
}

impl ClassDecisions {
    fn join(decisions: &Decisions, pools: &Pools, monitor: &dyn Monitor) -> Result<ClassDecisions> {
        let (classes, counts) = of_pools(decisions, pools, monitor)?;
        Ok(ClassDecisions { classes, n_unmatched: counts.n_unmatched })
    }

    /// Decisions about candidates that took part. Those about others, known by their features alone to be clean examples,
    /// are named here.
    fn counts(&self, scored: &HashMap<usize, ClassRelevance>, monitor: &dyn Monitor) -> DecisionCounts {
        let mut decided = Vec::new();
        let mut n_copies = 0;
        for (c, of_class) in self.classes.iter().enumerate() {
            let Some(scored) = scored.get(&c) else { continue }; // of another part
            decided.extend(scored.kept().map(|place| of_class[place]));
            n_copies += scored.copies.iter().filter(|&&place| of_class[place].is_some()).count();
        }
        if n_copies > 0 {
            monitor.warning(&format!(
                "ignoring {} about candidates with the features of a clean example of their class",
                counted(n_copies, "decision")
            ));
        }
        DecisionCounts { n_unmatched: self.n_unmatched + n_copies, ..DecisionCounts::of(decided) }
    }
}
