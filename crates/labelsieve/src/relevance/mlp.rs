//! The GCN with A = 0: every example is scored on its own.

use serde::{Deserialize, Serialize};

use super::check_lambda;
use super::pool_rows::PoolRows;
use super::training::{Trainer, Training};
use crate::error::Result;
use crate::graph::Propagation;
use crate::model::{ClassProblem, Job, Relevance, RelevanceModel, one_by_one};

/// The network of **eq. (2)** with Ã = I, trained with **eq. (3)**.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mlp {
    /// Weight λ of the noisy examples in the loss; none: the paper's choice for the number of clean examples.
    pub lambda: Option<f32>,
    /// How the network is trained.
    pub training: Training,
}

impl Mlp {
    pub(super) fn checked(self) -> Result<Mlp> {
        check_lambda(self.lambda)?;
        self.training.checked()?;
        Ok(self)
    }
}

impl RelevanceModel for Mlp {
    fn relevance(&self, problem: &ClassProblem, seed: u64) -> Result<Relevance> {
        let n = problem.clean.len() + problem.noisy.features().len();
        if n == problem.clean.len() {
            return Relevance::new(Vec::new());
        }
        Trainer::new(self.lambda, self.training).one(problem, Propagation::Identity(n), seed)
    }

    fn relevance_of_all(
        &self,
        jobs: &[Job],
        finished: &(dyn Fn(usize, &Relevance) + Sync),
    ) -> Vec<Result<Relevance>> {
        let pool = jobs.first().map(|job| job.problem.noisy.features()).filter(|pool| !pool.is_empty());
        let Some(noisy) = pool.filter(|_| jobs.len() > 1) else { return one_by_one(self, jobs, finished) };
        let shared = PoolRows::of_pool(noisy, Propagation::Identity(noisy.len()));
        let own = |job: &Job| {
            let clean = job.problem.clean;
            let alone = Propagation::Identity(clean.len() + noisy.len());
            Ok((shared.choice(clean, noisy, &alone), ()))
        };
        let finish = |i: usize, relevance: Relevance, ()| {
            finished(i, &relevance);
            relevance
        };
        Trainer::new(self.lambda, self.training).all(&shared, jobs, own, finish)
    }
}
