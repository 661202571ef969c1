//! Relevance as plain closeness to the clean examples.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::features::Features;
use crate::kernels::dot;
use crate::model::{ClassProblem, Relevance, RelevanceModel};

/// `(1 + v·x) / 2`, where x is the unit-length mean of the clean examples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Similarity {}

impl RelevanceModel for Similarity {
    fn relevance(&self, problem: &ClassProblem, _seed: u64) -> Result<Relevance> {
        let dim = problem.clean.dim();
        let mut mean = vec![0f32; dim];
        for row in problem.clean.rows() {
            mean.iter_mut().zip(row).for_each(|(m, v)| *m += v);
        }
        let mean = Features::new(mean, dim)?;
        let rows = problem.noisy.features().rows();
        let scaled = |v: &[f32]| (0.5 + 0.5 * dot(v, mean.row(0))).clamp(0.0, 1.0);
        Relevance::new(rows.map(scaled).collect())
    }
}
