//! The cells of the tables: methods × shots × episodes, cleaned class by class and kept in a journal.

use std::collections::HashMap;

use anyhow::{Context, Result};
use labelsieve::classifier::{Cosine, WeightMatrix, WeightedClass, prototype};
use labelsieve::engine::{Cpu, Engine, Job};
use labelsieve::evaluation::{BaseTest, TestSets};
use labelsieve::random::Stream;
use labelsieve::relevance::others;
use labelsieve::schedule::map_classes;
use labelsieve::{ClassProblem, Features, Method, NoisyPool};
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

/// A benchmark run and the journal of what it has finished.
pub struct Run {
    journal: Journal,
    done: HashMap<String, Vec<u8>>,
    shots: Vec<usize>,
    episodes: usize,
    seed: u64,
}

impl Run {
    pub fn new(
        journal: Journal,
        records: Vec<JournalRecord>,
        shots: Vec<usize>,
        episodes: usize,
        seed: u64,
    ) -> Run {
        Run { journal, done: records.into_iter().collect(), shots, episodes, seed }
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
            for episode in 0..self.episodes {
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

    /// Clean examples by shot and episode, of every class.
    fn clean_sets(&self, part: &Part) -> Result<Vec<Vec<Vec<Features>>>> {
        let of_shot = |&k: &usize| (1..=self.episodes).map(|episode| part.clean(episode, k)).collect();
        self.shots.iter().map(of_shot).collect()
    }

    /// Fills the journal with the prototypes of all classes and settings that are not there yet.
    fn clean_pools(
        &mut self,
        part: &Part,
        settings: &[Setting],
        clean: &[Vec<Vec<Features>>],
        printer: &Printer,
    ) -> Result<()> {
        let sizes = part.pool_sizes();
        let finished = |(shot, method): &Setting, class: usize| {
            let key = self.class_key(part, *shot, method.as_ref(), class);
            self.holds(&key, self.episodes * part.dim())
                && (!matches!(method, Some(Method::Gcn(_)))
                    || self.holds(&relevance_key(&key), self.episodes * sizes[class]))
        };
        let missing =
            |class: usize| settings.iter().filter(|setting| !finished(setting, class)).collect::<Vec<_>>();
        let mut open: Vec<(usize, Vec<&Setting>)> = (0..part.novel.len())
            .map(|class| (class, missing(class)))
            .filter(|(_, s)| !s.is_empty())
            .collect();
        open.sort_by_key(|(class, _)| std::cmp::Reverse(sizes[*class]));
        let total: u64 = open.iter().map(|(class, settings)| (sizes[*class] * settings.len()) as u64).sum();
        let progress = printer.progress(total * self.episodes as u64, "scores");
        progress.set_message(format!("{} classes", part.phase.name()));
        let mut found = Vec::new();
        for batch in batches(&open, &sizes, part.dim()) {
            let batch_sizes: Vec<usize> = batch.iter().map(|(class, _)| sizes[*class]).collect();
            let results = map_classes(&batch_sizes, |i| -> Result<Vec<(String, Vec<u8>)>> {
                let (class, settings) = &batch[i];
                let results = self.clean_pool(part, *class, settings, clean)?;
                for (key, payload) in &results {
                    self.journal.append(key, payload)?;
                }
                progress.inc((sizes[*class] * settings.len() * self.episodes) as u64);
                Ok(results)
            });
            for result in results {
                found.extend(result?);
            }
        }
        progress.finish_and_clear();
        self.done.extend(found);
        Ok(())
    }

    /// All settings and episodes of one class over one graph: for each setting the prototypes of its episodes and,
    /// for gcn, the relevance that the cosine classifier will need.
    fn clean_pool(
        &self,
        part: &Part,
        class: usize,
        settings: &[&Setting],
        clean: &[Vec<Vec<Features>>],
    ) -> Result<Vec<(String, Vec<u8>)>> {
        let features = part.pool(class)?;
        let pool = match settings.iter().filter_map(|(_, method)| method.as_ref()).find(|m| uses_graph(m)) {
            Some(method) => Cpu.pool(method, features)?,
            None => NoisyPool::new(features),
        };
        let nothing = Features::empty(part.dim());
        let mut results = Vec::new();
        for (shot, method) in settings {
            let key = self.class_key(part, *shot, method.as_ref(), class);
            let sets: Vec<&Features> = clean[*shot].iter().map(|sets| &sets[class]).collect();
            let Some(method) = method else {
                let alone = |clean: &&Features| Ok(prototype(&WeightedClass::new(clean, &nothing, &[])?));
                let rows = sets.iter().map(alone).collect::<Result<Vec<_>>>()?;
                results.push((key, bytes(&rows.concat())));
                continue;
            };
            let stream = |episode: usize| {
                Stream::new(self.seed).branch(class as u64).branch((self.shots[*shot] * 10 + episode) as u64)
            };
            let negatives: Vec<Features> = match method {
                Method::Linear(_) => {
                    (0..self.episodes).map(|e| others(&clean[*shot][e], class, stream(e).branch(1))).collect()
                }
                _ => vec![nothing.clone(); self.episodes],
            };
            let mut jobs = Vec::with_capacity(self.episodes);
            for episode in 0..self.episodes {
                let problem = ClassProblem::new(sets[episode], &pool)?.with_others(&negatives[episode])?;
                jobs.push(Job { problem, seed: stream(episode).bits(0) });
            }
            let relevance = Cpu.relevance(method, &jobs, &|_, _| ())?;
            let mut rows = Vec::new();
            for (clean, relevance) in sets.iter().zip(&relevance) {
                rows.extend(prototype(&WeightedClass::new(clean, pool.features(), relevance.noisy())?));
            }
            if matches!(method, Method::Gcn(_)) {
                let all: Vec<f32> =
                    relevance.iter().flat_map(|relevance| relevance.noisy()).copied().collect();
                results.push((relevance_key(&key), bytes(&all)));
            }
            results.push((key, bytes(&rows)));
        }
        Ok(results)
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
                format!("{} cosine k={} episode={episode} {setting}", part.journal_name, self.shots[shot])
            })
            .collect();
        let reached = |key: &String| serde_json::from_slice::<Reached>(self.done.get(key)?).ok();
        let open: Vec<usize> = (0..episodes).filter(|&e| reached(&keys[e]).is_none()).collect();
        if !open.is_empty() {
            let progress = printer.progress(open.len() as u64, "classifiers");
            progress.set_message(format!("{} cosine, k = {}", part.phase.name(), self.shots[shot]));
            let tests = self.tests(part)?;
            let pools = (0..part.novel.len()).map(|class| part.pool(class)).collect::<Result<Vec<_>>>()?;
            for episode in open {
                let clean = part.clean(episode + 1, self.shots[shot])?;
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
                let weights = cosine.train(&classes, part.dim(), self.seed)?;
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
        let (phase, k, method) = (&part.journal_name, self.shots[shot], method_key(method));
        format!("{phase} class={class} k={k} episodes={} {method}", self.episodes)
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

/// Classes to be in memory together: up to a quarter of a gibibyte of features, or a single larger class.
fn batches<'a, T>(classes: &'a [(usize, T)], sizes: &[usize], dim: usize) -> Vec<&'a [(usize, T)]> {
    const MOST_BYTES: usize = 256 << 20;
    let bytes = |class: usize| sizes[class] * dim * size_of::<f32>();
    let mut batches = Vec::new();
    let mut start = 0;
    while start < classes.len() {
        let (mut end, mut held) = (start + 1, bytes(classes[start].0));
        while end < classes.len() && held + bytes(classes[end].0) <= MOST_BYTES {
            held += bytes(classes[end].0);
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
