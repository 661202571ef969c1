//! What does the work: an engine scores the pools of many classes and learns from them, in whatever order and on whatever
//! device suits it.

use crate::classifier::{Cosine, WeightMatrix, WeightedClass, prototypes};
use crate::error::Result;
use crate::features::Features;
use crate::graph::NoisyGraph;
use crate::model::{ClassProblem, NoisyPool, Relevance};
use crate::relevance::Method;
use crate::schedule::map_classes;

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
        match method.neighbours() {
            Some(count) => {
                let graph = self.noisy_graph(&features, count)?;
                NoisyPool::from_parts(features, graph)
            }
            None => Ok(NoisyPool::new(features)),
        }
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
        let sizes: Vec<usize> = jobs.iter().map(|job| job.problem.noisy.features().len()).collect();
        let score = |i: usize| {
            jobs[i].problem.watch().check()?; // after a stop, no further class is begun
            let relevance = model.relevance(&jobs[i].problem, jobs[i].seed)?;
            finished(i, &relevance);
            Ok(relevance)
        };
        map_classes(&sizes, score).into_iter().collect()
    }
}
