//! The inputs that the parts of `auto` share: centred features and one graph.

use std::sync::Arc;

use super::Auto;
use super::centre::CentredClass;
use crate::error::Result;
use crate::graph::{Affinity, SharedAffinity};
use crate::model::ClassProblem;

/// Made once per class, whichever engine scores the parts.
pub(crate) struct SharedInputs {
    centred: Option<CentredClass>,
    affinity: Option<SharedAffinity>,
}

impl SharedInputs {
    /// `affinity` makes the graph with so many neighbours. It is left out where a single part would read it, since that part
    /// makes its own, and where there are no candidates.
    pub fn new(
        auto: &Auto,
        problem: &ClassProblem,
        affinity: impl Fn(&ClassProblem, usize) -> Result<Arc<Affinity>>,
    ) -> Result<SharedInputs> {
        let centred = CentredClass::of(problem)?;
        let mut inputs = SharedInputs { centred, affinity: None };
        let problem = inputs.problem(problem);
        let n_noisy = problem.noisy.features().len();
        if auto.parts(&problem).len() >= 2 && n_noisy > 0 {
            problem.watch().check()?;
            let neighbours = auto.neighbours(n_noisy);
            let affinity = affinity(&problem, neighbours)?;
            inputs.affinity = Some(SharedAffinity { neighbours, affinity });
        }
        Ok(inputs)
    }

    /// The problem with these inputs.
    pub fn problem<'a>(&'a self, problem: &ClassProblem<'a>) -> ClassProblem<'a> {
        let problem = match &self.centred {
            Some(centred) => centred.problem(problem),
            None => *problem,
        };
        match &self.affinity {
            Some(affinity) => problem.with_affinity(affinity),
            None => problem,
        }
    }
}
