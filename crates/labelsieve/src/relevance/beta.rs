//! β-weighting, a baseline: every noisy example has the same relevance.

use serde::{Deserialize, Serialize};

use crate::error::{Result, check};
use crate::model::{ClassProblem, Relevance, RelevanceModel};

/// β-weighting: relevance β for every undecided noisy example.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Beta {
    /// The relevance of all.
    pub beta: f32,
}

impl Default for Beta {
    fn default() -> Beta {
        Beta { beta: 1.0 }
    }
}

impl Beta {
    pub(super) fn checked(self) -> Result<Beta> {
        check((0.0..=1.0).contains(&self.beta), "beta", "a number in [0, 1]", self.beta)?;
        Ok(self)
    }
}

impl RelevanceModel for Beta {
    fn relevance(&self, problem: &ClassProblem, _seed: u64) -> Result<Relevance> {
        Ok(problem.settle(Relevance::new(vec![self.beta; problem.noisy.features().len()])?))
    }
}
