//! The probability that a candidate belongs to its class.
//!
//! ```text
//! logit p_i = -1.4 + 0.56 logit(r_i / r_95) + s_i + 0.38 logit π + 0.24 ln k
//! ```
//!
//! r: the relevance, relative to the 95 % quantile of its pool, since its scale falls with the number of clean examples; the ratio is kept
//! in [0.02, 0.98]. s: the candidate's standing in its pool by similarity; π: the share of the pool that belongs, by where the clean
//! examples rank in it; k clean examples, 20 at most. The numbers are a logistic regression over the tuning classes of icons, tiny and
//! fashion (`docs/calibration.md`); fitted on two of the sets they hold on the third nearly as well.

use super::formula::quantile;
use crate::model::ClassProblem;

const CONSTANT: f32 = -1.4;
const RELEVANCE: f32 = 0.56;
const STANDING: f32 = 1.0;
const SHARE: f32 = 0.38;
const SHOTS: f32 = 0.24;
/// Fitted up to this k; beyond it, the term is constant.
const MAX_SHOTS: usize = 20;
/// The minimum of the quantile that relevance is relative to.
const MIN_RELEVANCE: f32 = 1e-3;

/// The probability of each candidate; `standing` as [`super::formula::standing`] gives it, `share` as
/// [`super::share::relevant_share`].
pub fn probability(problem: &ClassProblem, relevance: &[f32], standing: &[f32], share: f32) -> Vec<f32> {
    let n_clean = problem.clean.len().min(MAX_SHOTS);
    let of_class = CONSTANT + SHARE * logit(share, 0.05) + SHOTS * (n_clean as f32).ln();
    let mut sorted = relevance.to_vec();
    sorted.sort_by(f32::total_cmp);
    let high = quantile(&sorted, 0.95).max(MIN_RELEVANCE);
    let of_candidate = |(r, s): (&f32, &f32)| {
        let logit = of_class + RELEVANCE * logit(r / high, 0.02) + STANDING * s;
        1.0 / (1.0 + (-logit).exp())
    };
    relevance.iter().zip(standing).map(of_candidate).collect()
}

/// ln(p/(1 − p)) of p kept `margin` away from 0 and 1.
fn logit(p: f32, margin: f32) -> f32 {
    let p = p.clamp(margin, 1.0 - margin);
    (p / (1.0 - p)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::Features;
    use crate::graph::NoisyPool;

    #[test]
    fn probability_by_hand_and_in_the_order_of_relevance() {
        let clean = Features::new(vec![1.0, 0.0], 2).unwrap();
        let pool = NoisyPool::new(Features::new([1.0, 0.0].repeat(4), 2).unwrap());
        let problem = ClassProblem::new(&clean, &pool).unwrap();
        let found = probability(&problem, &[0.5, 1.0, 0.2, 0.0], &[1.0; 4], 0.5);
        // The quantile lies 0.85 of the way from 0.5 to 1: 0.925. logit -1.4 + 1.
        let expected = 1.0 / (1.0 + (0.4 - 0.56 * (0.5f32 / 0.425).ln()).exp());
        assert!((found[0] - expected).abs() < 1e-6, "{} against {expected}", found[0]);
        assert!(found[1] > found[0] && found[0] > found[2] && found[2] > found[3]);
    }
}
