//! The graph of a class problem, searched once however many models read it.

use std::sync::Arc;

use crate::error::Result;
use crate::graph::{Affinity, Neighbours, SharedAffinity};
use crate::model::ClassProblem;

impl<'a> ClassProblem<'a> {
    /// The `count` nearest neighbours of all examples, clean rows first; a graph made in advance saves the search.
    pub fn neighbours(&self, count: usize) -> Result<Neighbours> {
        self.noisy.neighbours_with(self.clean, count, self.watch())
    }

    /// The affinity of all examples to their `count` nearest neighbours, clean rows first.
    pub(crate) fn affinity(&self, count: usize) -> Result<Arc<Affinity>> {
        if let Some(shared) = self.shared_affinity.filter(|shared| shared.neighbours == count) {
            return Ok(Arc::clone(&shared.affinity));
        }
        Ok(Arc::new(Affinity::reciprocal_in(self.noisy.scratch(), &self.neighbours(count)?)?))
    }

    /// Uses `shared` instead of making the graph again.
    pub(crate) fn with_affinity(self, shared: &'a SharedAffinity) -> ClassProblem<'a> {
        ClassProblem { shared_affinity: Some(shared), ..self }
    }
}
