//! What a class draws at random before it is scored.

use labelsieve::engine::Job;
use labelsieve::random::Stream;
use labelsieve::relevance::others;
use labelsieve::{ClassProblem, Features, Method, NoisyPool, Result};

/// The seed of a class's model and, for methods that learn from other classes, clean examples of those.
pub struct Drawn {
    others: Features,
    seed: u64,
}

impl Drawn {
    /// For one class; `clean` are the clean examples of all of them, `negatives` decides which of the others' are drawn.
    pub fn new(method: &Method, clean: &[Features], class: usize, negatives: Stream, seed: u64) -> Drawn {
        let others = match method {
            Method::Linear(_) => others(clean, class, negatives),
            _ => Features::empty(clean[class].dim()),
        };
        Drawn { others, seed }
    }

    /// The class with its own clean examples and its candidates.
    pub fn job<'a>(&'a self, clean: &'a Features, pool: &'a NoisyPool) -> Result<Job<'a>> {
        let problem = ClassProblem::new(clean, pool)?.with_others(&self.others)?;
        Ok(Job { problem, seed: self.seed })
    }
}
