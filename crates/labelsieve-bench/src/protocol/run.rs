//! The run of a benchmark: sources × shots × episodes, scored class by class and kept in a journal.

use std::collections::HashMap;

use labelsieve::classifier::{Cosine, WeightMatrix, WeightedClass, prototype};
use labelsieve::engine::Engine;
use labelsieve::evaluation::{BaseTest, TestSets};
use labelsieve::relevance::MAX_OTHERS;
use labelsieve::schedule::batches;
use labelsieve::{Features, Method};
use labelsieve_files::work::{Context, Monitor, Result};
use labelsieve_files::{Journal, JournalRecord};
use labelsieve_jobs::scoring::ClassContext;
use labelsieve_numerics::random::Stream;

use super::cells::setting_key;
use super::journal_numbers::{bytes, floats};
use super::pools::{Pools, rows_held};
use super::{CellResult, Cells, Clock, Setting, Source, Task, oracle_weights};

/// The cells to measure: shots × episodes.
#[derive(Clone, Debug)]
pub struct Grid {
    pub shots: Vec<usize>,
    pub episodes: usize,
    pub seed: u64,
}

impl Grid {
    /// The random numbers of a class at `k` shots in an episode, which no other cell shares.
    fn stream(&self, class: usize, k: usize, episode: usize) -> Stream {
        Stream::new(self.seed).branch(class as u64).branch(k as u64).branch(episode as u64)
    }

    /// The seed of a classifier that learns from all classes together at `k` shots in an episode.
    pub fn learning_seed(&self, k: usize, episode: usize) -> u64 {
        self.stream(usize::MAX, k, episode).bits(0)
    }
}

/// A benchmark run and the journal of its finished work.
pub struct Run<'a> {
    engine: &'a dyn Engine,
    journal: Journal,
    done: HashMap<String, Vec<u8>>,
    pub grid: Grid,
    pub clock: Clock,
}

/// Clean examples by shot, episode and class.
type CleanSets = Vec<Vec<Vec<Features>>>;

/// A way to learn class weights from weighted examples.
pub struct Learner<'a> {
    /// The stage that its time counts for.
    pub stage: &'a str,
    /// The name in journals, which distinguishes it from other learners.
    pub name: &'a str,
    /// Learns from the classes of an episode.
    pub learn: &'a dyn Fn(usize, &[WeightedClass]) -> Result<WeightMatrix>,
}

/// The classes that are scored together, with their pools.
struct Batch<'a> {
    task: &'a dyn Task,
    classes: &'a [usize],
    pools: &'a Pools,
    clean: &'a CleanSets,
}

impl Run<'_> {
    pub fn new(engine: &dyn Engine, journal: Journal, records: Vec<JournalRecord>, grid: Grid) -> Run<'_> {
        Run { engine, journal, done: records.into_iter().collect(), grid, clock: Clock::default() }
    }

    /// Scores every pool with every setting and tests the prototypes.
    pub fn prototypes(
        &mut self,
        task: &dyn Task,
        settings: &[Setting],
        monitor: &dyn Monitor,
    ) -> Result<Cells> {
        let clean = self.clean_sets(task)?;
        let mut distinct: Vec<Setting> = Vec::new();
        for setting in settings {
            if !distinct.contains(setting) {
                distinct.push(setting.clone());
            }
        }
        self.score_pools(task, &distinct, &clean, monitor)?;
        let tests = self.tests(task)?;
        let dim = task.dim();
        let n_classes = task.pool_sizes().len();
        let mut cells = HashMap::new();
        for setting in &distinct {
            let mut episodes = Vec::new();
            for episode in 0..self.grid.episodes {
                let mut rows = Vec::with_capacity(n_classes * dim);
                for class in 0..n_classes {
                    let key = self.class_key(task, setting, class);
                    rows.extend(floats(&self.done[&key][episode * dim * 4..(episode + 1) * dim * 4]));
                }
                let weights = WeightMatrix::new(Features::new(rows, dim)?, task.scale())?;
                episodes.push(self.clock.time("tests", || CellResult::new(&tests, &weights))?);
            }
            cells.insert(setting_key(setting.shot, &setting.source), episodes);
        }
        Ok(Cells(cells))
    }

    fn clean_sets(&self, task: &dyn Task) -> Result<CleanSets> {
        let of_shot = |&k: &usize| (0..self.grid.episodes).map(|episode| task.clean(episode, k)).collect();
        self.grid.shots.iter().map(of_shot).collect()
    }

    /// Adds the prototypes of all classes and settings that the journal lacks: in batches of classes, which bounds memory, and within a
    /// batch setting by setting over the same graphs.
    fn score_pools(
        &mut self,
        task: &dyn Task,
        settings: &[Setting],
        clean: &CleanSets,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let sizes = task.pool_sizes();
        let is_open = |class: usize, setting: &Setting| {
            let key = self.class_key(task, setting, class);
            !self.holds(&key, self.grid.episodes * task.dim())
                || (setting.source.keeps_relevance()
                    && !self.holds(&relevance_key(&key), self.grid.episodes * sizes[class]))
        };
        let open: Vec<usize> =
            (0..sizes.len()).filter(|&class| settings.iter().any(|s| is_open(class, s))).collect();
        let total: usize = open
            .iter()
            .map(|&class| sizes[class] * settings.iter().filter(|setting| is_open(class, setting)).count())
            .sum();
        let progress = monitor.progress((total * self.grid.episodes) as u64, "scores");
        progress.set_message(task.title());
        let mut found = Vec::new();
        for batch in batches(&rows_held(task, &open, &self.grid), task.dim()) {
            let batch: &[usize] = &batch.into_iter().map(|i| open[i]).collect::<Vec<_>>();
            let mut pools = self.clock.time("graphs", || Pools::new(self.engine, task, batch, settings))?;
            for shot in 0..self.grid.shots.len() {
                let of_shot: Vec<&Setting> = settings.iter().filter(|setting| setting.shot == shot).collect();
                if !of_shot.iter().any(|setting| batch.iter().any(|&class| is_open(class, setting))) {
                    continue;
                }
                let k = self.grid.shots[shot];
                let episodes = self.grid.episodes;
                self.clock.time("graphs", || pools.leave_out_clean(self.engine, task, batch, k, episodes))?;
                for setting in of_shot {
                    let chosen: Vec<usize> =
                        (0..batch.len()).filter(|&b| is_open(batch[b], setting)).collect();
                    let batch = Batch { task, classes: batch, pools: &pools, clean };
                    for (key, payload) in self.score_batch(setting, &batch, &chosen)? {
                        self.journal.append(&key, &payload)?;
                        found.push((key, payload));
                    }
                    let n: usize = chosen.iter().map(|&b| sizes[batch.classes[b]]).sum();
                    progress.inc((n * self.grid.episodes) as u64);
                }
            }
        }
        progress.finish();
        self.done.extend(found);
        Ok(())
    }

    /// Scores the chosen classes of a batch with one setting, in all episodes. The results for each class are the prototypes and, for
    /// gcn, the relevance that is needed later.
    fn score_batch(
        &self,
        setting: &Setting,
        batch: &Batch,
        chosen: &[usize],
    ) -> Result<Vec<(String, Vec<u8>)>> {
        let Batch { task, classes, pools, clean } = *batch;
        let episodes = self.grid.episodes;
        let relevance = self.relevance_of(setting, batch, chosen)?;
        let mut results = Vec::new();
        for (relevance, &b) in relevance.chunks_exact(episodes).zip(chosen) {
            let key = self.class_key(task, setting, classes[b]);
            let mut rows = Vec::with_capacity(episodes * task.dim());
            for (episode, relevance) in relevance.iter().enumerate() {
                let clean = &clean[setting.shot][episode][classes[b]];
                rows.extend(prototype(&WeightedClass::new(clean, pools.whole(b).features(), relevance)?));
            }
            if setting.source.keeps_relevance() {
                results.push((relevance_key(&key), bytes(&relevance.concat())));
            }
            results.push((key, bytes(&rows)));
        }
        Ok(results)
    }

    /// The weight of each candidate of the chosen classes in each episode, class by class; 0 for those left out.
    fn relevance_of(&self, setting: &Setting, batch: &Batch, chosen: &[usize]) -> Result<Vec<Vec<f32>>> {
        let Batch { task, classes, pools, .. } = *batch;
        let cells: Vec<(usize, usize)> =
            chosen.iter().flat_map(|&b| (0..self.grid.episodes).map(move |episode| (b, episode))).collect();
        let method = match &setting.source {
            Source::CleanOnly => {
                return Ok(cells.iter().map(|&(b, _)| vec![0.0; pools.whole(b).features().len()]).collect());
            }
            Source::Oracle => {
                let of_cell =
                    |&(b, e): &(usize, usize)| oracle_weights(task, classes[b], pools.removed(b, e));
                return cells.iter().map(of_cell).collect();
            }
            Source::Scored(method) => method,
        };
        let scored = self.scored(method, setting.shot, &cells, batch)?;
        let parts = scored.into_iter().zip(&cells);
        Ok(parts.map(|(relevance, &(b, episode))| pools.spread(relevance, b, episode)).collect())
    }

    /// The relevance of the candidates of each cell; those left out are not part of it.
    fn scored(
        &self,
        method: &Method,
        shot: usize,
        cells: &[(usize, usize)],
        batch: &Batch,
    ) -> Result<Vec<Vec<f32>>> {
        let Batch { classes, pools, clean, .. } = *batch;
        let k = self.grid.shots[shot];
        let dim = clean[shot][0][0].dim();
        // Rows of other classes are drawn for a few cells at a time: for all cells together they would take more memory than the pools.
        const MAX_BYTES: usize = 256 << 20;
        let n_others = match method {
            Method::Linear(_) => MAX_OTHERS,
            _ if method.uses_other_classes() => clean[shot][0].len(),
            _ => 0,
        };
        let cells_at_once = if n_others == 0 {
            cells.len().max(1)
        } else {
            (MAX_BYTES / (n_others * dim * size_of::<f32>())).max(1)
        };
        let mut scored = Vec::with_capacity(cells.len());
        for cells in cells.chunks(cells_at_once) {
            let draw = |&(b, e): &(usize, usize)| {
                let stream = self.grid.stream(classes[b], k, e);
                ClassContext::new(method, &clean[shot][e], classes[b], stream.branch(1), stream.bits(0))
            };
            let drawn: Vec<ClassContext> = cells.iter().map(draw).collect();
            let jobs = drawn
                .iter()
                .zip(cells)
                .map(|(drawn, &(b, e))| drawn.job(&clean[shot][e][classes[b]], pools.of(b, e)))
                .collect::<labelsieve::Result<Vec<_>>>()?;
            let relevance =
                self.clock.time(method.name(), || self.engine.relevance(method, &jobs, &|_, _| ()))?;
            scored.extend(relevance.into_iter().map(|relevance| relevance.noisy().to_vec()));
        }
        Ok(scored)
    }

    /// The weight of each class's candidates at a setting in an episode; for gcn, read from the journal.
    pub fn weights(
        &self,
        task: &dyn Task,
        shot: usize,
        source: &Source,
        episode: usize,
    ) -> Result<Vec<Vec<f32>>> {
        let sizes = task.pool_sizes();
        let of_class = |class: usize| match source {
            Source::CleanOnly => Ok(vec![0.0; sizes[class]]),
            Source::Oracle => {
                oracle_weights(task, class, &task.removed(class, episode, self.grid.shots[shot]))
            }
            Source::Scored(_) => {
                let key =
                    relevance_key(&self.class_key(task, &Setting { shot, source: source.clone() }, class));
                let all = floats(self.done.get(&key).context("relevance missing from the run's journal")?);
                Ok(all[episode * sizes[class]..(episode + 1) * sizes[class]].to_vec())
            }
        };
        (0..sizes.len()).map(of_class).collect()
    }

    /// The cosine classifier over the weights of `source`, for the first `episodes` episodes.
    pub fn cosine(
        &mut self,
        task: &dyn Task,
        shot: usize,
        source: &Source,
        cosine: &Cosine,
        episodes: usize,
        monitor: &dyn Monitor,
    ) -> Result<Vec<CellResult>> {
        let engine = self.engine;
        let dim = task.dim();
        let grid = self.grid.clone();
        let k = grid.shots[shot];
        let name = format!("cosine {}", serde_json::json!(cosine));
        let learn = |episode: usize, classes: &[WeightedClass]| {
            Ok(engine.cosine(cosine, classes, dim, grid.learning_seed(k, episode))?)
        };
        let learner = Learner { stage: "cosine", name: &name, learn: &learn };
        self.learned(task, shot, source, &learner, episodes, monitor)
    }

    /// The accuracy of learned weights in the first `episodes` episodes: read from the journal, or measured and added to it.
    pub fn learned(
        &mut self,
        task: &dyn Task,
        shot: usize,
        source: &Source,
        learner: &Learner,
        episodes: usize,
        monitor: &dyn Monitor,
    ) -> Result<Vec<CellResult>> {
        let Learner { stage, name, learn } = *learner;
        let k = self.grid.shots[shot];
        let key = |episode: usize| {
            format!("{} {name} k={k} episode={episode} {}", task.journal_name(), source.key())
        };
        let reached = |run: &Self, episode: usize| {
            run.done.get(&key(episode)).and_then(|payload| serde_json::from_slice::<CellResult>(payload).ok())
        };
        let open: Vec<usize> = (0..episodes).filter(|&e| reached(self, e).is_none()).collect();
        if !open.is_empty() {
            let progress = monitor.progress(open.len() as u64, "classifiers");
            progress.set_message(&format!("{}, {stage}, k = {k}", task.title()));
            let tests = self.tests(task)?;
            let pools = (0..task.pool_sizes().len()).map(|c| task.pool(c)).collect::<Result<Vec<_>>>()?;
            for episode in open {
                let clean = task.clean(episode, k)?;
                let weights = self.weights(task, shot, source, episode)?;
                let classes = (0..pools.len())
                    .map(|c| WeightedClass::new(&clean[c], &pools[c], &weights[c]))
                    .collect::<labelsieve::Result<Vec<_>>>()?;
                let learned = self.clock.time(stage, || learn(episode, &classes))?;
                let result = self.clock.time("tests", || CellResult::new(&tests, &learned))?;
                self.keep(key(episode), serde_json::to_vec(&result)?)?;
                progress.inc(1);
            }
            progress.finish();
        }
        (0..episodes).map(|e| reached(self, e).context("a cell missing from the run's journal")).collect()
    }

    /// Adds finished work to the journal.
    pub fn keep(&mut self, key: String, payload: Vec<u8>) -> Result<()> {
        self.journal.append(&key, &payload)?;
        self.done.insert(key, payload);
        Ok(())
    }

    /// The finished work under a key.
    pub fn kept(&self, key: &str) -> Option<&[u8]> {
        self.done.get(key).map(Vec::as_slice)
    }

    /// Whether the journal holds `n_numbers` numbers under a key; anything else is computed again.
    fn holds(&self, key: &str, n_numbers: usize) -> bool {
        self.done.get(key).is_some_and(|payload| payload.len() == n_numbers * size_of::<f32>())
    }

    /// The key of the prototypes of one class at one setting, all episodes together.
    fn class_key(&self, task: &dyn Task, setting: &Setting, class: usize) -> String {
        let name = task.journal_name();
        let k = self.grid.shots[setting.shot];
        format!("{name} class={class} k={k} episodes={} {}", self.grid.episodes, setting.source.key())
    }

    /// The test sets of a task. W_B is kept in the journal, since computing it may take all base examples.
    pub fn tests(&mut self, task: &dyn Task) -> Result<TestSets> {
        let (novel, novel_labels) = task.novel_test()?;
        let Some((features, labels)) = task.base_test()? else {
            return Ok(TestSets { novel, novel_labels, base: None });
        };
        let key = format!("{} base", task.journal_name());
        if !self.done.contains_key(&key) {
            self.keep(key.clone(), bytes(&task.base_weights()?))?;
        }
        let weights = Features::new(floats(&self.done[&key]), task.dim())?;
        let weights = WeightMatrix::new(weights, task.scale())?;
        Ok(TestSets { novel, novel_labels, base: Some(BaseTest { weights, features, labels }) })
    }
}

fn relevance_key(class_key: &str) -> String {
    format!("{class_key} relevance")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_cells_share_random_numbers_however_many_episodes_there_are() {
        let grid = Grid { shots: vec![1, 2, 5, 10, 20], episodes: 60, seed: 3 };
        let mut seen = HashSet::new();
        for &k in &grid.shots {
            for episode in 0..grid.episodes {
                assert!(seen.insert(grid.learning_seed(k, episode)), "k = {k}, episode {episode}");
                for class in 0..7 {
                    let number = grid.stream(class, k, episode).bits(0);
                    assert!(seen.insert(number), "class {class}, k = {k}, episode {episode}");
                }
            }
        }
    }
}
