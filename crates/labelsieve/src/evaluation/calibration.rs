//! Probabilities against the truth: of the candidates that are given 0.8, do about 80 % belong?

use serde::{Deserialize, Serialize};

/// Predicted probabilities against observed shares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reliability {
    /// The bins that have examples, by probability.
    pub bins: Vec<Bin>,
    /// The expected calibration error: the mean of |mean − share| over examples.
    pub expected_error: f64,
}

/// The examples whose probability lies in one interval of [0, 1].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    /// Lower bound, inclusive.
    pub from: f64,
    /// Upper bound, exclusive except in the last bin.
    pub to: f64,
    /// Their mean probability: the share that should be relevant.
    pub mean: f64,
    /// The share that is relevant.
    pub share: f64,
    /// Number of examples.
    pub n: usize,
}

/// Candidates counted by their probability, in bins of equal width; counts of several sets add up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration(Vec<Count>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Count {
    /// Sum of the probabilities.
    probability: f64,
    n_relevant: usize,
    n: usize,
}

/// The number of bins in tables and figures.
const BINS: usize = 10;

impl Default for Calibration {
    fn default() -> Calibration {
        Calibration::with_bins(BINS)
    }
}

impl Calibration {
    fn with_bins(bins: usize) -> Calibration {
        Calibration(vec![Count::default(); bins.max(1)])
    }

    /// Adds candidates. `probability`: numbers in [0, 1]; `relevant`: one flag each.
    pub fn add(&mut self, probability: &[f32], relevant: &[bool]) {
        let bins = self.0.len();
        for (&p, &is_relevant) in probability.iter().zip(relevant) {
            let count = &mut self.0[((f64::from(p) * bins as f64) as usize).min(bins - 1)];
            count.probability += f64::from(p);
            count.n_relevant += usize::from(is_relevant);
            count.n += 1;
        }
    }

    /// Adds the counts of another set.
    pub fn merge(&mut self, other: &Calibration) {
        for (count, other) in self.0.iter_mut().zip(&other.0) {
            count.probability += other.probability;
            count.n_relevant += other.n_relevant;
            count.n += other.n;
        }
    }

    /// Probabilities against the truth; none without candidates.
    ///
    /// ```text
    /// expected error = Σ_b n_b/n · |mean_b − share_b|
    /// ```
    pub fn reliability(&self) -> Option<Reliability> {
        let edge = |b: usize| b as f64 / self.0.len() as f64;
        let bin = |(b, count): (usize, &Count)| Bin {
            from: edge(b),
            to: edge(b + 1),
            mean: count.probability / count.n as f64,
            share: count.n_relevant as f64 / count.n as f64,
            n: count.n,
        };
        let filled = self.0.iter().enumerate().filter(|(_, count)| count.n > 0);
        let bins: Vec<Bin> = filled.map(bin).collect();
        let n: usize = bins.iter().map(|bin| bin.n).sum();
        let error: f64 = bins.iter().map(|bin| bin.n as f64 * (bin.mean - bin.share).abs()).sum();
        (n > 0).then(|| Reliability { bins, expected_error: error / n as f64 })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reliability(probability: &[f32], relevant: &[bool], bins: usize) -> Reliability {
        let mut calibration = Calibration::with_bins(bins);
        calibration.add(probability, relevant);
        calibration.reliability().unwrap()
    }

    #[test]
    fn the_error_is_the_mean_distance_of_said_from_true_shares() {
        // By hand: four at 0.875 of which two are relevant (off by 0.375), one at 0.25 which is not (off by 0.25),
        // one at 1 which is (in the last bin with the four: five, mean 0.9, share 0.6).
        let p = [0.875, 0.875, 0.25, 0.875, 0.875, 1.0];
        let found = reliability(&p, &[true, false, false, true, false, true], 4);
        let bin = |from, to, mean, share, n| Bin { from, to, mean, share, n };
        assert_eq!(found.bins, [bin(0.25, 0.5, 0.25, 0.0, 1), bin(0.75, 1.0, 0.9, 0.6, 5)]);
        assert!((found.expected_error - (0.25 + 5.0 * 0.3) / 6.0).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn probabilities_that_keep_their_word_have_no_error() {
        let mut p = Vec::new();
        let mut relevant = Vec::new();
        for quarters in 0..=4 {
            for i in 0..4 {
                p.push(quarters as f32 / 4.0);
                relevant.push(i < quarters);
            }
        }
        assert_eq!(reliability(&p, &relevant, 10).expected_error, 0.0);
        assert_eq!(reliability(&p, &relevant, 10).bins.len(), 5);
    }

    #[test]
    fn gaps_of_one_bin_cancel_and_those_of_two_do_not() {
        let error = |probability: &[f32]| reliability(probability, &[true, false], BINS).expected_error;
        assert_eq!(error(&[0.5, 0.5]), 0.0);
        assert_eq!(error(&[0.75, 0.25]), 0.25);
        assert_eq!(error(&[1.0, 0.0]), 0.0);
    }

    #[test]
    fn counts_add_up_and_nothing_has_no_error() {
        let mut all = Calibration::default();
        assert_eq!(all.reliability(), None);
        let mut one = Calibration::default();
        // Bin 2: 0.25, one of four is right: no gap. Last bin: 1 and 1, one of two is right: a gap of a half.
        one.add(&[0.25, 0.25, 0.25, 0.25], &[true, false, false, false]);
        one.add(&[1.0, 1.0], &[true, false]);
        all.merge(&one);
        all.merge(&one);
        let found = all.reliability().unwrap();
        assert_eq!(
            found.bins.iter().map(|bin| (bin.mean, bin.share, bin.n)).collect::<Vec<_>>(),
            [(0.25, 0.25, 8), (1.0, 0.5, 4)]
        );
        assert_eq!(found.expected_error, (4.0 * 0.0 + 2.0 * 0.5) / 6.0);
    }

    proptest! {
        #[test]
        fn every_example_is_in_one_bin_and_in_its_own(
            examples in prop::collection::vec((0f32..=1.0, any::<bool>()), 1..60),
            n_bins in 1usize..13,
        ) {
            let (p, relevant): (Vec<f32>, Vec<bool>) = examples.into_iter().unzip();
            let found = reliability(&p, &relevant, n_bins);
            prop_assert_eq!(found.bins.iter().map(|bin| bin.n).sum::<usize>(), p.len());
            for bin in &found.bins {
                prop_assert!(bin.from - 1e-9 <= bin.mean && bin.mean <= bin.to + 1e-9);
            }
            prop_assert!((0.0..=1.0).contains(&found.expected_error));
        }
    }
}
