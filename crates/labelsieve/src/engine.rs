//! Engines: an engine scores the pools of many classes and learns from them, in the order and on the device that suit it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::classifier::{Cosine, WeightMatrix, WeightedClass, prototypes};
use crate::error::{Error, Result};
use crate::features::Features;
use crate::graph::{Affinity, NoisyGraph, NoisyPool};
pub use crate::model::Job;
use crate::model::{ClassProblem, Relevance};
use crate::relevance::{Auto, Method, SharedInputs};
use crate::schedule::{LARGE, map_classes};

/// Scores many classes at once, and learns from the scores.
pub trait Engine: Send + Sync {
    /// Candidates that several jobs will share, with the part of their graph that no clean example changes, if the method
    /// reads it.
    fn pool(&self, method: &Method, features: Features) -> Result<NoisyPool> {
        method.build()?; // rejects invalid settings
        match method.neighbours(features.len()) {
            Some(count) => {
                let graph = self.noisy_graph(&features, count)?;
                NoisyPool::from_parts(features, graph)
            }
            None => Ok(NoisyPool::new(features)),
        }
    }

    /// Whether `auto` is scored part by part, so that a pool with its graph ([`Engine::pool`]) saves the search of every part but
    /// one.
    fn scores_in_parts(&self) -> bool {
        false
    }

    /// The graph of the candidates alone, with `count` neighbours each.
    fn noisy_graph(&self, noisy: &Features, count: usize) -> Result<NoisyGraph> {
        Ok(NoisyGraph::new(noisy, count))
    }

    /// The relevance of each job's pool, in order. `finished` is called with a job's position and result as soon as it is
    /// done, from any thread, so that finished results are not lost if a later job fails.
    fn relevance(
        &self,
        method: &Method,
        jobs: &[Job],
        finished: &(dyn Fn(usize, &Relevance) + Sync),
    ) -> Result<Vec<Relevance>>;

    /// Eq. (5): the prototypes of all classes.
    fn prototypes(&self, classes: &[WeightedClass], dim: usize, scale: f32) -> Result<WeightMatrix> {
        prototypes(classes, dim, scale)
    }

    /// Eq. (6): a cosine classifier of all classes.
    fn cosine(
        &self,
        settings: &Cosine,
        classes: &[WeightedClass],
        dim: usize,
        seed: u64,
    ) -> Result<WeightMatrix> {
        settings.train(classes, dim, seed)
    }
}

/// The CPU, with the threads of the current rayon pool.
pub struct Cpu;

impl Engine for Cpu {
    fn relevance(
        &self,
        method: &Method,
        jobs: &[Job],
        finished: &(dyn Fn(usize, &Relevance) + Sync),
    ) -> Result<Vec<Relevance>> {
        let model = method.build()?;
        let groups = groups(method, jobs);
        let size = |group: &Vec<usize>| jobs[group[0]].problem.noisy.features().len();
        let sizes: Vec<usize> = groups.iter().map(size).collect();
        let score = |g: usize| {
            let of_group: Vec<Job> = groups[g].iter().map(|&i| jobs[i]).collect();
            model.relevance_of_all(&of_group, &|i, relevance| finished(groups[g][i], relevance))
        };
        let scored = groups.iter().flatten().zip(map_classes(&sizes, score).into_iter().flatten());
        let mut results: Vec<(usize, Result<Relevance>)> = scored.map(|(&i, result)| (i, result)).collect();
        results.sort_unstable_by_key(|(i, _)| *i);
        results.into_iter().map(|(_, result)| result).collect()
    }
}

/// Groups jobs over one pool where that saves work; other jobs are alone. Jobs over small pools use one thread each, so groups
/// of them are kept small enough to occupy all threads.
fn groups(method: &Method, jobs: &[Job]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut group_of: HashMap<*const NoisyPool, usize> = HashMap::new();
    let is_small = |job: &Job| job.problem.noisy.features().len() < LARGE;
    let n_small = jobs.iter().filter(|&job| is_small(job)).count();
    let max_small = n_small.div_ceil(2 * rayon::current_num_threads());
    for (i, job) in jobs.iter().enumerate() {
        let pool = std::ptr::from_ref(job.problem.noisy);
        let max_jobs = if is_small(job) { max_small } else { usize::MAX };
        let open = group_of.get(&pool).copied().filter(|&group| groups[group].len() < max_jobs);
        match open {
            Some(group) => groups[group].push(i),
            None => groups.push(vec![i]),
        }
        if open.is_none() && method.shares_work(job.problem.noisy) {
            group_of.insert(pool, groups.len() - 1);
        }
    }
    groups
}

/// Scores `auto` on an engine that scores one method at a time: each part for all jobs that have it. A job's parts are combined
/// and reported as soon as its last part is done.
#[doc(hidden)] // for our own crates
pub fn relevance_in_parts(
    engine: &dyn Engine,
    auto: &Auto,
    jobs: &[Job],
    finished: &(dyn Fn(usize, &Relevance) + Sync),
) -> Result<Vec<Relevance>> {
    let affinity = |problem: &ClassProblem, count: usize| {
        let noisy = problem.noisy.features();
        let neighbours = match problem.noisy.ready_graph(count) {
            Some(graph) => graph.insert(problem.clean, noisy),
            None => engine.noisy_graph(noisy, count)?.insert(problem.clean, noisy),
        };
        Ok(Arc::new(Affinity::reciprocal(&neighbours)))
    };
    let inputs = jobs.iter().map(|job| SharedInputs::new(auto, &job.problem, affinity));
    let inputs = inputs.collect::<Result<Vec<SharedInputs>>>()?;
    let mut prepared = Vec::with_capacity(jobs.len());
    for (job, inputs) in jobs.iter().zip(&inputs) {
        prepared.push(Job { problem: inputs.problem(&job.problem), seed: job.seed });
    }
    let jobs = prepared;
    let parts: Vec<Vec<Method>> = jobs.iter().map(|job| auto.parts(&job.problem)).collect();
    let max_parts = parts.iter().map(Vec::len).max().unwrap_or(0);
    let part_results: Vec<Mutex<Vec<Relevance>>> = jobs.iter().map(|_| Mutex::default()).collect();
    let results: Mutex<Vec<Option<Relevance>>> = Mutex::new(vec![None; jobs.len()]);
    let failure: Mutex<Option<Error>> = Mutex::default();
    let part_is_done = |job: usize, relevance: &Relevance| {
        let mut part_results = lock(&part_results[job]);
        part_results.push(relevance.clone());
        if part_results.len() < parts[job].len() {
            return;
        }
        match auto.combine(&jobs[job].problem, &std::mem::take(&mut *part_results)) {
            Ok(relevance) => {
                finished(job, &relevance);
                lock(&results)[job] = Some(relevance);
            }
            Err(error) => {
                lock(&failure).get_or_insert(error);
            }
        }
    };
    // Parts by how many are still to follow: a job's last part comes in the last of these rounds, and the work of all the
    // others is behind it.
    for n_left in (0..max_parts).rev() {
        let part = |job: usize| parts[job].len().checked_sub(n_left + 1).map(|at| &parts[job][at]);
        let mut open: Vec<usize> = (0..jobs.len()).filter(|&job| part(job).is_some()).collect();
        while let Some(method) = open.first().and_then(|&job| part(job)) {
            let same_part: Vec<usize> =
                open.iter().copied().filter(|&job| part(job) == Some(method)).collect();
            let part_jobs: Vec<Job> = same_part.iter().map(|&job| jobs[job]).collect();
            engine.relevance(method, &part_jobs, &|i, relevance| part_is_done(same_part[i], relevance))?;
            open.retain(|&job| part(job) != Some(method));
        }
    }
    if let Some(error) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(results.into_iter().map(|result| result.expect("every part was scored")).collect())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::synthetic::Recipe;

    #[test]
    fn in_parts_auto_is_what_it_is_at_once_and_every_job_is_reported_once() {
        let classes = Recipe { n_classes: 4, largest_pool: 300, ..Recipe::default() }.generate(2).classes;
        let pools: Vec<NoisyPool> = classes.iter().map(|class| NoisyPool::new(class.noisy.clone())).collect();
        let others = classes[0].clean.clone();
        let jobs: Vec<Job> = (0..4)
            .map(|c| {
                let problem = ClassProblem::new(&classes[c].clean, &pools[c]).unwrap();
                // The third has nothing to be compared with: it has one part, the others two.
                let problem = if c == 2 { problem } else { problem.with_other_classes(&others).unwrap() };
                Job { problem, seed: c as u64 }
            })
            .collect();
        let auto = Auto::default();
        let reported: Vec<AtomicUsize> = (0..4).map(|_| AtomicUsize::new(0)).collect();
        let count = |job: usize, _: &Relevance| {
            reported[job].fetch_add(1, Ordering::Relaxed);
        };
        let in_parts = relevance_in_parts(&Cpu, &auto, &jobs, &count).unwrap();
        assert_eq!(in_parts, Cpu.relevance(&Method::Auto(auto), &jobs, &|_, _| ()).unwrap());
        assert!(reported.iter().all(|reports| reports.load(Ordering::Relaxed) == 1));
    }
}
