//! Advice on a threshold for candidates, from their probabilities alone.

use serde::{Deserialize, Serialize};

/// The expected precision of the kept candidates that counts as good enough.
pub const ENOUGH_RIGHT: f64 = 0.9;

/// Thresholds that are considered, in twentieths: below the first, a candidate is more likely wrong than right.
const TWENTIETHS: std::ops::Range<u8> = 10..20;

/// Advice to keep the candidates with at least a probability, and the expected outcome.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// The lowest probability that is kept.
    pub threshold: f64,
    /// How many candidates reach it.
    pub n_kept: usize,
    /// The share of these expected to be right: their mean probability; none if none is kept.
    pub share_right: Option<f64>,
    /// The share of all right candidates expected to be kept; none if none is expected to be right.
    pub share_found: Option<f64>,
}

impl Advice {
    /// The lowest of 0.5, 0.55, … 0.95 from which at least 90 % are expected to be right; if there is none, 0.5, from which each
    /// candidate is more likely right than wrong. None for a class without candidates.
    pub fn new(probability: &[f32]) -> Option<Advice> {
        let at = |twentieths: u8| Advice::at(probability, f64::from(twentieths) / 20.0);
        let is_enough = |advice: &Advice| advice.share_right.is_some_and(|share| share >= ENOUGH_RIGHT);
        let found = TWENTIETHS.map(at).find(is_enough);
        (!probability.is_empty()).then(|| found.unwrap_or_else(|| at(TWENTIETHS.start)))
    }

    /// The expected outcome of keeping the candidates with at least this probability.
    pub fn at(probability: &[f32], threshold: f64) -> Advice {
        let threshold_f32 = threshold as f32; // files store `f32`, so compare with the same rounding
        let kept = || probability.iter().filter(|p| **p >= threshold_f32);
        let sum = |values: &mut dyn Iterator<Item = &f32>| values.map(|&p| f64::from(p)).sum::<f64>();
        let n_kept = kept().count();
        let right = sum(&mut kept());
        let all_right = sum(&mut probability.iter());
        Advice {
            threshold,
            n_kept,
            share_right: (n_kept > 0).then(|| right / n_kept as f64),
            share_found: (all_right > 0.0).then(|| right / all_right),
        }
    }

    /// The total of several classes, each with its own threshold: how many are kept, and the share expected to be right.
    pub fn sum<'a>(classes: impl Iterator<Item = &'a Advice>) -> (usize, Option<f64>) {
        let mut n_kept = 0;
        let mut right = 0.0;
        for advice in classes {
            n_kept += advice.n_kept;
            right += advice.n_kept as f64 * advice.share_right.unwrap_or(0.0);
        }
        (n_kept, (n_kept > 0).then(|| right / n_kept as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_threshold_that_is_right_often_enough_is_taken() {
        // From 0.5 on four with a mean of 0.85; from 0.75 on three with a mean of 11/12.
        let p = [0.0, 0.65, 0.75, 1.0, 1.0, 0.1];
        let advice = Advice::new(&p).unwrap();
        assert_eq!((advice.threshold, advice.n_kept), (0.7, 3));
        assert!((advice.share_right.unwrap() - 11.0 / 12.0).abs() < 1e-6);
        assert!((advice.share_found.unwrap() - 2.75 / 3.5).abs() < 1e-6);
    }

    #[test]
    fn where_nothing_is_right_often_enough_the_more_likely_right_ones_are_kept() {
        let advice = Advice::new(&[0.25, 0.5, 0.75, 0.75]).unwrap();
        assert_eq!((advice.threshold, advice.n_kept), (0.5, 3));
        assert!((advice.share_right.unwrap() - 2.0 / 3.0).abs() < 1e-9);
        let none = Advice::new(&[0.25, 0.0]).unwrap();
        assert_eq!((none.threshold, none.n_kept, none.share_right), (0.5, 0, None));
        assert_eq!(none.share_found, Some(0.0));
        assert_eq!(Advice::new(&[0.0]).unwrap().share_found, None);
        assert_eq!(Advice::new(&[]), None);
    }

    #[test]
    fn a_number_at_the_threshold_is_kept_whatever_its_rounding() {
        for twentieths in TWENTIETHS {
            let threshold = f64::from(twentieths) / 20.0;
            let written: f32 = format!("{threshold}").parse().unwrap(); // as a file has it
            assert_eq!(Advice::at(&[written], threshold).n_kept, 1, "{threshold}");
        }
    }

    #[test]
    fn classes_are_summed_with_their_own_thresholds() {
        let classes = [&[1.0, 1.0, 0.0][..], &[0.5, 0.5], &[0.25]].map(|p| Advice::new(p).unwrap());
        assert_eq!(Advice::sum(classes.iter()), (4, Some(0.75)));
        assert_eq!(Advice::sum(classes[2..].iter()), (0, None));
    }
}
