//! The GCN with A = 0: every example is judged on its own.

use serde::{Deserialize, Serialize};

use super::check_lambda;
use super::gcn::train;
use super::network::Training;
use crate::error::Result;
use crate::graph::Propagation;
use crate::model::{ClassProblem, Relevance, RelevanceModel};

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
        train(problem, &Propagation::Identity(n), self.lambda, &self.training, seed)
    }
}
