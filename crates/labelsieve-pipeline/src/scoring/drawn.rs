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

#[cfg(test)]
mod tests {
    use labelsieve::relevance::Linear;
    use labelsieve::synthetic::Recipe;

    use super::*;

    #[test]
    fn only_methods_that_learn_from_other_classes_draw_examples_of_them() {
        let task = Recipe { n_classes: 3, n_clean: 2, ..Recipe::default() }.generate(0);
        let clean: Vec<Features> = task.classes.iter().map(|class| class.clean.clone()).collect();
        let pool = NoisyPool::new(task.classes[1].noisy.clone());
        let n_others = |method: &Method| {
            let drawn = Drawn::new(method, &clean, 1, Stream::new(5), 9);
            assert_eq!(drawn.job(&clean[1], &pool).unwrap().seed, 9);
            drawn.others.len()
        };
        assert_eq!(n_others(&Method::gcn()), 0);
        assert_eq!(n_others(&Method::Linear(Linear::default())), 2 * 2);
    }
}
