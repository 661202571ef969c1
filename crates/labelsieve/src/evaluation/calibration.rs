//! Probabilities against the truth: of the candidates that are given 0.8, do about 80 % belong?

use serde::{Deserialize, Serialize};

/// How far probabilities can be taken at their word.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reliability {
    /// The bins that have examples, by probability.
    pub bins: Vec<Bin>,
    /// The expected calibration error: the mean of |mean − share| over examples.
    pub expected_error: f64,
}

/// The examples whose probability lies in one stretch of [0, 1].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    /// Where it begins; probabilities are at least this.
    pub from: f64,
    /// Where it ends; probabilities are below this, in the last bin at most this.
    pub to: f64,
    /// Their mean probability: the share that should be relevant.
    pub mean: f64,
    /// The share that is.
    pub share: f64,
    /// How many there are.
    pub n: usize,
}

/// Compares probabilities with the truth in `bins` bins of equal width.
///
/// ```text
/// expected error = Σ_b n_b/n · |mean_b − share_b|
/// ```
///
/// `probability`: numbers in [0, 1]; `relevant`: one flag each. Without examples there are no bins, and the error is 0.
pub fn reliability(probability: &[f32], relevant: &[bool], bins: usize) -> Reliability {
    let bins = bins.max(1);
    let mut sums = vec![(0f64, 0usize, 0usize); bins]; // of probabilities, of relevant ones, of all
    for (&p, &is_relevant) in probability.iter().zip(relevant) {
        let (sum, n_relevant, n) = &mut sums[((f64::from(p) * bins as f64) as usize).min(bins - 1)];
        *sum += f64::from(p);
        *n_relevant += usize::from(is_relevant);
        *n += 1;
    }
    let edge = |b: usize| b as f64 / bins as f64;
    let bin = |(b, (sum, n_relevant, n)): (usize, (f64, usize, usize))| Bin {
        from: edge(b),
        to: edge(b + 1),
        mean: sum / n as f64,
        share: n_relevant as f64 / n as f64,
        n,
    };
    let filled = sums.into_iter().enumerate().filter(|(_, (_, _, n))| *n > 0);
    let bins: Vec<Bin> = filled.map(bin).collect();
    let n: usize = bins.iter().map(|bin| bin.n).sum();
    let error: f64 = bins.iter().map(|bin| bin.n as f64 * (bin.mean - bin.share).abs()).sum();
    Reliability { bins, expected_error: error / n.max(1) as f64 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
        let (mut p, mut relevant) = (Vec::new(), Vec::new());
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
    fn nothing_is_wrong_with_nothing() {
        assert_eq!(reliability(&[], &[], 10), Reliability { bins: vec![], expected_error: 0.0 });
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
