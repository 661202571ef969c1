//! Systems that learn from episodes of base classes: prototypical networks on features, logistic regression with hallucinated examples,
//! and prototype matching networks with hallucination.

use labelsieve::classifier::WeightedClass;
use labelsieve::{Classifier, Features};
use labelsieve_files::work::{Monitor, Result};
use serde_json::{Value, json};

use super::exam::Exam;
use super::{LOGISTIC_EXAMPLES, SystemRow, best, kept};
use crate::classifier::{
    DECAYS, EpisodicKind, EpisodicModel, EpisodicSizes, EpisodicTraining, Logistic, Tensor,
};
use crate::protocol::{CellResult, Run, Score, Task, bytes, floats};

/// Too few base classes for learning about novel ones.
const MIN_BASE_CLASSES: usize = 5;

/// On wider features the LSTMs of prototype matching networks (over 16 d² parameters) outgrow their training data.
const MAX_CONTEXT_DIM: usize = 1024;

/// The rows of all systems that the base classes and the width of the features allow.
pub(super) fn rows(
    run: &mut Run,
    tuning: Option<&dyn Task>,
    report: &dyn Task,
    score: Score,
    monitor: &dyn Monitor,
) -> Result<Vec<SystemRow>> {
    let sets = report.base_sets()?;
    let mut rows = Vec::new();
    if sets.len() < MIN_BASE_CLASSES {
        monitor.note("too few base classes to learn from episodes; skipping the rows of systems that do");
        return Ok(rows);
    }
    let learn = |run: &mut Run, kind| model(run, kind, &sets, report.dim(), monitor);
    let tested = TaskExam::new(report, usize::MAX)?;
    let prototypical = System::Matching(learn(run, EpisodicKind::Prototypical)?);
    rows.push(row(run, "prototypical", "clean only", &prototypical, &tested)?);
    let hallucinator = learn(run, EpisodicKind::Hallucination)?;
    rows.push(logistic_row(run, hallucinator, tuning, report, score)?);
    if report.dim() > MAX_CONTEXT_DIM {
        monitor.note(&format!(
            "features of {} numbers are too wide for prototype matching networks (at most {MAX_CONTEXT_DIM}); skipping their row",
            report.dim()
        ));
        return Ok(rows);
    }
    let matching = System::Matching(learn(run, EpisodicKind::PrototypeMatching)?);
    rows.push(row(run, "pmn with hallucination", "logistic with hallucination", &matching, &tested)?);
    Ok(rows)
}

/// A system with all its settings.
enum System {
    /// Classes as represented by the system.
    Matching(EpisodicModel),
    /// Logistic regression on examples and hallucinations.
    Logistic(EpisodicModel, Logistic),
}

impl System {
    fn settings(&self) -> Value {
        match self {
            System::Matching(model) => json!({ "kind": model.kind(), "sizes": model.sizes() }),
            System::Logistic(model, logistic) => {
                json!({ "kind": model.kind(), "sizes": model.sizes(), "logistic": logistic })
            }
        }
    }

    fn learn(&self, classes: &[WeightedClass], seed: u64) -> labelsieve::Result<Box<dyn Classifier>> {
        Ok(match self {
            System::Matching(model) => Box::new(model.classifier(classes, seed)?),
            System::Logistic(model, logistic) => Box::new(model.logistic(logistic, classes, seed)?),
        })
    }
}

fn row(
    run: &mut Run,
    name: &'static str,
    after: &'static str,
    system: &System,
    report: &TaskExam,
) -> Result<SystemRow> {
    let n_shots = run.grid.shots.len();
    let cells = (0..n_shots).map(|shot| report.cells(run, system, shot)).collect::<Result<_>>()?;
    Ok(SystemRow { name, after, cells, settings: vec![system.settings(); n_shots] })
}

/// The penalty of logistic regression is chosen for each shot.
fn logistic_row(
    run: &mut Run,
    model: EpisodicModel,
    tuning: Option<&dyn Task>,
    report: &dyn Task,
    score: Score,
) -> Result<SystemRow> {
    let with = |decay: f32| System::Logistic(model.clone(), Logistic { decay, ..Logistic::default() });
    let tested = |task| TaskExam::new(task, LOGISTIC_EXAMPLES);
    let tuning = tuning.map(tested).transpose()?;
    let report = tested(report)?;
    let name = "logistic with hallucination";
    let after = "prototypical";
    let mut row = SystemRow { name, after, cells: Vec::new(), settings: Vec::new() };
    for shot in 0..run.grid.shots.len() {
        let system = match &tuning {
            None => with(Logistic::default().decay),
            Some(tuning) => {
                let mut tried = Vec::new();
                for decay in DECAYS {
                    tried.push((decay, tuning.cells(run, &with(decay), shot)?));
                }
                with(best(tried, score)?)
            }
        };
        row.cells.push(report.cells(run, &system, shot)?);
        row.settings.push(system.settings());
    }
    Ok(row)
}

/// A task with its exam.
struct TaskExam<'a> {
    task: &'a dyn Task,
    exam: Exam,
}

impl<'a> TaskExam<'a> {
    fn new(task: &'a dyn Task, max_base_examples: usize) -> Result<TaskExam<'a>> {
        Ok(TaskExam { task, exam: Exam::new(task, max_base_examples)? })
    }

    /// The accuracy of a system in each episode of a shot, from clean examples alone.
    fn cells(&self, run: &mut Run, system: &System, shot: usize) -> Result<Vec<CellResult>> {
        let k = run.grid.shots[shot];
        (0..run.grid.episodes)
            .map(|episode| {
                let key = format!(
                    "{} system k={k} episode={episode} {}",
                    self.task.journal_name(),
                    json!({ "settings": system.settings(), "training": EpisodicTraining::default() })
                );
                let seed = run.grid.learning_seed(k, episode);
                kept(run, key, |clock| {
                    let clean = self.task.clean(episode, k)?;
                    let learn = |classes: &[WeightedClass]| system.learn(classes, seed);
                    clock.time("systems from episodes", || self.exam.cell(&clean, learn))
                })
            })
            .collect()
    }
}

/// A system trained on the base classes: read from the journal, or trained now.
fn model(
    run: &mut Run,
    kind: EpisodicKind,
    sets: &[Features],
    dim: usize,
    monitor: &dyn Monitor,
) -> Result<EpisodicModel> {
    let settings = EpisodicTraining::default();
    let sizes = EpisodicSizes::usual(dim);
    let seed = run.grid.seed;
    let key = format!("episodes {} {} seed={seed}", json!({ "kind": kind, "sizes": sizes }), json!(settings));
    if let Some(kept) = run.kept(&key).and_then(|bytes| decode(kind, sizes, &floats(bytes))) {
        return Ok(kept);
    }
    let progress = monitor.progress(settings.steps as u64, "steps");
    progress.set_message(&format!("episodes, {}", json!(kind).as_str().unwrap_or_default()));
    let on_step = |_: usize, _: f64| progress.inc(1);
    let learned = run.clock.time("learning from episodes", || {
        settings.train(kind, sizes, sets, seed, monitor.watch(), on_step)
    })?;
    progress.finish();
    let numbers: Vec<f32> = learned.tensors().iter().flat_map(|tensor| &tensor.values).copied().collect();
    run.keep(key, bytes(&numbers))?;
    Ok(learned)
}

/// The system whose parameters [`model`] has kept.
fn decode(kind: EpisodicKind, sizes: EpisodicSizes, mut numbers: &[f32]) -> Option<EpisodicModel> {
    let start = EpisodicModel::initial(kind, sizes, 0).ok()?;
    let mut tensors = Vec::new();
    for Tensor { name, shape, .. } in start.tensors() {
        let (values, rest) = numbers.split_at_checked(shape[0] * shape[1])?;
        tensors.push(Tensor { name: name.clone(), shape: *shape, values: values.to_vec() });
        numbers = rest;
    }
    EpisodicModel::new(kind, sizes, tensors).ok().filter(|_| numbers.is_empty())
}
