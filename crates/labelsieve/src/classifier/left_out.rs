//! Clean examples that are classified without themselves: the data that classifiers, and probabilities, are chosen by.

use labelsieve_numerics::kernels::dot;

use super::confidence::Confidence;
use super::discriminant::ClassSums;
use super::softmax;
use crate::error::Result;
use crate::features::Features;

/// Clean examples that are left out, at most, over all classes.
pub(super) const MAX_LEFT_OUT: usize = 4096;

/// A clean example to be left out.
pub(crate) struct KeptRow<'a> {
    /// Its features.
    pub row: &'a [f32],
    /// Its class among those that are learned.
    pub class: usize,
    /// Its class among all, base classes included.
    pub label: usize,
}

/// Left-out examples as a classifier that has never seen them scores them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LeftOut {
    /// Their true classes.
    pub labels: Vec<usize>,
    /// N×K.
    pub scores: Vec<f32>,
    /// How far each is from its best class, in the measure of the classifier.
    pub distances: Vec<f32>,
    /// K.
    pub n_classes: usize,
}

impl LeftOut {
    /// Examples.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// −ln of the probability of each example's class, the scores times `temperature` as logits.
    pub fn losses(&self, temperature: f64) -> Vec<f64> {
        let rows = self.scores.chunks_exact(self.n_classes.max(1)).zip(&self.labels);
        rows.map(|(scores, &label)| {
            let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let scaled = |score: f32| temperature * f64::from(score - largest);
            let total: f64 = scores.iter().map(|&score| scaled(score).exp()).sum();
            total.ln() - scaled(scores[label])
        })
        .collect()
    }

    /// The factor on scores that makes the softmax most likely, with ½ ln²(t/start) added to the loss of all examples, so that
    /// few of them, all right, do not make it infinite.
    pub fn temperature(&self, start: f64) -> f64 {
        let found = self.search(start, |logarithm| 0.5 * logarithm * logarithm);
        found.logarithm.exp() * start
    }

    /// The loss of all examples at the factor that suits them best: how well the scores rank, however they are scaled.
    pub fn least_loss(&self, start: f64) -> f64 {
        self.search(start, |_| 0.0).loss
    }

    /// The least of the losses and `penalty` over the logarithms of factors relative to `start`.
    fn search(&self, start: f64, penalty: impl Fn(f64) -> f64) -> Factor {
        const STEPS: i32 = 8; // to each power of e
        let mut best = Factor { logarithm: 0.0, loss: f64::INFINITY };
        for step in -8 * STEPS..=4 * STEPS {
            let logarithm = f64::from(step) / f64::from(STEPS);
            let loss = self.losses(start * logarithm.exp()).iter().sum::<f64>() + penalty(logarithm);
            if loss < best.loss {
                best = Factor { logarithm, loss };
            }
        }
        best
    }

    /// The share whose class scores highest.
    pub fn accuracy(&self) -> Option<f64> {
        let rows = self.scores.chunks_exact(self.n_classes.max(1)).zip(&self.labels);
        let is_right = |(scores, &label): (&[f32], &usize)| {
            scores.iter().enumerate().all(|(c, &score)| c == label || score < scores[label])
        };
        let n_right = rows.filter(|&row| is_right(row)).count();
        (!self.is_empty()).then(|| n_right as f64 / self.len() as f64)
    }

    /// Probabilities and typicality by these examples; `start`: the factor on scores where there are none.
    pub fn confidence(&self, start: f64) -> Confidence {
        Confidence::new(self.temperature(start) as f32, self.distances.clone())
    }

    /// As the prototypes of all classes, base classes first, would score them.
    pub fn of_prototypes(sums: &ClassSums, base: Option<&Features>) -> Result<LeftOut> {
        let dim = sums.dim();
        let n_base = base.map_or(0, Features::len);
        let direction = |sum: &[f64]| -> Result<Features> {
            Features::new(sum.iter().map(|&value| value as f32).collect(), dim)
        };
        let mut all: Vec<f32> = base.map_or(Vec::new(), |base| base.block(0..n_base).to_vec());
        for c in 0..sums.n_classes() {
            all.extend_from_slice(direction(sums.sum(c))?.row(0));
        }
        let n_classes = n_base + sums.n_classes();
        let mut found = LeftOut { n_classes, ..LeftOut::default() };
        for kept in sums.kept_rows(n_base) {
            let rest: Vec<f64> =
                sums.sum(kept.class).iter().zip(kept.row).map(|(sum, &x)| sum - f64::from(x)).collect();
            let own = direction(&rest)?;
            let start = found.scores.len();
            found.scores.extend(all.chunks_exact(dim).map(|prototype| dot(prototype, kept.row)));
            found.scores[start + kept.label] = dot(own.row(0), kept.row);
            found.push(kept.label, start);
        }
        Ok(found)
    }

    /// Adds an example whose cosines have been added to the scores at `start`.
    pub(super) fn push(&mut self, label: usize, start: usize) {
        let best = self.scores[start..].iter().copied().fold(f32::NEG_INFINITY, f32::max);
        self.distances.push(1.0 - best);
        self.labels.push(label);
    }
}

/// A factor on scores, and the loss there.
struct Factor {
    logarithm: f64,
    loss: f64,
}

/// The probabilities that scores stand for.
pub(super) fn probabilities(scores: &[f32], temperature: f32) -> Vec<f32> {
    let mut logits: Vec<f32> = scores.iter().map(|score| score * temperature).collect();
    softmax(&mut logits);
    logits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classifier::WeightedClass;

    #[test]
    fn losses_and_temperatures_that_fit_in_a_head() {
        // Scores 0 and ln 3: probabilities ¼ and ¾ at factor 1.
        let found = LeftOut {
            labels: vec![1, 0],
            scores: vec![0.0, 3f32.ln(), 0.0, 3f32.ln()],
            distances: vec![1.0, 2.0],
            n_classes: 2,
        };
        let losses = found.losses(1.0);
        assert!((losses[0] - (4f64 / 3.0).ln()).abs() < 1e-6 && (losses[1] - 4f64.ln()).abs() < 1e-6);
        assert_eq!(found.accuracy(), Some(0.5));
        let temperature = found.temperature(1.0);
        assert!(temperature < 0.9, "{temperature}"); // half right: no confidence
        assert!((found.least_loss(1.0) - 2.0 * 2f64.ln()).abs() < 1e-3); // both classes alike
    }

    #[test]
    fn right_answers_raise_the_factor_only_as_far_as_their_number_allows() {
        let right = |n: usize| LeftOut {
            labels: vec![0; n],
            scores: [1.0, 0.0].repeat(n),
            distances: vec![0.0; n],
            n_classes: 2,
        };
        let few = right(2).temperature(1.0);
        let many = right(200).temperature(1.0);
        assert!(1.0 < few && few < many && many < 20.0, "{few} {many}");
        assert_eq!(LeftOut::default().temperature(10.0), 10.0);
    }

    #[test]
    fn prototypes_leave_out_what_a_sum_without_the_example_gives() {
        let row = |x: f32, y: f32| Features::new(vec![x, y], 2).unwrap();
        let east = row(1.0, 0.0).stack(&row(0.8, 0.6)).unwrap();
        let north = row(0.0, 1.0);
        let none = Features::empty(2);
        let classes =
            [WeightedClass::new(&east, &none, &[]).unwrap(), WeightedClass::new(&north, &none, &[]).unwrap()];
        let sums = ClassSums::of(&classes, 2).unwrap();
        let found = LeftOut::of_prototypes(&sums, None).unwrap();
        // North has nothing left; of east, each example is compared with the other one and with north.
        assert_eq!(found.labels, [0, 0]);
        let expected = [0.8, 0.0, 0.8, 0.6];
        assert!(found.scores.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?}");
        let with_base = LeftOut::of_prototypes(&sums, Some(&north)).unwrap();
        assert_eq!((with_base.labels, with_base.n_classes), (vec![1, 1], 3));
    }
}
