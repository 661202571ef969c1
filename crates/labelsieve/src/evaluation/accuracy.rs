//! Top-1 and top-5 accuracy.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::features::Features;
use crate::model::{Classifier, Scores};

/// Right answers among the test examples of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassCounts {
    /// Test examples.
    pub n: usize,
    /// Those whose class scored highest.
    pub top_1: usize,
    /// Those whose class was among the five highest.
    pub top_5: usize,
}

/// Accuracy over a test set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Accuracy {
    /// Share of examples whose class scored highest.
    pub top_1: f64,
    /// Share of examples whose class was among the five highest.
    pub top_5: f64,
    /// Top-1 accuracy of each class, averaged over the classes that have test examples.
    pub mean_class_top_1: f64,
    /// The counts behind it.
    pub classes: Vec<ClassCounts>,
}

/// Compares a classifier with the truth: `labels[i]` is the class of row i, a position among the classifier's classes.
/// Equal scores are ranked by lower class.
pub fn accuracy(classifier: &dyn Classifier, features: &Features, labels: &[usize]) -> Result<Accuracy> {
    let k = classifier.n_classes();
    check_labels(labels, features.len(), k)?;
    let mut classes = vec![ClassCounts::default(); k];
    const BLOCK: usize = 4096; // N×K scores of a large test set would not fit in memory
    for (block, labels) in labels.chunks(BLOCK).enumerate() {
        let rows: Vec<usize> = (block * BLOCK..block * BLOCK + labels.len()).collect();
        let scores = classifier.scores(&features.select(&rows));
        for (scores, &label) in scores.rows().zip(labels) {
            classes[label].add(scores, label);
        }
    }
    Ok(Accuracy::from_counts(classes))
}

/// As [`accuracy`], from scores that are known already.
pub fn accuracy_of(scores: &Scores, labels: &[usize]) -> Result<Accuracy> {
    check_labels(labels, scores.rows().len(), scores.n_classes)?;
    let mut classes = vec![ClassCounts::default(); scores.n_classes];
    scores.rows().zip(labels).for_each(|(scores, &label)| classes[label].add(scores, label));
    Ok(Accuracy::from_counts(classes))
}

fn check_labels(labels: &[usize], n: usize, k: usize) -> Result<()> {
    if labels.len() != n {
        return Err(Error::Length { what: "labels", expected: n, found: labels.len() });
    }
    match labels.iter().find(|&&label| label >= k) {
        None => Ok(()),
        Some(label) => Err(Error::Setting {
            name: "label",
            expected: "a class of the classifier",
            found: format!("class {label} of {k}"),
        }),
    }
}

impl ClassCounts {
    /// Counts an example of this class, `label`, by its scores for all classes. Equal scores are ranked by lower class.
    pub fn add(&mut self, scores: &[f32], label: usize) {
        let rank = rank_of(scores, label);
        self.n += 1;
        self.top_1 += usize::from(rank < 1);
        self.top_5 += usize::from(rank < 5);
    }
}

impl Accuracy {
    /// The shares behind counts per class.
    pub fn from_counts(classes: Vec<ClassCounts>) -> Accuracy {
        let n = classes.iter().map(|c| c.n).sum::<usize>().max(1) as f64;
        let share = |right: fn(&ClassCounts) -> usize| classes.iter().map(right).sum::<usize>() as f64 / n;
        let tested: Vec<&ClassCounts> = classes.iter().filter(|c| c.n > 0).collect();
        let mean_class_top_1 =
            tested.iter().map(|c| c.top_1 as f64 / c.n as f64).sum::<f64>() / tested.len().max(1) as f64;
        Accuracy { top_1: share(|c| c.top_1), top_5: share(|c| c.top_5), mean_class_top_1, classes }
    }
}

/// How many classes come before `label`.
fn rank_of(scores: &[f32], label: usize) -> usize {
    let own = scores[label];
    scores.iter().enumerate().filter(|&(c, &s)| s > own || (s == own && c < label)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::{numbers, read};
    use crate::model::Scores;

    /// Scores given in advance: row i of the features is the unit vector i.
    struct Fixed(Vec<Vec<f32>>);

    impl Classifier for Fixed {
        fn n_classes(&self) -> usize {
            self.0[0].len()
        }

        fn scores(&self, features: &Features) -> Scores {
            let row = |row: &[f32]| self.0[row.iter().position(|&v| v == 1.0).unwrap()].clone();
            Scores { values: features.rows().flat_map(row).collect(), n_classes: self.n_classes() }
        }
    }

    fn unit_vectors(n: usize) -> Features {
        Features::new((0..n * n).map(|i| f32::from(u8::from(i / n == i % n))).collect(), n).unwrap()
    }

    #[test]
    fn accuracy_agrees_with_scikit_learn() {
        let golden = read("metrics");
        let labels: Vec<usize> = numbers(&golden["label"]).iter().map(|&l| l as usize).collect();
        let scores = golden["scores"].as_array().unwrap().iter().map(numbers).collect();
        let found = accuracy(&Fixed(scores), &unit_vectors(labels.len()), &labels).unwrap();
        assert!((found.top_1 - golden["top_1"].as_f64().unwrap()).abs() < 1e-9);
        assert!((found.top_5 - golden["top_5"].as_f64().unwrap()).abs() < 1e-9);
    }

    #[test]
    fn ties_go_to_the_lower_class_and_classes_average_equally() {
        let fixed = Fixed(vec![vec![0.5, 0.5], vec![0.5, 0.5], vec![0.9, 0.1]]);
        let found = accuracy(&fixed, &unit_vectors(3), &[0, 1, 0]).unwrap();
        assert_eq!(found.classes[0], ClassCounts { n: 2, top_1: 2, top_5: 2 });
        assert_eq!(found.classes[1], ClassCounts { n: 1, top_1: 0, top_5: 1 });
        assert!((found.top_1 - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!((found.top_5, found.mean_class_top_1), (1.0, 0.5));
    }

    #[test]
    fn labels_that_do_not_fit_are_refused() {
        let fixed = Fixed(vec![vec![0.5, 0.5]]);
        let error = accuracy(&fixed, &unit_vectors(1), &[2]).unwrap_err();
        assert_eq!(error.to_string(), "label: expected a class of the classifier, found class 2 of 2");
        assert!(accuracy(&fixed, &unit_vectors(1), &[]).is_err());
    }
}
