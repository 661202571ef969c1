//! Relevance as plain closeness to the clean examples.

use serde::{Deserialize, Serialize};

use crate::decision::Decision;
use crate::error::Result;
use crate::features::Features;
use crate::kernels::dot;
use crate::model::{ClassProblem, Relevance, RelevanceModel};

/// `(1 + v·x) / 2`, where x is the unit-length mean of the clean and accepted examples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Similarity {}

impl RelevanceModel for Similarity {
    fn relevance(&self, problem: &ClassProblem, _seed: u64) -> Result<Relevance> {
        let mean = clean_direction(problem)?;
        let rows = problem.noisy.features().rows();
        let scaled = |v: &[f32]| (0.5 + 0.5 * dot(v, mean.row(0))).clamp(0.0, 1.0);
        Ok(problem.settle(Relevance::new(rows.map(scaled).collect())?))
    }
}

/// x: one row.
#[doc(hidden)] // for our own crates
pub fn clean_direction(problem: &ClassProblem) -> Result<Features> {
    let noisy = problem.noisy.features();
    let accepted = problem.decided(Decision::Accept);
    let mut mean = vec![0f32; noisy.dim()];
    for row in problem.clean.rows().chain(accepted.iter().map(|&i| noisy.row(i))) {
        mean.iter_mut().zip(row).for_each(|(m, v)| *m += v);
    }
    Features::new(mean, noisy.dim())
}
