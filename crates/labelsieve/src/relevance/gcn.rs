//! The paper's model: a graph convolutional network that separates clean from noisy examples.

use serde::{Deserialize, Serialize};

use super::check_lambda;
use super::pool_rows::PoolRows;
use super::training::{Trainer, Training};
use crate::error::{Result, check};
use crate::graph::{Affinity, NEIGHBOURS, Propagation};
use crate::model::{ClassProblem, Job, Relevance, RelevanceModel, one_by_one};

/// A two-layer GCN (**eq. 2**) trained with **eq. (3)**; its probability of "clean" is the relevance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Gcn {
    /// Weight λ of the noisy examples in the loss; none: the paper's choice for the number of clean examples.
    pub lambda: Option<f32>,
    /// Neighbours per example.
    pub neighbours: usize,
    /// How the network is trained.
    pub training: Training,
}

impl Default for Gcn {
    fn default() -> Gcn {
        Gcn { lambda: None, neighbours: NEIGHBOURS, training: Training::default() }
    }
}

impl Gcn {
    pub(super) fn checked(self) -> Result<Gcn> {
        check_lambda(self.lambda)?;
        check(self.neighbours >= 1, "neighbours", "at least 1", self.neighbours)?;
        self.training.checked()?;
        Ok(self)
    }

    /// Trains jobs that share a pool with a ready graph at once, others one after the other.
    pub(super) fn together(
        &self,
        jobs: &[Job],
        trainer: Trainer,
        finished: &(dyn Fn(usize, &Relevance) + Sync),
    ) -> Vec<Result<Relevance>> {
        let pool = jobs.first().map(|job| job.problem.noisy).filter(|pool| !pool.features().is_empty());
        let graph = pool.filter(|_| jobs.len() > 1).and_then(|pool| pool.ready_graph(self.neighbours));
        let (Some(pool), Some(graph)) = (pool, graph) else { return one_by_one(self, jobs, finished) };
        let noisy = pool.features();
        let alone = Propagation::new(Affinity::reciprocal(graph.neighbours()));
        let shared = PoolRows::of_pool(noisy, alone);
        let own = |job: &Job| {
            let clean = job.problem.clean;
            let affinity = job.problem.affinity(self.neighbours)?;
            let counts = affinity.n_neighbours(clean.len()..affinity.len());
            Ok((shared.choice(clean, noisy, &Propagation::new(affinity)), counts))
        };
        let finish = |i: usize, relevance: Relevance, counts: Vec<u32>| {
            let relevance = relevance.with_reciprocal_neighbours(counts);
            finished(i, &relevance);
            relevance
        };
        trainer.all(&shared, jobs, own, finish)
    }
}

impl RelevanceModel for Gcn {
    fn relevance(&self, problem: &ClassProblem, seed: u64) -> Result<Relevance> {
        if problem.noisy.features().is_empty() {
            return Relevance::new(Vec::new());
        }
        let affinity = problem.affinity(self.neighbours)?;
        let counts = affinity.n_neighbours(problem.clean.len()..affinity.len());
        let trainer = Trainer::new(self.lambda, self.training);
        let relevance = trainer.one(problem, Propagation::new(affinity), seed)?;
        Ok(relevance.with_reciprocal_neighbours(counts))
    }

    fn relevance_of_all(
        &self,
        jobs: &[Job],
        finished: &(dyn Fn(usize, &Relevance) + Sync),
    ) -> Vec<Result<Relevance>> {
        self.together(jobs, Trainer::new(self.lambda, self.training), finished)
    }

    fn uses_graph(&self) -> bool {
        true
    }
}
