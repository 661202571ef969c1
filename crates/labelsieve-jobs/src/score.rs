//! From tables to relevance: every candidate of every class is scored and written with the reasons for its score.

pub mod advice;
pub mod choices;
mod doubts;
mod share;
mod table;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use labelsieve::{Decision, Features, Method};
use labelsieve_files::inputs::copies::Copies;
use labelsieve_files::inputs::decisions::{DecisionCounts, Decisions};
use labelsieve_files::inputs::tables::{load, load_in};
use labelsieve_files::work::outputs::{Files, OutputKind, Target, beside, on_stdout};
use labelsieve_files::work::{Error, Monitor, Result, resume};
use labelsieve_files::{AtomicFile, Journal, ScratchFolder, counted};
use labelsieve_numerics::Device;
use serde::Serialize;
use serde_json::json;

pub use self::share::Share;
pub use labelsieve_files::work::parts::PartDone;

use self::advice::ClassAdvice;
use self::choices::Choice;
use self::doubts::Doubts;
use self::share::ShareInputs;
use crate::device;
use crate::estimate::{Estimate, Workload};
use crate::inputs::class_text::TextCounts;
use crate::inputs::decided::of_pools;
use crate::inputs::pools::{PoolFiles, Pools};
use crate::memory::MemoryLimit;
use crate::scoring::{ClassRelevance, RECORDS, Scoring, rows_held};

/// Scores every candidate of every class.
#[derive(Clone, Debug, Serialize)]
pub struct Score {
    /// The examples.
    #[serde(flatten)]
    pub files: PoolFiles,
    /// What people decided about candidates.
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
    /// How much memory it may take; none: what it needs. It changes nothing of the result.
    pub memory: Option<MemoryLimit>,
    /// The share of neighbours that a search among very many candidates should find, below 1; none: all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recall: Option<f64>,
}

/// What was scored.
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
    /// Classes whose candidates relevance hardly tells apart.
    pub flat: Vec<String>,
    /// Classes with hardly more candidates than the graph gives neighbours to each, for methods that read the graph.
    pub small_pools: Vec<String>,
    /// Which candidates of each class to keep, where the method gives probabilities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<Vec<ClassAdvice>>,
    /// What the method chose for how many classes and why, where it chooses.
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
    /// Which part of a run it is, where it is one.
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

/// Decisions joined with the candidates of each class, and how many are about none.
struct ClassDecisions {
    classes: Vec<Vec<Option<Decision>>>,
    n_unmatched: usize,
}

/// The same files, read within a limit of memory.
fn spilling(files: &PoolFiles, limit: Option<(&MemoryLimit, &ScratchFolder)>) -> PoolFiles {
    let mut files = files.clone();
    files.pool.columns.spill = limit.map(|(limit, scratch)| limit.spill(scratch));
    files
}

/// All that is to be done.
fn work<'a>(pools: &Pools, method: &'a Method) -> Workload<'a> {
    let (n_clean, pool_sizes) = sizes(pools);
    Workload {
        method,
        dim: pools.clean.features.cols(),
        rows_held: rows_held(method, &n_clean, &pool_sizes, pools.n_base()),
        pool_sizes,
        n_clean: pools.clean.len(),
        bytes_in_memory: pools.clean.features.bytes_in_memory() + pools.pool.features.bytes_in_memory(),
    }
}

/// Clean examples and candidates of each class.
fn sizes(pools: &Pools) -> (Vec<usize>, Vec<usize>) {
    pools.classes.iter().map(|class| (class.clean.len(), class.pool.len())).unzip()
}

impl Score {
    /// What it would take to score these examples, within the limit of memory if there is one. Neither device nor output matter.
    pub fn estimate(&self, monitor: &dyn Monitor) -> Result<Estimate> {
        self.method.build()?;
        let decisions = self.decisions.as_deref().map(Decisions::open).transpose()?;
        let scratch = self.memory.as_ref().map(|limit| limit.scratch(None)).transpose()?;
        let limit = self.memory.as_ref().zip(scratch.as_ref());
        let method = (&self.method, self.seed);
        let pools =
            self.share.open(&spilling(&self.files, limit), decisions.as_ref(), method, monitor)?.pools;
        let (work, in_scope) = (work(&pools, &self.method), pools.scope.classes());
        let estimate = work.of_classes(in_scope).estimate()?;
        let Some((limit, scratch)) = limit else { return Ok(estimate) };
        let out_of_core = limit.within(scratch, &work, &pools).out_of_core(in_scope, &pools)?;
        Ok(Estimate {
            memory_bytes: estimate.memory_bytes.min(limit.bytes),
            out_of_core: (out_of_core.n_classes > 0).then_some(out_of_core),
            ..estimate
        })
    }

    /// Refuses settings and names of files that cannot work, before anything is read.
    pub fn check(&self) -> Result<Target<'_>> {
        let kind = if self.share.is_part() { OutputKind::Part } else { OutputKind::Table };
        let target = kind.target(&self.output)?;
        self.method.build()?;
        if let (Some(_), Device::Cuda(_)) = (&self.memory, self.device) {
            return Err(Error::input(
                "a limit of memory needs the CPU",
                "use --device cpu, or leave out --memory",
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
        let wrong = |what: &str, hint: &str| Err(Error::input(what, hint));
        match self {
            _ if !(recall > 0.0 && recall < 1.0) => wrong(
                &format!(
                    "recall of approximate neighbours: expected a number between 0 and 1, found {recall}"
                ),
                "0.95 is usual; leave out --neighbours-approximate for all neighbours",
            ),
            Score { device: Device::Cuda(_), .. } => wrong(
                "approximate neighbours need the CPU: a GPU searches exactly, and fast",
                "use --device cpu, or leave out --neighbours-approximate",
            ),
            Score { memory: Some(_), .. } => wrong(
                "approximate neighbours need all candidates of a class in memory",
                "leave out --memory or --neighbours-approximate",
            ),
            _ if self.share.is_part() => wrong(
                "approximate neighbours are not for parts of a run",
                "leave out --neighbours-approximate",
            ),
            _ => Ok(()),
        }
    }

    /// Scores all classes, or those that an earlier run of the same job left undone, and writes the table.
    pub fn run(&self, monitor: &dyn Monitor) -> Result<ScoreSummary> {
        let target = self.check()?;
        let decisions = self.decisions.as_deref().map(Decisions::open).transpose()?;
        let scratch = self.memory.as_ref().map(|limit| limit.scratch(target.file())).transpose()?;
        let limit = self.memory.as_ref().zip(scratch.as_ref());
        let method = (&self.method, self.seed);
        let opened = self.share.open(&spilling(&self.files, limit), decisions.as_ref(), method, monitor)?;
        if let Some(output) = target.file() {
            if let Some(complete) = self.complete_part(&opened, output)? {
                monitor.note(&format!("`{}` is complete already; nothing to do", output.display()));
                return Ok(complete);
            }
            drop(AtomicFile::create(output)?); // an unwritable place should cost no hours of work
        }
        let ShareInputs { pools, network, part } = opened;
        let decided = match &decisions {
            None => None,
            Some(decisions) => {
                let (classes, counts) = of_pools(decisions, &pools, monitor)?;
                Some(ClassDecisions { classes, n_unmatched: counts.n_unmatched })
            }
        };
        let needs_cpu = self.memory.is_some() || self.recall.is_some();
        let device = if needs_cpu { Device::Cpu } else { self.device };
        let device = device::open(device, monitor)?;
        let mut settings = json!({
            "command": "clean", "method": self.method, "seed": self.seed, "device": device.kind(),
        });
        if let (Some(path), Some(base)) = (&self.files.base, &pools.base) {
            // Not where it lies: parts are made on many machines.
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            settings["base"] = json!({ "file": file, "n_classes": base.names.len() });
        }
        if let Some(recall) = self.recall {
            settings["neighbours_approximate"] = json!(recall);
        }
        let class_texts = self.files.class_text.as_ref().map(|_| TextCounts::of(&pools));
        if let Some(counts) = &class_texts {
            settings["class_texts"] = json!(counts);
        }
        let (journal, mut scored) = match target {
            Target::File(output) => {
                let excluded = ["device", "output", "decisions", "share", "memory"];
                let mut key = resume::Key::new("score", self, &excluded)?.with(&settings).with(&json!(part));
                if let Some(decisions) = &decisions {
                    key = key.with(&json!({ "decisions": decisions.digest() }));
                }
                let key = key
                    .with(&json!({ "records": RECORDS }))
                    .on_device(device.kind())
                    .with_files(&self.files.paths())?;
                let (journal, scored) = resumed(output, &key, &pools, monitor)?;
                (Some(journal), scored)
            }
            Target::Stdout => {
                monitor.note("writing relevance to stdout; an interrupted run cannot be resumed");
                (None, HashMap::new())
            }
        };
        let of_classes = decided.as_ref().map_or(&[][..], |decided| &decided.classes);
        self.score((&pools, of_classes), (device.engine(), limit), journal.as_ref(), &mut scored, monitor)?;
        warn_if_all_are_clean(&pools, &scored, monitor);
        let counts = decided.as_ref().map(|decided| decided.counts(&scored, monitor));
        let doubts = self.doubts((&pools, of_classes), &scored);
        let (found, about) = ((&scored, &doubts), table::TableSettings { network, settings, counts, part });
        let summary = on_stdout(target, table::write((&pools, of_classes), found, about, target, monitor))?;
        doubts.say(&self.method, monitor);
        if let Some(journal) = journal {
            journal.remove()?;
        }
        Ok(ScoreSummary { class_texts, ..summary })
    }

    /// Classes whose relevance says little. What people decided is not the method's doing.
    fn doubts(
        &self,
        (pools, decisions): (&Pools, &[Vec<Option<Decision>>]),
        scored: &HashMap<usize, ClassRelevance>,
    ) -> Doubts {
        let mut doubts = Doubts::default();
        for (c, class) in pools.in_scope() {
            let scored = &scored[&c];
            let is_open = |place: usize| match decisions.get(c) {
                Some(decisions) => decisions[place].and_then(Decision::relevance).is_none(),
                None => true,
            };
            let open = scored.kept().zip(&scored.relevance).filter(|(place, _)| is_open(*place));
            let open: Vec<f32> = open.map(|(_, &relevance)| relevance).collect();
            doubts.add(&class.name, &open, (class.clean.len(), scored.relevance.len()), &self.method);
        }
        doubts
    }

    /// Scores what is not yet scored, and notes every class in the journal as it is finished.
    fn score(
        &self,
        (pools, decisions): (&Pools, &[Vec<Option<Decision>>]),
        (engine, limit): (&dyn labelsieve::engine::Engine, Option<(&MemoryLimit, &ScratchFolder)>),
        journal: Option<&Journal>,
        scored: &mut HashMap<usize, ClassRelevance>,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let in_scope = pools.scope.classes().iter().copied();
        let open: Vec<usize> = in_scope.filter(|class| !scored.contains_key(class)).collect();
        let n_rows: usize = open.iter().map(|&class| pools.classes[class].pool.len()).sum();
        let progress = monitor.progress(n_rows as u64, "candidates");
        progress.set_message(self.method.name());
        let clean: Result<Vec<Features>> =
            pools.classes.iter().map(|class| load(&pools.clean, &class.clean)).collect();
        let (clean, (_, pool_sizes)) = (clean?, sizes(pools));
        let names: Vec<&str> = pools.classes.iter().map(|class| class.name.as_str()).collect();
        for (name, clean) in names.iter().zip(&clean).filter(|(_, clean)| clean.n_zero() > 0) {
            let (n_zero, n) = (clean.n_zero(), clean.len());
            monitor.warning(&format!(
                "{n_zero} of {n} clean examples of `{name}` have all-zero feature vectors"
            ));
        }
        let scoring = Scoring {
            method: &self.method,
            engine,
            seed: self.seed,
            names: &names,
            clean: &clean,
            base: pools.base.as_ref().map(|base| &base.directions),
            pool_sizes: &pool_sizes,
            decisions,
            recall: self.recall,
        };
        let load_pool = |class: usize, scratch: Option<&ScratchFolder>| {
            let rows = &pools.classes[class].pool;
            let noisy = match scratch {
                Some(scratch) => load_in(&pools.pool, rows, scratch)?,
                None => load(&pools.pool, rows)?,
            };
            if noisy.n_zero() > 0 {
                monitor.warning(&format!(
                    "{} of {} candidates of `{}` have all-zero feature vectors",
                    noisy.n_zero(),
                    noisy.len(),
                    names[class]
                ));
            }
            Ok(noisy)
        };
        let finished: Mutex<&mut HashMap<usize, ClassRelevance>> = Mutex::new(scored);
        let batches = match limit {
            Some((limit, scratch)) => {
                let work = work(pools, &self.method);
                limit.within(scratch, &work, pools).announced(&open, pools, monitor)?
            }
            None => scoring.batches(&open),
        };
        scoring.run_batches(&batches, &load_pool, monitor.watch(), &|class, result| {
            if let Some(journal) = journal {
                journal.append(names[class], &result.encode())?;
            }
            let z = result.relevance.len();
            let mean = result.relevance.iter().sum::<f32>() / z.max(1) as f32;
            let candidates = counted(z, "candidate");
            monitor.detail(&format!("{}: {candidates}, mean relevance {mean:.2}", names[class]));
            progress.inc(pool_sizes[class] as u64);
            finished.lock().unwrap_or_else(|poison| poison.into_inner()).insert(class, result);
            Ok(())
        })
    }
}

impl ClassDecisions {
    /// Decisions about candidates that took part. Those about others, known by their features alone to be clean examples,
    /// are named here.
    fn counts(&self, scored: &HashMap<usize, ClassRelevance>, monitor: &dyn Monitor) -> DecisionCounts {
        let (mut decided, mut n_copies) = (Vec::new(), 0);
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

/// The journal of this job, and what an earlier run has scored. What does not fit its class is not taken.
fn resumed(
    output: &Path,
    key: &resume::Key,
    pools: &Pools,
    monitor: &dyn Monitor,
) -> Result<(Journal, HashMap<usize, ClassRelevance>)> {
    let units = resume::RecordUnits { unit: "classes", total: Some(pools.scope.classes().len()) };
    let (journal, records) = resume::open(&beside(output, ".partial"), key, units, monitor)?;
    let by_name: HashMap<&str, usize> =
        pools.classes.iter().enumerate().map(|(c, class)| (class.name.as_str(), c)).collect();
    let decoded = records.into_iter().filter_map(|(name, payload)| {
        let class = *by_name.get(name.as_str())?;
        let rows = &pools.classes[class];
        Some((class, ClassRelevance::decode(&payload, rows.clean.len(), rows.pool.len())?))
    });
    Ok((journal, decoded.collect()))
}

/// Candidates that are all among the clean examples teach nothing.
fn warn_if_all_are_clean(pools: &Pools, scored: &HashMap<usize, ClassRelevance>, monitor: &dyn Monitor) {
    let n_copies = pools.copies().by_id + scored.values().map(|scored| scored.copies.len()).sum::<usize>();
    if pools.scope.is_whole() && n_copies > 0 && scored.values().all(|scored| scored.relevance.is_empty()) {
        let noisy = pools.pool.path.display();
        monitor.warning(&format!(
            "all candidates in `{noisy}` are clean examples of their class: none was scored"
        ));
    }
}
