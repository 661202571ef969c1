//! The paper's model: a graph convolutional network that tells clean from noisy.

use serde::{Deserialize, Serialize};

use super::loss::loss_weights;
use super::network::{Network, Training, Weights, row_keys};
use super::{check_lambda, lambda_of};
use crate::error::{Result, check};
use crate::graph::{NEIGHBOURS, Propagation};
use crate::model::{ClassProblem, Relevance, RelevanceModel};
use crate::random::Stream;

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
}

impl RelevanceModel for Gcn {
    fn relevance(&self, problem: &ClassProblem, seed: u64) -> Result<Relevance> {
        if problem.noisy.features().is_empty() {
            return Relevance::new(Vec::new());
        }
        let affinity = problem.affinity(self.neighbours)?;
        let counts = affinity.n_neighbours(problem.clean.len()..affinity.len());
        let relevance = train(problem, &Propagation::new(affinity), self.lambda, &self.training, seed)?;
        Ok(relevance.with_reciprocal_neighbours(counts))
    }

    fn uses_graph(&self) -> bool {
        true
    }
}

/// Trains the network over a given Ã and reads off the noisy rows.
pub(super) fn train(
    problem: &ClassProblem,
    propagation: &Propagation,
    lambda: Option<f32>,
    training: &Training,
    seed: u64,
) -> Result<Relevance> {
    let k = problem.clean.len();
    let stream = Stream::new(seed);
    let x = propagation.propagate(problem.clean, problem.noisy.features());
    let weights = Weights::random(problem.clean.dim(), stream.branch(0));
    let keys = row_keys(problem.clean, problem.noisy.features());
    let loss_weights = loss_weights(problem, lambda_of(problem, lambda));
    let network = Network::new(&x, &keys, propagation, &loss_weights);
    let probabilities = network.train(weights, training, stream.branch(1), problem.watch());
    problem.watch().check()?;
    Ok(problem.settle(Relevance::new(probabilities[k..].to_vec())?))
}
