//! What a class needs besides its own examples before it is scored.

use labelsieve::engine::Job;
use labelsieve::relevance::{class_direction, others};
use labelsieve::{ClassProblem, Features, Method, NoisyPool, Result};
use labelsieve_numerics::random::{Stream, row_key};

/// The seed of a class's model and, for methods that learn from other classes, clean examples or the directions of those.
pub struct ClassContext {
    others: Features,
    /// Base classes last. What people decide changes nothing of it: a class in review need not know about the others.
    other_classes: Option<Features>,
    n_base: usize,
    seed: u64,
}

impl ClassContext {
    /// For one class; `clean` are the clean examples of all of them, `negatives` decides which of the others' are drawn.
    pub fn new(
        method: &Method,
        clean: &[Features],
        class: usize,
        negatives: Stream,
        seed: u64,
    ) -> ClassContext {
        ClassContext::among(&Directions::new(method, clean), method, clean, class, negatives, seed)
    }

    /// The same with the directions of all classes, which serve every one of them.
    pub fn among(
        directions: &Directions,
        method: &Method,
        clean: &[Features],
        class: usize,
        negatives: Stream,
        seed: u64,
    ) -> ClassContext {
        let others = match method {
            Method::Linear(_) => others(clean, class, negatives),
            _ => Features::empty(clean[class].dim()),
        };
        let other_classes = directions.but(class);
        ClassContext { others, other_classes, n_base: 0, seed }
    }

    /// With the directions of base classes, for methods that compare candidates with other classes.
    pub fn with_base(self, base: &Features) -> Result<ClassContext> {
        match self.other_classes {
            Some(classes) => {
                Ok(ClassContext { other_classes: Some(classes.stack(base)?), n_base: base.len(), ..self })
            }
            None => Ok(self),
        }
    }

    /// The class with its own clean examples and its candidates.
    pub fn job<'a>(&'a self, clean: &'a Features, pool: &'a NoisyPool) -> Result<Job<'a>> {
        let problem = ClassProblem::new(clean, pool)?.with_others(&self.others)?;
        let problem = match &self.other_classes {
            Some(rows) => problem.with_other_classes(rows)?.of_which_base(self.n_base),
            None => problem,
        };
        Ok(Job { problem, seed: self.seed })
    }
}

/// The directions of all classes, for methods that compare candidates with other classes.
pub struct Directions {
    /// In an order of their own, so that the order of classes decides nothing, not even how sums are rounded. None for other methods.
    rows: Option<Features>,
    /// The class of each row.
    classes: Vec<usize>,
}

impl Directions {
    /// Those of `clean`, the clean examples of each class.
    pub fn new(method: &Method, clean: &[Features]) -> Directions {
        let Some(dim) = clean.first().map(Features::dim).filter(|_| method.uses_other_classes()) else {
            return Directions { rows: None, classes: Vec::new() };
        };
        let rows: Vec<Features> = clean.iter().map(class_direction).collect();
        let mut classes: Vec<usize> = (0..clean.len()).collect();
        classes.sort_by_key(|&class| row_key(rows[class].row(0)));
        let data = classes.iter().flat_map(|&class| rows[class].row(0).to_vec()).collect();
        let rows = Features::new(data, dim).expect("finite rows of unit length");
        Directions { rows: Some(rows), classes }
    }

    fn but(&self, class: usize) -> Option<Features> {
        let others: Vec<usize> = (0..self.classes.len()).filter(|&row| self.classes[row] != class).collect();
        Some(self.rows.as_ref()?.select(&others))
    }
}

#[cfg(test)]
mod tests {
    use labelsieve::relevance::{Auto, Linear};
    use labelsieve::synthetic::Recipe;

    use super::*;

    #[test]
    fn only_methods_that_learn_from_other_classes_draw_examples_of_them() {
        let task = Recipe { n_classes: 3, n_clean: 2, ..Recipe::default() }.generate(0);
        let clean: Vec<Features> = task.classes.iter().map(|class| class.clean.clone()).collect();
        let pool = NoisyPool::new(task.classes[1].noisy.clone());
        let n_others = |method: &Method| {
            let drawn = ClassContext::new(method, &clean, 1, Stream::new(5), 9);
            assert_eq!(drawn.job(&clean[1], &pool).unwrap().seed, 9);
            drawn.others.len()
        };
        assert_eq!(n_others(&Method::gcn()), 0);
        assert_eq!(n_others(&Method::Linear(Linear::default())), 2 * 2);
    }

    #[test]
    fn a_class_is_compared_with_every_other_one_and_with_base_classes() {
        let task = Recipe { n_classes: 3, n_clean: 2, ..Recipe::default() }.generate(0);
        let clean: Vec<Features> = task.classes.iter().map(|class| class.clean.clone()).collect();
        let pool = NoisyPool::new(task.classes[1].noisy.clone());
        let base = task.test.select(&[0, 1, 2, 3]);
        let drawn = |method: &Method| {
            ClassContext::new(method, &clean, 1, Stream::new(5), 9).with_base(&base).unwrap()
        };
        let auto = drawn(&Method::Auto(Auto::default()));
        let problem = auto.job(&clean[1], &pool).unwrap().problem;
        let (others, n_base) = (problem.other_classes.unwrap(), problem.n_base());
        assert_eq!((others.len(), n_base), (6, 4));
        assert_eq!(others.select(&[2, 3, 4, 5]), base);
        for other in [0, 2] {
            let direction = class_direction(&clean[other]);
            assert!(others.rows().take(2).any(|row| row == direction.row(0)), "class {other}");
        }
        let turned: Vec<Features> = clean.iter().rev().cloned().collect();
        let again =
            ClassContext::new(&Method::Auto(Auto::default()), &turned, 1, Stream::new(5), 9).with_base(&base);
        assert_eq!(again.unwrap().other_classes.as_ref(), Some(others));
        let gcn = drawn(&Method::gcn());
        assert_eq!(gcn.job(&clean[1], &pool).unwrap().problem.other_classes, None);
    }
}
