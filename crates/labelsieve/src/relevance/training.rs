//! Training of the network: for one class, or for many choices of clean examples over one pool at once.

use labelsieve_numerics::random::Stream;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::lambda_of;
use super::loss::loss_weights;
use super::network::{Cell, Network, Weights};
use super::pool_rows::{CellRows, PoolRows};
use super::units::Dropout;
use crate::error::{Error, Result, check};
use crate::graph::Propagation;
use crate::model::{ClassProblem, Job, Relevance};
use crate::schedule::LARGE;

/// How the network is trained; the defaults are the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Training {
    /// Full-batch steps.
    pub iterations: usize,
    /// Adam's learning rate at the start.
    pub learning_rate: f32,
    /// The learning rate falls to a tenth each time this many iterations have passed.
    pub decay_every: usize,
    /// L2 penalty on all parameters, added to the gradient.
    pub weight_decay: f32,
    /// Probability that a hidden unit is dropped in a step.
    pub dropout: f32,
}

impl Default for Training {
    fn default() -> Training {
        Training { iterations: 100, learning_rate: 0.1, decay_every: 30, weight_decay: 5e-4, dropout: 0.5 }
    }
}

impl Training {
    pub(super) fn checked(self) -> Result<Training> {
        check(self.iterations >= 1, "iterations", "at least 1", self.iterations)?;
        check(self.decay_every >= 1, "decay_every", "at least 1", self.decay_every)?;
        let positive = self.learning_rate > 0.0 && self.learning_rate.is_finite();
        check(positive, "learning_rate", "a positive number", self.learning_rate)?;
        let sensible = self.weight_decay >= 0.0 && self.weight_decay.is_finite();
        check(sensible, "weight_decay", "a non-negative number", self.weight_decay)?;
        check((0.0..1.0).contains(&self.dropout), "dropout", "a number in [0, 1)", self.dropout)?;
        Ok(self)
    }
}

/// The settings of a training, and the memory limit for training several networks at once.
#[derive(Clone, Copy)]
pub(super) struct Trainer {
    pub lambda: Option<f32>,
    pub training: Training,
    /// Approximate bytes for networks that are trained at once, in addition to those of the pool.
    pub max_bytes: usize,
}

impl Trainer {
    pub fn new(lambda: Option<f32>, training: Training) -> Trainer {
        Trainer { lambda, training, max_bytes: 256 << 20 }
    }

    /// Trains a single network over a given Ã.
    pub fn one(&self, problem: &ClassProblem, propagation: Propagation, seed: u64) -> Result<Relevance> {
        let (shared, own) = PoolRows::of_one(problem.clean, problem.noisy, propagation)?;
        let mut relevance = self.together(&shared, &[Job { problem: *problem, seed }], vec![own]);
        problem.watch().check()?;
        relevance.pop().expect("one job")
    }

    /// Trains jobs that have the pool of `shared` in common, as many at once as memory allows. `own` makes the rows of a job
    /// that differ from the pool's, with a note that `finish` needs for its result.
    pub fn all<T>(
        &self,
        shared: &PoolRows,
        jobs: &[Job],
        own: impl Fn(&Job) -> Result<(CellRows, T)>,
        finish: impl Fn(usize, Relevance, T) -> Relevance,
    ) -> Vec<Result<Relevance>> {
        const MAX_CELLS: usize = 32; // more would evict each other from the cache
        // Small pools are trained side by side, one on each thread.
        let at_once = if shared.len() < LARGE { rayon::current_num_threads() } else { 1 };
        let max_bytes = self.max_bytes / at_once;
        let mut results: Vec<Result<Relevance>> = Vec::with_capacity(jobs.len());
        while results.len() < jobs.len() {
            let from = results.len();
            let mut cells = Vec::new();
            let mut notes = Vec::new();
            let mut bytes = 0;
            let mut failure = None;
            while from + cells.len() < jobs.len() && bytes < max_bytes.max(1) && cells.len() < MAX_CELLS {
                let job = &jobs[from + cells.len()];
                match job.problem.watch().check().map_err(Error::from).and_then(|()| own(job)) {
                    Ok((own, note)) => {
                        bytes += own.memory() + Network::memory_per_cell(shared);
                        cells.push(own);
                        notes.push(note);
                    }
                    Err(error) => {
                        failure = Some(error);
                        break;
                    }
                }
            }
            let batch = &jobs[from..from + cells.len()];
            let trained = self.together(shared, batch, cells).into_iter().zip(notes).enumerate();
            results.extend(trained.map(|(i, (relevance, note))| {
                batch[i].problem.watch().check()?;
                Ok(finish(from + i, relevance?, note))
            }));
            results.extend(failure.map(Err));
        }
        results
    }

    /// The relevance of some jobs; incomplete for those that were stopped.
    fn together(&self, shared: &PoolRows, jobs: &[Job], own: Vec<CellRows>) -> Vec<Result<Relevance>> {
        if jobs.is_empty() {
            return Vec::new();
        }
        let streams: Vec<Stream> = jobs.iter().map(|job| Stream::new(job.seed)).collect();
        let cell = |(own, stream): (CellRows, &Stream)| {
            Cell::new(own, Weights::random(shared.dim, stream.branch(0)))
        };
        let cells = own.into_iter().zip(&streams).map(cell).collect();
        let weights = |job: &Job| loss_weights(&job.problem, lambda_of(&job.problem, self.lambda));
        let mut network = Network::new(shared, cells, &jobs.iter().map(weights).collect::<Vec<_>>());
        let streams: Vec<Stream> = streams.iter().map(|stream| stream.branch(1)).collect();
        self.training.run(&mut network, &streams, jobs);
        let relevance = |(c, job): (usize, &Job)| {
            let noisy = network.probabilities(c).split_off(job.problem.clean.len());
            Ok(job.problem.settle(Relevance::new(noisy)?))
        };
        jobs.iter().enumerate().map(relevance).collect()
    }
}

impl Training {
    /// Trains until done, or until all jobs are stopped; ends with a forward pass without dropout. `streams`: the random numbers of
    /// each cell's dropout.
    pub(super) fn run(&self, network: &mut Network, streams: &[Stream], jobs: &[Job]) {
        for iteration in 0..self.iterations {
            if jobs.iter().all(|job| job.problem.watch().is_stopped()) {
                break;
            }
            let dropout = |stream: &Stream| Dropout::new(self.dropout, stream.branch(iteration as u64));
            let dropouts: Vec<Dropout> = streams.iter().map(dropout).collect();
            network.forward(&dropouts);
            network.backward(&dropouts);
            let rate = self.learning_rate * 0.1f32.powi((iteration / self.decay_every) as i32);
            network.cells.par_iter_mut().for_each(|cell| cell.step(rate, self.weight_decay));
            for job in jobs {
                let n = job.problem.clean.len() + job.problem.noisy.features().len();
                job.problem.watch().advance(iteration, self.iterations, n);
            }
        }
        network.forward(&vec![Dropout::none(); streams.len()]);
    }
}
