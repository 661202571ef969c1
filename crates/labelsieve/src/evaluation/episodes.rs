//! Sampling of episodes: clean examples, classes for tuning and for reporting, few-way trials.

use labelsieve_numerics::random::Stream;

use crate::error::{Result, check};

/// The classes to choose settings on and the classes to report, out of `n` in alphabetical order: even positions tune,
/// odd positions report.
pub fn alternate_halves(n: usize) -> (Vec<usize>, Vec<usize>) {
    (0..n).partition(|position| position % 2 == 0)
}

/// Draws up to `max_clean` clean examples of each class as distinct positions below `sizes[class]`. The first k of a class
/// are its clean examples at k shots, so that more shots extend fewer ones.
pub fn draw_clean(sizes: &[usize], max_clean: usize, stream: Stream) -> Vec<Vec<usize>> {
    let of_class = |(class, &size): (usize, &usize)| stream.branch(class as u64).choose(size, max_clean);
    sizes.iter().enumerate().map(of_class).collect()
}

/// A few-way trial: some classes, clean examples of each, and test examples to classify. Examples are positions within their
/// class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FewWayTrial {
    /// The classes.
    pub classes: Vec<usize>,
    /// Clean examples of each of them.
    pub clean: Vec<Vec<usize>>,
    /// Test examples of each of them.
    pub queries: Vec<Vec<usize>>,
}

/// How few-way trials are drawn: the mini-ImageNet protocol is 5-way with 15 queries of each class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FewWay {
    /// Classes in a trial.
    pub ways: usize,
    /// Clean examples of each.
    pub shots: usize,
    /// Test examples of each, at most.
    pub queries: usize,
}

impl FewWay {
    /// Draws a trial from classes with these numbers of labelled and of test examples.
    pub fn draw(&self, labelled: &[usize], tests: &[usize], stream: Stream) -> Result<FewWayTrial> {
        check(labelled.len() >= self.ways, "classes", "as many as a trial has ways", labelled.len())?;
        let classes = stream.branch(0).choose(labelled.len(), self.ways);
        let mut clean = Vec::new();
        let mut queries = Vec::new();
        for (way, &class) in classes.iter().enumerate() {
            check(labelled[class] >= self.shots, "labelled examples", "one per shot", labelled[class])?;
            clean.push(stream.branch(1).branch(way as u64).choose(labelled[class], self.shots));
            queries.push(stream.branch(2).branch(way as u64).choose(tests[class], self.queries));
        }
        Ok(FewWayTrial { classes, clean, queries })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_positions_tune_and_odd_ones_report() {
        assert_eq!(alternate_halves(5), (vec![0, 2, 4], vec![1, 3]));
    }

    #[test]
    fn clean_examples_are_different_ones_and_a_small_class_gives_all() {
        let drawn = draw_clean(&[50, 3], 20, Stream::new(1));
        let mut first = drawn[0].clone();
        first.sort_unstable();
        first.dedup();
        assert_eq!((first.len(), drawn[1].len()), (20, 3));
        assert_ne!(drawn, draw_clean(&[50, 3], 20, Stream::new(2)));
    }

    #[test]
    fn a_trial_has_different_classes_and_every_class_comes_up() {
        let rule = FewWay { ways: 3, shots: 2, queries: 4 };
        let mut seen = [0; 6];
        for seed in 0..200 {
            let trial = rule.draw(&[5; 6], &[9; 6], Stream::new(seed)).unwrap();
            assert!(trial.classes[0] != trial.classes[1] && trial.classes[1] != trial.classes[2]);
            assert!(trial.clean.iter().all(|clean| clean.len() == 2 && clean[0] != clean[1]));
            assert!(trial.queries.iter().all(|queries| queries.len() == 4));
            trial.classes.iter().for_each(|&class| seen[class] += 1);
        }
        assert!(seen.iter().all(|&n| n > 60), "{seen:?}");
    }

    #[test]
    fn too_few_classes_or_examples_are_refused() {
        let rule = FewWay { ways: 5, shots: 2, queries: 4 };
        let message = |labelled: &[usize]| {
            rule.draw(labelled, &vec![9; labelled.len()], Stream::new(0)).unwrap_err().to_string()
        };
        assert_eq!(message(&[9; 4]), "classes: expected as many as a trial has ways, found 4");
        assert_eq!(message(&[1; 5]), "labelled examples: expected one per shot, found 1");
    }
}
