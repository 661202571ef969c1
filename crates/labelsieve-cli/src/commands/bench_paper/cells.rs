//! The cells of the tables: methods × shots × episodes, cleaned class by class and kept in a journal.

use std::collections::HashMap;

use anyhow::{Context, Result};
use labelsieve::classifier::{Cosine, WeightMatrix, WeightedClass, prototype};
use labelsieve::engine::{Engine, Job};
use labelsieve::evaluation::{BaseTest, TestSets};
use labelsieve::random::Stream;
use labelsieve::relevance::others;
use labelsieve::schedule::map_classes;
use labelsieve::{ClassProblem, Features, Method, NoisyPool, Relevance};
use labelsieve_data::{Journal, JournalRecord};
use serde::{Deserialize, Serialize};

use super::release::Part;
use crate::printer::Printer;

/// A method at a shot (by position); none: clean examples alone.
pub type Setting = (usize, Option<Method>);

/// What one cell reached.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reached {
    pub novel_top_1: f64,
    pub novel_top_5: f64,
    pub all_top_5: Option<f64>,
    /// Top-1 of each novel class.
    class_top_1: Vec<f64>,
}

/// Accuracy of every setting and episode.
pub struct Cells(HashMap<String, Vec<Reached>>);

impl Cells {
    /// The episodes of a setting.
    pub fn of(&self, shot: usize, method: Option<&Method>) -> &[Reached] {
        self.0.get(&setting_key(shot, method)).map_or(&[], Vec::as_slice)
    }

    pub fn mean_top_5(&self, shot: usize, method: Option<&Method>) -> f64 {
        let cells = self.of(shot, method);
        cells.iter().map(|cell| cell.novel_top_5).sum::<f64>() / cells.len().max(1) as f64
    }

    /// Top-1 of each class, averaged over episodes.
    pub fn class_top_1(&self, shot: usize, method: Option<&Method>) -> Vec<f64> {
        let cells = self.of(shot, method);
        let n_classes = cells.first().map_or(0, |cell| cell.class_top_1.len());
        let mean = |c: usize| cells.iter().map(|cell| cell.class_top_1[c]).sum::<f64>() / cells.len() as f64;
        (0..n_classes).map(mean).collect()
    }
}

/// What is measured: shots × episodes.
pub struct Grid {
    pub shots: Vec<usize>,
    pub episodes: usize,
    pub seed: u64,
}

/// A benchmark run and the journal of what it has finished.
pub struct Run<'a> {
    engine: &'a dyn Engine,
    journal: Journal,
    done: HashMap<String, Vec<u8>>,
    grid: Grid,
}

/// Clean examples by shot, episode and class.
type CleanSets = Vec<Vec<Vec<Features>>>;

impl Run<'_> {
    pub fn new(engine: &dyn Engine, journal: Journal, records: Vec<JournalRecord>, grid: Grid) -> Run<'_> {
        Run { engine, journal, done: records.into_iter().collect(), grid }
    }

    /// Cleans every pool with every setting and tests the prototypes.
    pub fn prototypes(&mut self, part: &Part, settings: &[Setting], printer: &Printer) -> Result<Cells> {
        let clean = self.clean_sets(part)?;
        let mut distinct: Vec<Setting> = Vec::new();
        for setting in settings {
            if !distinct.contains(setting) {
                distinct.push(setting.clone());
            }
        }
        self.clean_pools(part, &distinct, &clean, printer)?;
        let tests = self.tests(part)?;
        let dim = part.dim();
        let mut cells = HashMap::new();
        for (shot, method) in &distinct {
            let mut episodes = Vec::new();
            for episode in 0..self.grid.episodes {
                let mut rows = Vec::with_capacity(part.novel.len() * dim);
                for class in 0..part.novel.len() {
                    let key = self.class_key(part, *shot, method.as_ref(), class);
                    rows.extend(floats(&self.done[&key][episode * dim * 4..(episode + 1) * dim * 4]));
                }
                let weights = WeightMatrix::new(Features::new(rows, dim)?, Cosine::default().scale)?;
                episodes.push(Reached::new(&tests, &weights)?);
            }
            cells.insert(setting_key(*shot, method.as_ref()), episodes);
        }
        Ok(Cells(cells))
    }

    fn clean_sets(&self, part: &Part) -> Result<CleanSets> {
        let of_shot = |&k: &usize| (1..=self.grid.episodes).map(|episode| part.clean(episode, k)).collect();
        self.grid.shots.iter().map(of_shot).collect()
    }

    /// Fills the journal with the prototypes of all classes and settings that are not there yet: batch by batch of
    /// classes, so that memory stays small, and in a batch setting by setting over the same graphs.
    fn clean_pools(
        &mut self,
        part: &Part,
        settings: &[Setting],
        clean: &CleanSets,
        printer: &Printer,
    ) -> Result<()> {
        let sizes = part.pool_sizes();
        let is_open = |class: usize, (shot, method): &Setting| {
            let key = self.class_key(part, *shot, method.as_ref(), class);
            let keeps_relevance = matches!(method, Some(Method::Gcn(_)));
            !self.holds(&key, self.grid.episodes * part.dim())
                || (keeps_relevance && !self.holds(&relevance_key(&key), self.grid.episodes * sizes[class]))
        };
        let mut open: Vec<usize> =
            (0..part.novel.len()).filter(|&class| settings.iter().any(|s| is_open(class, s))).collect();
        open.sort_by_key(|&class| std::cmp::Reverse(sizes[class]));
        let total: usize = open
            .iter()
            .map(|&class| sizes[class] * settings.iter().filter(|setting| is_open(class, setting)).count())
            .sum();
        let progress = printer.progress((total * self.grid.episodes) as u64, "scores");
        progress.set_message(format!("{} classes", part.phase.name()));
        let mut found = Vec::new();
        for batch in batches(&open, &sizes, part.dim()) {
            let pools = self.pools(part, batch, &sizes, settings)?;
            for setting in settings {
                let chosen: Vec<usize> = (0..batch.len()).filter(|&i| is_open(batch[i], setting)).collect();
                let chosen: Vec<(usize, &NoisyPool)> =
                    chosen.iter().map(|&i| (batch[i], &pools[i])).collect();
                for (key, payload) in self.clean_batch(part, setting, &chosen, clean)? {
                    self.journal.append(&key, &payload)?;
                    found.push((key, payload));
                }
                let n: usize = chosen.iter().map(|(class, _)| sizes[*class]).sum();
                progress.inc((n * self.grid.episodes) as u64);
            }
        }
        progress.finish_and_clear();
        self.done.extend(found);
        Ok(())
    }

    /// The pools of some classes, with graphs if any setting reads them.
    fn pools(
        &self,
        part: &Part,
        batch: &[usize],
        sizes: &[usize],
        settings: &[Setting],
    ) -> Result<Vec<NoisyPool>> {
        let methods = settings.iter().filter_map(|(_, method)| method.as_ref());
        let reads_graph = methods.clone().find(|method| uses_graph(method));
        let batch_sizes: Vec<usize> = batch.iter().map(|&class| sizes[class]).collect();
        let pool = |i: usize| {
            let features = part.pool(batch[i])?;
            Ok(match reads_graph {
                Some(method) => self.engine.pool(method, features)?,
                None => NoisyPool::new(features),
            })
        };
        map_classes(&batch_sizes, pool).into_iter().collect()
    }

    /// One setting over some classes, all episodes: for each class the prototypes and, for gcn, the relevance that the
    /// cosine classifier will need.
    fn clean_batch(
        &self,
        part: &Part,
        (shot, method): &Setting,
        batch: &[(usize, &NoisyPool)],
        clean: &CleanSets,
    ) -> Result<Vec<(String, Vec<u8>)>> {
        let episodes = self.grid.episodes;
        let nothing = Features::empty(part.dim());
        let relevance = match method {
            Some(method) => self.relevance(method, *shot, batch, clean, &nothing)?,
            None => Vec::new(),
        };
        let mut results = Vec::new();
        for (b, &(class, pool)) in batch.iter().enumerate() {
            let key = self.class_key(part, *shot, method.as_ref(), class);
            let mut rows = Vec::with_capacity(episodes * part.dim());
            for episode in 0..episodes {
                let clean = &clean[*shot][episode][class];
                rows.extend(prototype(&match relevance.get(b * episodes + episode) {
                    Some(relevance) => WeightedClass::new(clean, pool.features(), relevance.noisy())?,
                    None => WeightedClass::new(clean, &nothing, &[])?,
                }));
            }
            if matches!(method, Some(Method::Gcn(_))) {
                let of_class = &relevance[b * episodes..(b + 1) * episodes];
                let all: Vec<f32> =
                    of_class.iter().flat_map(|relevance| relevance.noisy()).copied().collect();
                results.push((relevance_key(&key), bytes(&all)));
            }
            results.push((key, bytes(&rows)));
        }
        Ok(results)
    }

    /// The relevance of each class in each episode, class by class.
    fn relevance(
        &self,
        method: &Method,
        shot: usize,
        batch: &[(usize, &NoisyPool)],
        clean: &CleanSets,
        nothing: &Features,
    ) -> Result<Vec<Relevance>> {
        let cells: Vec<(usize, usize)> =
            (0..batch.len()).flat_map(|b| (0..self.grid.episodes).map(move |episode| (b, episode))).collect();
        let stream = |(b, episode): (usize, usize)| {
            let class = Stream::new(self.grid.seed).branch(batch[b].0 as u64);
            class.branch((self.grid.shots[shot] * 10 + episode) as u64)
        };
        let negatives: Vec<Features> = match method {
            Method::Linear(_) => cells
                .iter()
                .map(|&(b, episode)| {
                    others(&clean[shot][episode], batch[b].0, stream((b, episode)).branch(1))
                })
                .collect(),
            _ => Vec::new(),
        };
        let mut jobs = Vec::with_capacity(cells.len());
        for (i, &(b, episode)) in cells.iter().enumerate() {
            let problem = ClassProblem::new(&clean[shot][episode][batch[b].0], batch[b].1)?;
            let problem = problem.with_others(negatives.get(i).unwrap_or(nothing))?;
            jobs.push(Job { problem, seed: stream((b, episode)).bits(0) });
        }
        Ok(self.engine.relevance(method, &jobs, &|_, _| ())?)
    }

    /// The cosine classifier over the relevance of `method`, for the first `episodes` episodes.
    pub fn cosine(
        &mut self,
        part: &Part,
        shot: usize,
        method: Option<&Method>,
        cosine: &Cosine,
        episodes: usize,
        printer: &Printer,
    ) -> Result<Vec<Reached>> {
        let keys: Vec<String> = (0..episodes)
            .map(|episode| {
                let setting = serde_json::json!([cosine, method]);
                format!(
                    "{} cosine k={} episode={episode} {setting}",
                    part.journal_name, self.grid.shots[shot]
                )
            })
            .collect();
        let reached = |key: &String| serde_json::from_slice::<Reached>(self.done.get(key)?).ok();
        let open: Vec<usize> = (0..episodes).filter(|&e| reached(&keys[e]).is_none()).collect();
        if !open.is_empty() {
            let progress = printer.progress(open.len() as u64, "classifiers");
            progress.set_message(format!("{} cosine, k = {}", part.phase.name(), self.grid.shots[shot]));
            let tests = self.tests(part)?;
            let pools = (0..part.novel.len()).map(|class| part.pool(class)).collect::<Result<Vec<_>>>()?;
            for episode in open {
                let clean = part.clean(episode + 1, self.grid.shots[shot])?;
                let relevance = (0..part.novel.len())
                    .map(|class| {
                        let key = relevance_key(&self.class_key(part, shot, method, class));
                        let all =
                            floats(self.done.get(&key).context("relevance missing from the run's journal")?);
                        let z = pools[class].len();
                        Ok(all[episode * z..(episode + 1) * z].to_vec())
                    })
                    .collect::<Result<Vec<_>>>()?;
                let classes = (0..part.novel.len())
                    .map(|c| WeightedClass::new(&clean[c], &pools[c], &relevance[c]))
                    .collect::<labelsieve::Result<Vec<_>>>()?;
                let weights = self.engine.cosine(cosine, &classes, part.dim(), self.grid.seed)?;
                let payload = serde_json::to_vec(&Reached::new(&tests, &weights)?)?;
                self.journal.append(&keys[episode], &payload)?;
                self.done.insert(keys[episode].clone(), payload);
                progress.inc(1);
            }
            progress.finish_and_clear();
        }
        keys.iter().map(|key| Ok(serde_json::from_slice(&self.done[key])?)).collect()
    }

    /// Whether the journal holds so many numbers under a key; anything else is done again.
    fn holds(&self, key: &str, n_numbers: usize) -> bool {
        self.done.get(key).is_some_and(|payload| payload.len() == n_numbers * size_of::<f32>())
    }

    /// The journal's name for the prototypes of one class at one setting, all episodes together.
    fn class_key(&self, part: &Part, shot: usize, method: Option<&Method>, class: usize) -> String {
        let (phase, k, method) = (&part.journal_name, self.grid.shots[shot], method_key(method));
        format!("{phase} class={class} k={k} episodes={} {method}", self.grid.episodes)
    }

    /// The test sets of a phase. The release holds no classifier of the base classes: their prototypes stand for W_B.
    fn tests(&mut self, part: &Part) -> Result<TestSets> {
        let (novel, novel_labels) = part.novel_test()?;
        if part.base.is_empty() {
            return Ok(TestSets { novel, novel_labels, base: None });
        }
        let key = format!("{} base", part.journal_name);
        if !self.holds(&key, part.base.len() * part.dim()) {
            let nothing = Features::empty(part.dim());
            let mut rows = Vec::new();
            for base in 0..part.base.len() {
                rows.extend(prototype(&WeightedClass::new(&part.base_train(base)?, &nothing, &[])?));
            }
            self.journal.append(&key, &bytes(&rows))?;
            self.done.insert(key.clone(), bytes(&rows));
        }
        let weights =
            WeightMatrix::new(Features::new(floats(&self.done[&key]), part.dim())?, Cosine::default().scale)?;
        let (features, labels) = part.base_test()?;
        Ok(TestSets { novel, novel_labels, base: Some(BaseTest { weights, features, labels }) })
    }
}

impl Reached {
    fn new(tests: &TestSets, weights: &WeightMatrix) -> Result<Reached> {
        let reached = tests.measure(weights)?;
        let counts = reached.novel.classes.iter();
        Ok(Reached {
            novel_top_1: reached.novel.top_1,
            novel_top_5: reached.novel.top_5,
            all_top_5: reached.all.map(|all| all.top_5),
            class_top_1: counts.map(|counts| counts.top_1 as f64 / counts.n.max(1) as f64).collect(),
        })
    }
}

fn uses_graph(method: &Method) -> bool {
    method.build().is_ok_and(|model| model.uses_graph())
}

fn setting_key(shot: usize, method: Option<&Method>) -> String {
    format!("{shot} {}", method_key(method))
}

fn relevance_key(class_key: &str) -> String {
    format!("{class_key} relevance")
}

fn method_key(method: Option<&Method>) -> String {
    method.map_or("clean only".to_owned(), |method| serde_json::json!(method).to_string())
}

/// Classes to be in memory together: up to half a gibibyte of features, or a single larger class.
fn batches<'a>(classes: &'a [usize], sizes: &[usize], dim: usize) -> Vec<&'a [usize]> {
    const MOST_BYTES: usize = 512 << 20;
    let bytes = |class: usize| sizes[class] * dim * size_of::<f32>();
    let mut batches = Vec::new();
    let mut start = 0;
    while start < classes.len() {
        let (mut end, mut held) = (start + 1, bytes(classes[start]));
        while end < classes.len() && held + bytes(classes[end]) <= MOST_BYTES {
            held += bytes(classes[end]);
            end += 1;
        }
        batches.push(&classes[start..end]);
        start = end;
    }
    batches
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}
