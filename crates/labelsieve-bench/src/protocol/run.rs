//! A running benchmark: sources × shots × episodes, scored class by class and kept in a journal.

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

/// What is measured: shots × episodes.
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

    /// The seed of what learns from all classes together at `k` shots in an episode.
    pub fn learning_seed(&self, k: usize, episode: usize) -> u64 {
        self.stream(usize::MAX, k, episode).bits(0)
    }
}

/// A benchmark run and the journal of what it has finished.
pub struct Run<'a> {
    engine: &'a dyn Engine,
    journal: Journal,
    done: HashMap<String, Vec<u8>>,
    pub grid: Grid,
    pub clock: Clock,
}

/// Clean examples by shot, episode and class.
type CleanSets = Vec<Vec<Vec<Features>>>;

impl Run<'_> {
    pub fn new(engine: &dyn Engine, journal: Journal, records: Vec<JournalRecord>, grid: Grid) -> Run<'_> {
        Run { engine, journal, done: records.into_iter().collect(), grid, clock: Clock::default() }
    }

    /// Weighs every pool by every setting and tests the prototypes.
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
        let (dim, n_classes) = (task.dim(), task.pool_sizes().len());
        let mut cells = HashMap::new();
        for (shot, source) in &distinct {
            let mut episodes = Vec::new();
            for episode in 0..self.grid.episodes {
                let mut rows = Vec::with_capacity(n_classes * dim);
                for class in 0..n_classes {
                    let key = self.class_key(task, *shot, source, class);
                    rows.extend(floats(&self.done[&key][episode * dim * 4..(episode + 1) * dim * 4]));
                }
                let weights = WeightMatrix::new(Features::new(rows, dim)?, task.scale())?;
                episodes.push(self.clock.time("tests", || CellResult::new(&tests, &weights))?);
            }
            cells.insert(setting_key(*shot, source), episodes);
        }
        Ok(Cells(cells))
    }

    fn clean_sets(&self, task: &dyn Task) -> Result<CleanSets> {
        let of_shot = |&k: &usize| (0..self.grid.episodes).map(|episode| task.clean(episode, k)).collect();
        self.grid.shots.iter().map(of_shot).collect()
    }

    /// Fills the journal with the prototypes of all classes and settings that are not there yet: batch by batch of
    /// classes, so that memory stays small, and in a batch setting by setting over the same graphs.
    fn score_pools(
        &mut self,
        task: &dyn Task,
        settings: &[Setting],
        clean: &CleanSets,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let sizes = task.pool_sizes();
        let is_open = |class: usize, (shot, source): &Setting| {
            let key = self.class_key(task, *shot, source, class);
            !self.holds(&key, self.grid.episodes * task.dim())
                || (source.keeps_relevance()
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
                let of_shot: Vec<&Setting> = settings.iter().filter(|setting| setting.0 == shot).collect();
                if !of_shot.iter().any(|setting| batch.iter().any(|&class| is_open(class, setting))) {
                    continue;
                }
                let (k, episodes) = (self.grid.shots[shot], self.grid.episodes);
                self.clock.time("graphs", || pools.leave_out_clean(self.engine, task, batch, k, episodes))?;
                for setting in of_shot {
                    let chosen: Vec<usize> =
                        (0..batch.len()).filter(|&b| is_open(batch[b], setting)).collect();
                    for (key, payload) in self.score_batch(task, setting, batch, &chosen, &pools, clean)? {
                        self.journal.append(&key, &payload)?;
                        found.push((key, payload));
                    }
                    let n: usize = chosen.iter().map(|&b| sizes[batch[b]]).sum();
                    progress.inc((n * self.grid.episodes) as u64);
                }
            }
        }
        progress.finish();
        self.done.extend(found);
        Ok(())
    }

    /// One setting over the chosen classes of a batch, all episodes: for each class the prototypes and, for gcn, the
    /// relevance that is needed later.
    fn score_batch(
        &self,
        task: &dyn Task,
        (shot, source): &Setting,
        batch: &[usize],
        chosen: &[usize],
        pools: &Pools,
        clean: &CleanSets,
    ) -> Result<Vec<(String, Vec<u8>)>> {
        let episodes = self.grid.episodes;
        let relevance = self.relevance_of(task, (*shot, source), batch, chosen, pools, clean)?;
        let mut results = Vec::new();
        for (relevance, &b) in relevance.chunks_exact(episodes).zip(chosen) {
            let key = self.class_key(task, *shot, source, batch[b]);
            let mut rows = Vec::with_capacity(episodes * task.dim());
            for (episode, relevance) in relevance.iter().enumerate() {
                let clean = &clean[*shot][episode][batch[b]];
                rows.extend(prototype(&WeightedClass::new(clean, pools.whole(b).features(), relevance)?));
            }
            if source.keeps_relevance() {
                results.push((relevance_key(&key), bytes(&relevance.concat())));
            }
            results.push((key, bytes(&rows)));
        }
        Ok(results)
    }

    /// The weight of each candidate of the chosen classes in each episode, class by class; 0 for those left out.
    fn relevance_of(
        &self,
        task: &dyn Task,
        (shot, source): (usize, &Source),
        batch: &[usize],
        chosen: &[usize],
        pools: &Pools,
        clean: &CleanSets,
    ) -> Result<Vec<Vec<f32>>> {
        let cells: Vec<(usize, usize)> =
            chosen.iter().flat_map(|&b| (0..self.grid.episodes).map(move |episode| (b, episode))).collect();
        let method = match source {
            Source::CleanOnly => {
                return Ok(cells.iter().map(|&(b, _)| vec![0.0; pools.whole(b).features().len()]).collect());
            }
            Source::Oracle => {
                let of_cell = |&(b, e): &(usize, usize)| oracle_weights(task, batch[b], pools.removed(b, e));
                return cells.iter().map(of_cell).collect();
            }
            Source::Scored(method) => method,
        };
        let scored = self.scored(method, shot, &cells, batch, pools, clean)?;
        let parts = scored.into_iter().zip(&cells);
        Ok(parts.map(|(relevance, &(b, episode))| pools.spread(relevance, b, episode)).collect())
    }

    /// The relevance of the candidates that take part, cell by cell.
    fn scored(
        &self,
        method: &Method,
        shot: usize,
        cells: &[(usize, usize)],
        batch: &[usize],
        pools: &Pools,
        clean: &CleanSets,
    ) -> Result<Vec<Vec<f32>>> {
        let k = self.grid.shots[shot];
        let dim = clean[shot][0][0].dim();
        // Rows of other classes are drawn for a few cells at a time: all together would take more memory than the pools.
        const MOST_BYTES: usize = 256 << 20;
        let n_others = match method {
            Method::Linear(_) => MAX_OTHERS,
            _ if method.uses_other_classes() => clean[shot][0].len(),
            _ => 0,
        };
        let together = match n_others {
            0 => cells.len().max(1),
            _ => (MOST_BYTES / (n_others * dim * size_of::<f32>())).max(1),
        };
        let mut scored = Vec::with_capacity(cells.len());
        for cells in cells.chunks(together) {
            let draw = |&(b, e): &(usize, usize)| {
                let stream = self.grid.stream(batch[b], k, e);
                ClassContext::new(method, &clean[shot][e], batch[b], stream.branch(1), stream.bits(0))
            };
            let drawn: Vec<ClassContext> = cells.iter().map(draw).collect();
            let jobs = drawn
                .iter()
                .zip(cells)
                .map(|(drawn, &(b, e))| drawn.job(&clean[shot][e][batch[b]], pools.of(b, e)))
                .collect::<labelsieve::Result<Vec<_>>>()?;
            let relevance =
                self.clock.time(method.name(), || self.engine.relevance(method, &jobs, &|_, _| ()))?;
            scored.extend(relevance.into_iter().map(|relevance| relevance.noisy().to_vec()));
        }
        Ok(scored)
    }

    /// The weight of each class's candidates at a setting in an episode; for gcn, as the journal has kept it.
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
                let key = relevance_key(&self.class_key(task, shot, source, class));
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
        let (engine, dim, grid) = (self.engine, task.dim(), self.grid.clone());
        let k = grid.shots[shot];
        let name = format!("cosine {}", serde_json::json!(cosine));
        self.learned(task, shot, source, ("cosine", &name), episodes, monitor, &|episode, classes| {
            Ok(engine.cosine(cosine, classes, dim, grid.learning_seed(k, episode))?)
        })
    }

    /// What weights that `learn` makes of weighted examples reach, for the first `episodes` episodes. `name` is the
    /// stage and what tells this way of learning from others.
    #[expect(clippy::too_many_arguments, reason = "a setting, how it is learned and who is told")]
    pub fn learned(
        &mut self,
        task: &dyn Task,
        shot: usize,
        source: &Source,
        (stage, name): (&str, &str),
        episodes: usize,
        monitor: &dyn Monitor,
        learn: &dyn Fn(usize, &[WeightedClass]) -> Result<WeightMatrix>,
    ) -> Result<Vec<CellResult>> {
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

    /// Keeps finished work.
    pub fn keep(&mut self, key: String, payload: Vec<u8>) -> Result<()> {
        self.journal.append(&key, &payload)?;
        self.done.insert(key, payload);
        Ok(())
    }

    /// Finished work of this name.
    pub fn kept(&self, key: &str) -> Option<&[u8]> {
        self.done.get(key).map(Vec::as_slice)
    }

    /// Whether the journal holds so many numbers under a key; anything else is done again.
    fn holds(&self, key: &str, n_numbers: usize) -> bool {
        self.done.get(key).is_some_and(|payload| payload.len() == n_numbers * size_of::<f32>())
    }

    /// The journal's name for the prototypes of one class at one setting, all episodes together.
    fn class_key(&self, task: &dyn Task, shot: usize, source: &Source, class: usize) -> String {
        let (name, k) = (task.journal_name(), self.grid.shots[shot]);
        format!("{name} class={class} k={k} episodes={} {}", self.grid.episodes, source.key())
    }

    /// The test sets of a task; W_B is kept, since it may take all base examples to make.
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
