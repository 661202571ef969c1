//! Scores as probabilities, and whether an example belongs to any class at all.

use super::left_out::probabilities;

/// How sure a classifier may be, from clean examples that it was learned without.
#[derive(Clone, Debug, PartialEq)]
pub struct Confidence {
    /// The factor on scores before the softmax.
    temperature: f32,
    /// How far the left-out examples were from their best class, in ascending order.
    distances: Vec<f32>,
}

impl Confidence {
    /// From the factor on scores and the distances of left-out examples, in any order.
    pub fn new(temperature: f32, mut distances: Vec<f32>) -> Confidence {
        distances.sort_by(f32::total_cmp);
        Confidence { temperature, distances }
    }

    /// The factor on scores before the softmax.
    pub fn temperature(&self) -> f32 {
        self.temperature
    }

    /// The distances of left-out examples, in ascending order.
    pub fn distances(&self) -> &[f32] {
        &self.distances
    }

    /// The probability of each class, given that the example belongs to one of them.
    pub fn probabilities(&self, scores: &[f32]) -> Vec<f32> {
        probabilities(scores, self.temperature)
    }

    /// The share of examples of the classes that are as far from their best class as this one, or farther: of n left-out examples
    /// those that are, and the example itself, among n + 1. Of examples like the left-out ones, at most a share α is at most α (a
    /// conformal p-value).
    pub fn typicality(&self, distance: f32) -> f32 {
        let nearer = self.distances.partition_point(|&found| found < distance);
        let n = self.distances.len();
        (1 + n - nearer) as f32 / (n + 1) as f32
    }

    /// The left-out examples that it takes to reject this share.
    pub fn needed_to_reject(share: f64) -> usize {
        (1.0 / share - 1.0 - 1e-9).ceil().max(1.0) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typicality_counts_the_left_out_examples_at_least_as_far() {
        let confidence = Confidence::new(1.0, vec![3.0, 1.0, 2.0]);
        let found = [0.5, 1.0, 2.5, 9.0].map(|distance| confidence.typicality(distance));
        assert_eq!(found, [1.0, 1.0, 0.5, 0.25]);
        assert_eq!(Confidence::new(1.0, Vec::new()).typicality(1e9), 1.0); // nothing is known
    }

    #[test]
    fn five_percent_take_nineteen_examples() {
        assert_eq!([0.05, 0.5, 0.01].map(Confidence::needed_to_reject), [19, 1, 99]);
    }

    #[test]
    fn scores_times_the_factor_are_logits() {
        let found = Confidence::new(2.0, Vec::new()).probabilities(&[0.0, 3f32.ln() / 2.0]);
        assert!((found[0] - 0.25).abs() < 1e-6 && (found[1] - 0.75).abs() < 1e-6);
    }
}
