//! Whether of the candidates with probability 0.8 about 80 % belong to their class.

use serde::{Deserialize, Serialize};

/// Candidates by their probability, in ten bins of equal width; 1 is in the last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    bins: [Bin; 10],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Bin {
    n: usize,
    relevant: usize,
    /// Sum of the probabilities.
    probability: f64,
}

/// The candidates of a bin.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Reliability {
    /// Mean of their probabilities.
    pub probability: f64,
    /// Share that belongs to the class.
    pub relevant: f64,
    pub n: usize,
}

impl Calibration {
    /// Adds candidates with what is true of each.
    pub fn add(&mut self, probability: &[f32], relevant: &[bool]) {
        for (&probability, &relevant) in probability.iter().zip(relevant) {
            let bin = &mut self.bins[((probability * 10.0) as usize).min(9)];
            bin.n += 1;
            bin.relevant += usize::from(relevant);
            bin.probability += f64::from(probability);
        }
    }

    /// Adds the candidates of another draw.
    pub fn merge(&mut self, other: &Calibration) {
        for (bin, other) in self.bins.iter_mut().zip(&other.bins) {
            bin.n += other.n;
            bin.relevant += other.relevant;
            bin.probability += other.probability;
        }
    }

    /// The bins that hold any.
    pub fn reliability(&self) -> Vec<Reliability> {
        let share = |sum: f64, n: usize| sum / n as f64;
        let filled = self.bins.iter().filter(|bin| bin.n > 0);
        filled
            .map(|bin| Reliability {
                probability: share(bin.probability, bin.n),
                relevant: share(bin.relevant as f64, bin.n),
                n: bin.n,
            })
            .collect()
    }

    /// The expected calibration error: Σ n_b / n · |mean probability − share relevant|. None without candidates.
    pub fn error(&self) -> Option<f64> {
        let n: usize = self.bins.iter().map(|bin| bin.n).sum();
        let gap = |bin: &Bin| (bin.probability - bin.relevant as f64).abs();
        (n > 0).then(|| self.bins.iter().map(gap).sum::<f64>() / n as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_is_the_mean_gap_by_candidates() {
        let mut calibration = Calibration::default();
        // Bin 2: 0.25, one of four is right: no gap. Last bin: 1 and 1, one of two is right: a gap of a half.
        calibration.add(&[0.25, 0.25, 0.25, 0.25], &[true, false, false, false]);
        calibration.add(&[1.0, 1.0], &[true, false]);
        assert_eq!(calibration.error(), Some((4.0 * 0.0 + 2.0 * 0.5) / 6.0));
        assert_eq!(
            calibration.reliability(),
            [
                Reliability { probability: 0.25, relevant: 0.25, n: 4 },
                Reliability { probability: 1.0, relevant: 0.5, n: 2 }
            ]
        );
    }

    #[test]
    fn gaps_of_one_bin_cancel_and_those_of_two_do_not() {
        let error = |probability: &[f32]| {
            let mut calibration = Calibration::default();
            calibration.add(probability, &[true, false]);
            calibration.error().unwrap()
        };
        assert_eq!(error(&[0.5, 0.5]), 0.0);
        assert_eq!(error(&[0.75, 0.25]), 0.25);
        assert_eq!(error(&[1.0, 0.0]), 0.0);
    }

    #[test]
    fn draws_add_up_and_nothing_has_no_error() {
        let mut all = Calibration::default();
        assert_eq!((all.error(), all.reliability().len()), (None, 0));
        let mut one = Calibration::default();
        one.add(&[0.5], &[true]);
        all.merge(&one);
        all.merge(&one);
        assert_eq!(all.reliability(), [Reliability { probability: 0.5, relevant: 1.0, n: 2 }]);
    }
}
