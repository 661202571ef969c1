//! The loss that turns a binary classifier into a relevance model.

use crate::decision::Decision;
use crate::model::ClassProblem;

/// Keeps the logarithms finite when a probability saturates.
const EPSILON: f32 = 1e-6;

/// ω: the weight of the rejected examples in the loss, beside 1 for the clean and accepted ones. Its size hardly matters: top-1 % after 5
/// and 10 decisions per class at k = 1 is 80.0 and 80.7 with 0.3, 79.7 and 81.0 with 1 on the icons (± 0.8), and 29.6 and 31.2 with 0.3,
/// 29.5 and 31.4 with 1, 29.3 and 30.9 with 3 on `tiny`.
const REJECTED: f32 = 1.0;

/// **Eq. (3)**: the loss that separates clean from noisy examples.
///
/// ```text
/// L = -1/k Σ_clean ln p_i  -  λ/z Σ_noisy ln(1 - p_i)
/// ```
///
/// `p`: k + z probabilities, clean rows first; `n_clean`: k; `lambda`: λ. As in the published code, 10⁻⁶ is added
/// inside both logarithms. With a person's decisions on noisy examples it becomes [`weighted_loss`].
pub fn cleaning_loss(p: &[f32], n_clean: usize, lambda: f32) -> f32 {
    let (clean, noisy) = p.split_at(n_clean);
    -mean(clean, |p| (p + EPSILON).ln()) - lambda * mean(noisy, |p| (1.0 - p + EPSILON).ln())
}

/// **Eq. (3)** with decisions: a person has accepted a and rejected r of the noisy examples, which leaves z:
///
/// ```text
/// L = -1/(k+a) Σ_{clean, accepted} ln p_i  -  λ/z Σ_undecided ln(1 - p_i)  -  ω/r Σ_rejected ln(1 - p_i)
/// ```
///
/// `weights`: the factor of each row's logarithm, with the sign of its target: 1/(k+a) for those that should be 1, -λ/z and
/// -ω/r for those that should be 0. Without decisions this is [`cleaning_loss`].
pub fn weighted_loss(p: &[f32], weights: &[f32]) -> f32 {
    let term = |(&p, &weight): (&f32, &f32)| {
        let toward_target = if weight.is_sign_positive() { p } else { 1.0 - p };
        -f64::from(weight.abs()) * f64::from((toward_target + EPSILON).ln())
    };
    p.iter().zip(weights).map(term).sum::<f64>() as f32
}

/// The weights of [`weighted_loss`] for every row of a class, clean rows first. Examples that a person was unsure about
/// count as undecided.
pub fn loss_weights(problem: &ClassProblem, lambda: f32) -> Vec<f32> {
    let k = problem.clean.len();
    let n_noisy = problem.noisy.features().len();
    let count = |decision| problem.decided(decision).len();
    let n_accepted = count(Decision::Accept);
    let n_rejected = count(Decision::Reject);
    let share = |weight: f32, n: usize| weight / n.max(1) as f32;
    let positive = share(1.0, k + n_accepted);
    let undecided = -share(lambda, n_noisy - n_accepted - n_rejected);
    let rejected = -share(REJECTED, n_rejected);
    let weight = |i: usize| match problem.decision(i) {
        Some(Decision::Accept) => positive,
        Some(Decision::Reject) => rejected,
        Some(Decision::Unsure) | None => undecided,
    };
    let mut weights = vec![positive; k];
    weights.extend((0..n_noisy).map(weight));
    weights
}

/// dL/da of [`weighted_loss`] for one example with p = σ(a).
#[inline(always)]
pub(super) fn loss_gradient(p: f32, weight: f32) -> f32 {
    let sigmoid_derivative = p * (1.0 - p);
    // By the sign bit: with λ = 0 the undecided have weight -0.
    let toward_target = if weight.is_sign_positive() { p } else { 1.0 - p };
    -weight * sigmoid_derivative / (toward_target + EPSILON)
}

fn mean(values: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    if values.is_empty() {
        return 0.0;
    }
    (values.iter().map(|&v| f64::from(f(v))).sum::<f64>() / values.len() as f64) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::Features;
    use crate::graph::NoisyPool;

    #[test]
    fn eq_3_is_a_weighted_cross_entropy() {
        // One clean row at 1/2 and two noisy at 1/2 and 3/4: ln 2 + λ/2 (ln 2 + ln 4) with λ = 2.
        let loss = cleaning_loss(&[0.5, 0.5, 0.75], 1, 2.0);
        assert!((loss - 4.0 * 2f32.ln()).abs() < 1e-5, "{loss}");
    }

    #[test]
    fn eq_3_with_decisions_weighs_accepted_as_clean_and_rejected_on_their_own() {
        let (clean, pool) = one_and_four();
        use Decision::{Accept, Reject, Unsure};
        let decisions = [Some(Accept), None, Some(Reject), Some(Unsure)];
        let problem = ClassProblem::new(&clean, &pool).unwrap().with_decisions(&decisions).unwrap();
        let weights = loss_weights(&problem, 2.0);
        assert_eq!(weights, [0.5, 0.5, -1.0, -REJECTED, -1.0]);
        // ½ (ln 2 + ln 4) for clean and accepted, 2/2 (ln 2 + ln 4) for undecided and unsure, ω ln 8 for the rejected one.
        let loss = weighted_loss(&[0.5, 0.25, 0.5, 0.875, 0.75], &weights);
        assert!((loss - (1.5 + 3.0 + 3.0 * REJECTED) * 2f32.ln()).abs() < 1e-4, "{loss}");
    }

    #[test]
    fn eq_3_without_decisions_is_the_papers() {
        let (clean, pool) = one_and_four();
        let problem = ClassProblem::new(&clean, &pool).unwrap();
        let p = [0.7, 0.1, 0.9, 0.3, 0.5];
        for lambda in [0.0, 0.01, 3.0] {
            let loss = weighted_loss(&p, &loss_weights(&problem, lambda));
            assert!((loss - cleaning_loss(&p, 1, lambda)).abs() < 1e-6);
        }
    }

    fn one_and_four() -> (Features, NoisyPool) {
        let rows = Features::new(vec![1.0; 5], 1).unwrap();
        (rows.select(&[0]), NoisyPool::new(rows.select(&[1, 2, 3, 4])))
    }

    #[test]
    fn eq_3_stays_finite_when_probabilities_saturate() {
        assert!(cleaning_loss(&[0.0, 1.0], 1, 1.0).is_finite());
        assert_eq!(cleaning_loss(&[1.0], 1, 1.0), -(1.0 + EPSILON).ln());
    }

    #[test]
    fn the_gradient_agrees_with_finite_differences() {
        let sigmoid = |a: f32| 1.0 / (1.0 + (-a).exp());
        for a in [-3.0f32, -0.5, 0.0, 2.0] {
            for (n_clean, lambda) in [(1, 0.0), (0, 0.7)] {
                let h = 1e-2;
                let loss = |a: f32| cleaning_loss(&[sigmoid(a)], n_clean, lambda);
                let numeric = (loss(a + h) - loss(a - h)) / (2.0 * h);
                let gradient = loss_gradient(sigmoid(a), if n_clean == 1 { 1.0 } else { -lambda });
                assert!((gradient - numeric).abs() < 1e-3, "at {a}: {gradient} against {numeric}");
            }
        }
    }
}
