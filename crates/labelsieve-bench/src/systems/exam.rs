//! The test of a system that learns classes from clean examples.

use labelsieve::classifier::WeightedClass;
use labelsieve::evaluation::accuracy;
use labelsieve::{Classifier, Features};
use labelsieve_files::work::Result;

use crate::protocol::{CellResult, Task};

/// The test photos of a task: those of the novel classes and, where base classes compete too, those of all classes.
pub(super) struct Exam {
    dim: usize,
    novel: Features,
    novel_labels: Vec<usize>,
    all: Option<AllClasses>,
}

/// Base classes first, then the novel ones.
struct AllClasses {
    base: Vec<Features>,
    test: Features,
    labels: Vec<usize>,
}

impl Exam {
    /// Base classes are learned from at most `max_base_examples` each, evenly spread.
    pub(super) fn new(task: &dyn Task, max_base_examples: usize) -> Result<Exam> {
        let (novel, novel_labels) = task.novel_test()?;
        let all = match task.base_test()? {
            None => None,
            Some((test, labels)) => {
                let base: Vec<Features> =
                    task.base_sets()?.iter().map(|set| thinned(set, max_base_examples)).collect();
                let novel_labels = novel_labels.iter().map(|label| base.len() + label);
                let labels = labels.into_iter().chain(novel_labels).collect();
                Some(AllClasses { test: test.stack(&novel)?, labels, base })
            }
        };
        Ok(Exam { dim: task.dim(), novel, novel_labels, all })
    }

    /// The accuracy of the classifier that `learn` makes of these clean examples of the novel classes.
    pub(super) fn cell(
        &self,
        clean: &[Features],
        learn: impl Fn(&[WeightedClass]) -> labelsieve::Result<Box<dyn Classifier>>,
    ) -> Result<CellResult> {
        let none = Features::empty(self.dim);
        let learned = |sets: &mut dyn Iterator<Item = &Features>| {
            let classes = sets.map(|set| WeightedClass::new(set, &none, &[]));
            learn(&classes.collect::<labelsieve::Result<Vec<_>>>()?)
        };
        let novel = accuracy(learned(&mut clean.iter())?.as_ref(), &self.novel, &self.novel_labels)?;
        let of_all = |all: &AllClasses| {
            accuracy(learned(&mut all.base.iter().chain(clean))?.as_ref(), &all.test, &all.labels)
        };
        let all = self.all.as_ref().map(of_all).transpose()?;
        Ok(CellResult::from_accuracy(&novel, all.as_ref()))
    }
}

fn thinned(set: &Features, max_examples: usize) -> Features {
    let n = set.len().min(max_examples);
    set.select(&(0..n).map(|i| i * set.len() / n).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_of_many_are_evenly_spread() {
        let set = Features::new(vec![1.0, 0.0, 0.0, 1.0, -1.0, 0.0, 0.0, -1.0], 2).unwrap();
        assert_eq!(thinned(&set, 2), set.select(&[0, 2]));
        assert_eq!(thinned(&set, 9), set);
        assert!(thinned(&Features::empty(2), 3).is_empty());
    }
}
