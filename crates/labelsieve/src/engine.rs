//! What does the work: an engine scores the pools of many classes and learns from them, in whatever order and on whatever
//! device suits it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::classifier::{Cosine, WeightMatrix, WeightedClass, prototypes};
use crate::error::{Error, Result};
use crate::features::Features;
use crate::graph::{Affinity, NoisyGraph};
use crate::model::{ClassProblem, NoisyPool, Relevance};
use crate::relevance::{Auto, Centred, Method};
use crate::schedule::{LARGE, map_classes};

/// One class to be scored.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// Its examples.
    pub problem: ClassProblem<'a>,
    /// The seed of its random numbers.
    pub seed: u64,
}

/// Scores many classes at once, and learns from the scores.
pub trait Engine: Send + Sync {
    /// Candidates that several jobs will share, with the part of their graph that no clean example changes, if the method
    /// reads it.
    fn pool(&self, method: &Method, features: Features) -> Result<NoisyPool> {
        method.build()?; // refuses bad settings
        match method.neighbours(features.len()) {
            Some(count) => {
                let graph = self.noisy_graph(&features, count)?;
                NoisyPool::from_parts(features, graph)
            }
            None => Ok(NoisyPool::new(features)),
        }
    }

    /// Whether `auto` is scored part by part, so that a pool with its graph ([`Engine::pool`]) saves the search of every part but one.
    fn scores_in_parts(&self) -> bool {
        false
    }

    /// That part of the graph, with `count` neighbours each.
    fn noisy_graph(&self, noisy: &Features, count: usize) -> Result<NoisyGraph> {
        Ok(NoisyGraph::new(noisy, count))
    }

    /// The relevance of each job's pool, in order. `finished` is told a job's position and result as soon as it is
    /// done, from any thread, so that nothing finished is lost when the rest is not.
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

/// Jobs over one pool together where that saves work, the others by themselves. Jobs over small pools keep to one thread
/// each, so there are groups enough for all threads.
fn groups(method: &Method, jobs: &[Job]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut group_of: HashMap<*const NoisyPool, usize> = HashMap::new();
    let is_small = |job: &Job| job.problem.noisy.features().len() < LARGE;
    let n_small = jobs.iter().filter(|&job| is_small(job)).count();
    let most_small = n_small.div_ceil(2 * rayon::current_num_threads());
    for (i, job) in jobs.iter().enumerate() {
        let pool = std::ptr::from_ref(job.problem.noisy);
        let most = if is_small(job) { most_small } else { usize::MAX };
        let open = group_of.get(&pool).copied().filter(|&group| groups[group].len() < most);
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

/// What the parts of `auto` share, per job: centred features and the graph.
struct Ready {
    centred: Vec<Option<Centred>>,
    graphs: Vec<Option<(usize, Arc<Affinity>)>>,
}

impl Ready {
    fn new(engine: &dyn Engine, auto: &Auto, jobs: &[Job]) -> Result<Ready> {
        let centred =
            jobs.iter().map(|job| Centred::of(&job.problem)).collect::<Result<Vec<Option<Centred>>>>()?;
        let mut ready = Ready { centred, graphs: Vec::new() };
        let graph = |job: &Job| {
            let problem = &job.problem;
            let noisy = problem.noisy.features();
            if auto.parts(problem).len() < 2 || noisy.is_empty() {
                return Ok(None); // one part makes its own
            }
            problem.watch().check()?;
            let count = auto.neighbours(noisy.len());
            let neighbours = match problem.noisy.ready_graph(count) {
                Some(graph) => graph.insert(problem.clean, noisy),
                None => engine.noisy_graph(noisy, count)?.insert(problem.clean, noisy),
            };
            Ok(Some((count, Arc::new(Affinity::reciprocal(&neighbours)))))
        };
        ready.graphs = ready.jobs(jobs).iter().map(graph).collect::<Result<Vec<_>>>()?;
        Ok(ready)
    }

    fn jobs<'a>(&'a self, jobs: &[Job<'a>]) -> Vec<Job<'a>> {
        let of_job = |(i, job): (usize, &Job<'a>)| {
            let problem = match &self.centred[i] {
                Some(centred) => centred.problem(&job.problem),
                None => job.problem,
            };
            let problem = match self.graphs.get(i) {
                Some(Some((count, graph))) => problem.with_affinity(*count, graph),
                _ => problem,
            };
            Job { problem, ..*job }
        };
        jobs.iter().enumerate().map(of_job).collect()
    }
}

/// `auto` on an engine that scores one method at a time: every part of it for all jobs that have this part, and a job is put
/// together and reported as soon as its last part is there.
#[doc(hidden)] // for our own crates
pub fn relevance_in_parts(
    engine: &dyn Engine,
    auto: &Auto,
    jobs: &[Job],
    finished: &(dyn Fn(usize, &Relevance) + Sync),
) -> Result<Vec<Relevance>> {
    let ready = Ready::new(engine, auto, jobs)?;
    let jobs = &ready.jobs(jobs)[..];
    let parts: Vec<Vec<Method>> = jobs.iter().map(|job| auto.parts(&job.problem)).collect();
    let most = parts.iter().map(Vec::len).max().unwrap_or(0);
    let said: Vec<Mutex<Vec<Relevance>>> = jobs.iter().map(|_| Mutex::default()).collect();
    let results: Mutex<Vec<Option<Relevance>>> = Mutex::new(vec![None; jobs.len()]);
    let failure: Mutex<Option<Error>> = Mutex::default();
    let is_said = |job: usize, relevance: &Relevance| {
        let mut said = said[job].lock().unwrap_or_else(PoisonError::into_inner);
        said.push(relevance.clone());
        if said.len() < parts[job].len() {
            return;
        }
        match auto.combine(&jobs[job].problem, &std::mem::take(&mut *said)) {
            Ok(relevance) => {
                finished(job, &relevance);
                results.lock().unwrap_or_else(PoisonError::into_inner)[job] = Some(relevance);
            }
            Err(error) => {
                failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
        }
    };
    // Parts by how many are still to follow: a job's last part comes in the last of these rounds, and the work of all the
    // others is behind it.
    for left in (0..most).rev() {
        let part = |job: usize| parts[job].len().checked_sub(left + 1).map(|at| &parts[job][at]);
        let mut open: Vec<usize> = (0..jobs.len()).filter(|&job| part(job).is_some()).collect();
        while let Some(method) = open.first().and_then(|&job| part(job)) {
            let (alike, rest) = open.iter().partition(|&&job| part(job) == Some(method));
            let alike: Vec<usize> = alike;
            let of_part: Vec<Job> = alike.iter().map(|&job| jobs[job]).collect();
            engine.relevance(method, &of_part, &|i, relevance| is_said(alike[i], relevance))?;
            open = rest;
        }
    }
    if let Some(error) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(results.into_iter().map(|result| result.expect("every part was scored")).collect())
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
