//! Diffusion over one graph of all rows, and diffusion combined with logistic regression.

use std::cell::OnceCell;

use labelsieve::classifier::WeightedClass;
use labelsieve::evaluation::accuracy_of;
use labelsieve::{Classifier, Features, Scores};
use labelsieve_files::work::{Monitor, Result};
use serde_json::json;

use super::exam::Exam;
use super::{LOGISTIC_EXAMPLES, SystemRow, best, kept};
use crate::classifier::{
    Collection, DECAYS, Diffusion, FUSION_WEIGHTS, LinearClassifier, Logistic, TextRule, fuse,
};
use crate::protocol::{CellResult, Clock, Run, Score, Task};

/// The largest number of steps to try.
const MAX_STEPS: usize = 10;
/// The weight of logistic regression without tuning.
const UNTUNED_WEIGHT: f32 = 0.5;

/// Logistic regression on clean examples, and the diffusion without and with text, each also combined with it.
pub(super) fn rows(
    run: &mut Run,
    tuning: Option<&dyn Task>,
    report: &dyn Task,
    score: Score,
    monitor: &dyn Monitor,
) -> Result<Vec<SystemRow>> {
    const NAMES: [(TextRule, [&str; 3]); 2] = [
        (TextRule::Ignored, ["label propagation", "diffusion", "diffusion, logistic"]),
        (TextRule::Kept, ["diffusion, logistic", "diffusion by text", "diffusion by text, logistic"]),
    ];
    let tuning = tuning.map(|task| DiffusionTask::new(task, monitor)).transpose()?;
    let report = DiffusionTask::new(report, monitor)?;
    let decays = (0..run.grid.shots.len())
        .map(|shot| decay(run, tuning.as_ref(), shot, score))
        .collect::<Result<Vec<f32>>>()?;
    let logistic = |task: &DiffusionTask, run: &mut Run, shot: usize| {
        (0..run.grid.episodes).map(|e| task.logistic(run, shot, e, decays[shot])).collect::<Result<Vec<_>>>()
    };
    let mut rows = vec![SystemRow {
        name: "clean only, logistic",
        after: "clean only, cosine",
        cells: (0..decays.len()).map(|s| logistic(&report, run, s)).collect::<Result<_>>()?,
        settings: decays.iter().map(|decay| json!({ "decay": decay })).collect(),
    }];
    for (text, [after, name, fused_name]) in NAMES {
        let row = |name, after| SystemRow { name, after, cells: Vec::new(), settings: Vec::new() };
        let mut alone = row(name, after);
        let mut fused = row(fused_name, name);
        for (shot, &decay) in decays.iter().enumerate() {
            let settings = steps(run, tuning.as_ref(), shot, text, score)?;
            let weight = weight(run, tuning.as_ref(), shot, &settings, decay, score)?;
            let mut of_alone = Vec::new();
            let mut of_fused = Vec::new();
            for episode in 0..run.grid.episodes {
                of_alone.push(report.diffused(run, shot, episode, text)?.swap_remove(settings.iterations));
                let place = FUSION_WEIGHTS.iter().position(|&w| w == weight).unwrap_or(0);
                of_fused.push(report.fused(run, shot, episode, &settings, decay)?.swap_remove(place));
            }
            alone.cells.push(of_alone);
            fused.cells.push(of_fused);
            alone.settings.push(json!(settings));
            fused.settings.push(json!({ "diffusion": settings, "decay": decay, "weight": weight }));
        }
        rows.extend([alone, fused]);
    }
    Ok(rows)
}

fn decay(run: &mut Run, tuning: Option<&DiffusionTask>, shot: usize, score: Score) -> Result<f32> {
    let Some(tuning) = tuning else { return Ok(Logistic::default().decay) };
    let mut tried = Vec::new();
    for decay in DECAYS {
        let cells = (0..run.grid.episodes).map(|episode| tuning.logistic(run, shot, episode, decay));
        tried.push((decay, cells.collect::<Result<Vec<_>>>()?));
    }
    best(tried, score)
}

/// Early stopping: the number of steps with the best score on the tuning classes.
fn steps(
    run: &mut Run,
    tuning: Option<&DiffusionTask>,
    shot: usize,
    text: TextRule,
    score: Score,
) -> Result<Diffusion> {
    let usual = Diffusion { text, ..Diffusion::default() };
    let Some(tuning) = tuning else { return Ok(usual) };
    let episodes = (0..run.grid.episodes).map(|episode| tuning.diffused(run, shot, episode, text));
    let episodes = episodes.collect::<Result<Vec<_>>>()?;
    let after = |steps: usize| episodes.iter().map(|by_step| by_step[steps].clone()).collect();
    let iterations = best((0..=MAX_STEPS).map(|steps| (steps, after(steps))), score)?;
    Ok(Diffusion { iterations, ..usual })
}

fn weight(
    run: &mut Run,
    tuning: Option<&DiffusionTask>,
    shot: usize,
    settings: &Diffusion,
    decay: f32,
    score: Score,
) -> Result<f32> {
    let Some(tuning) = tuning else { return Ok(UNTUNED_WEIGHT) };
    let episodes = (0..run.grid.episodes).map(|episode| tuning.fused(run, shot, episode, settings, decay));
    let episodes = episodes.collect::<Result<Vec<_>>>()?;
    let with = |place: usize| episodes.iter().map(|by_weight| by_weight[place].clone()).collect();
    best(FUSION_WEIGHTS.iter().enumerate().map(|(place, &weight)| (weight, with(place))), score)
}

/// A task with the data that all its cells share.
struct DiffusionTask<'a> {
    task: &'a dyn Task,
    test: Features,
    labels: Vec<usize>,
    exam: Exam,
    /// All candidates and the background, with their neighbours; built on first use.
    collection: OnceCell<Collection>,
    monitor: &'a dyn Monitor,
}

impl<'a> DiffusionTask<'a> {
    fn new(task: &'a dyn Task, monitor: &'a dyn Monitor) -> Result<DiffusionTask<'a>> {
        let (test, labels) = task.novel_test()?;
        let exam = Exam::new(task, LOGISTIC_EXAMPLES)?;
        Ok(DiffusionTask { task, test, labels, exam, collection: OnceCell::new(), monitor })
    }

    fn key(&self, run: &Run, shot: usize, episode: usize, setting: &serde_json::Value) -> String {
        let name = self.task.journal_name();
        let k = run.grid.shots[shot];
        format!("{name} system k={k} episode={episode} {setting}")
    }

    /// The accuracy of the diffusion before the first and after each step.
    fn diffused(
        &self,
        run: &mut Run,
        shot: usize,
        episode: usize,
        text: TextRule,
    ) -> Result<Vec<CellResult>> {
        let settings = Diffusion { text, iterations: MAX_STEPS, ..Diffusion::default() };
        let key = self.key(run, shot, episode, &json!({ "diffusion": settings }));
        let k = run.grid.shots[shot];
        kept(run, key, |clock| {
            self.monitor.detail(&format!(
                "{}: diffusion, k = {k}, episode {}",
                self.task.title(),
                episode + 1
            ));
            let all = self.scores(clock, &settings, k, episode)?;
            all.iter().map(|scores| self.cell(scores)).collect()
        })
    }

    fn logistic(&self, run: &mut Run, shot: usize, episode: usize, decay: f32) -> Result<CellResult> {
        let settings = Logistic { decay, ..Logistic::default() };
        let key = self.key(run, shot, episode, &json!({ "logistic": settings }));
        let k = run.grid.shots[shot];
        kept(run, key, |clock| {
            let clean = self.task.clean(episode, k)?;
            let learn = |classes: &[WeightedClass]| -> labelsieve::Result<Box<dyn Classifier>> {
                Ok(Box::new(settings.train(classes, self.task.dim())?))
            };
            clock.time("logistic regression", || self.exam.cell(&clean, learn))
        })
    }

    /// The accuracy of both combined, for each of [`FUSION_WEIGHTS`].
    fn fused(
        &self,
        run: &mut Run,
        shot: usize,
        episode: usize,
        settings: &Diffusion,
        decay: f32,
    ) -> Result<Vec<CellResult>> {
        let logistic = Logistic { decay, ..Logistic::default() };
        let key = self.key(run, shot, episode, &json!({ "diffusion": settings, "logistic": logistic }));
        let k = run.grid.shots[shot];
        kept(run, key, |clock| {
            let mut by_step = self.scores(clock, settings, k, episode)?;
            let diffused = by_step.swap_remove(settings.iterations);
            let learned = self.learn_logistic(clock, &logistic, k, episode)?;
            let probabilities = learned.probabilities(&self.test);
            FUSION_WEIGHTS.iter().map(|&w| self.cell(&fuse(&diffused, &probabilities, w))).collect()
        })
    }

    /// A diffusion is tested on the novel classes only, since base classes are its background.
    fn cell(&self, scores: &Scores) -> Result<CellResult> {
        Ok(CellResult::from_accuracy(&accuracy_of(scores, &self.labels)?, None))
    }

    fn learn_logistic(
        &self,
        clock: &Clock,
        settings: &Logistic,
        k: usize,
        episode: usize,
    ) -> Result<LinearClassifier> {
        let clean = self.task.clean(episode, k)?;
        let none = Features::empty(self.task.dim());
        let classes = clean.iter().map(|clean| WeightedClass::new(clean, &none, &[]));
        let classes = classes.collect::<labelsieve::Result<Vec<_>>>()?;
        Ok(clock.time("logistic regression", || settings.train(&classes, self.task.dim()))?)
    }

    /// The scores of the test examples before the first and after each step of the settings.
    fn scores(&self, clock: &Clock, settings: &Diffusion, k: usize, episode: usize) -> Result<Vec<Scores>> {
        let n_classes = self.task.pool_sizes().len();
        let removed: Vec<Vec<usize>> =
            (0..n_classes).map(|class| self.task.removed(class, episode, k)).collect();
        let own;
        let collection = if removed.iter().all(Vec::is_empty) {
            self.collection(clock, settings.neighbours)?
        } else {
            own = clock.time("graph of the diffusion", || self.gather(settings.neighbours, &removed))?;
            &own
        };
        let clean = self.task.clean(episode, k)?;
        let clean: Vec<&Features> = clean.iter().collect();
        clock.time("diffusion", || {
            let mut spread = settings.start(collection, &clean)?;
            let reach = spread.reach(&self.test);
            let mut all = vec![spread.scores(&reach)];
            for _ in 0..settings.iterations {
                spread.step();
                all.push(spread.scores(&reach));
            }
            Ok(all)
        })
    }

    fn collection(&self, clock: &Clock, neighbours: usize) -> Result<&Collection> {
        if self.collection.get().is_none() {
            let none = vec![Vec::new(); self.task.pool_sizes().len()];
            let made = clock.time("graph of the diffusion", || self.gather(neighbours, &none))?;
            let rows = made.rows().len();
            self.monitor
                .note(&format!("{}: built one graph of {rows} rows for the diffusion", self.task.title()));
            let _ = self.collection.set(made);
        }
        Ok(self.collection.get().unwrap_or_else(|| unreachable!("just set")))
    }

    /// All candidates but those `removed` from each class, and the background.
    fn gather(&self, neighbours: usize, removed: &[Vec<usize>]) -> Result<Collection> {
        let mut pools = Vec::with_capacity(removed.len());
        for (class, removed) in removed.iter().enumerate() {
            let pool = self.task.pool(class)?;
            let kept: Vec<usize> =
                (0..pool.len()).filter(|place| removed.binary_search(place).is_err()).collect();
            pools.push(if removed.is_empty() { pool } else { pool.select(&kept) });
        }
        let pools: Vec<&Features> = pools.iter().collect();
        Ok(Collection::new(&pools, &self.task.background()?, neighbours)?)
    }
}
