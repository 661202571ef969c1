//! How probable it is that a candidate belongs to its class.
//!
//! ```text
//! logit p_i = -1.7 + 0.5 logit r_i + 1.5 s_i + 0.5 logit π + 0.33 ln k
//! ```
//!
//! r: the relevance; s: the candidate's standing in its pool by similarity; π: the share of the pool that belongs, by where the clean
//! examples rank in it; k clean examples. The numbers are a logistic regression over the tuning classes of icons, tiny and fashion
//! (`docs/calibration.md`); fitted on two of the sets they hold on the third nearly as well.

use crate::error::Result;
use crate::kernels::dot;
use crate::model::ClassProblem;
use crate::relevance::clean_direction;

const CONSTANT: f32 = -1.7;
const RELEVANCE: f32 = 0.5;
const STANDING: f32 = 1.5;
const SHARE: f32 = 0.5;
const SHOTS: f32 = 0.33;

/// One probability for each candidate; `standing` as [`super::formula::standing`] gives it.
pub fn probability(problem: &ClassProblem, relevance: &[f32], standing: &[f32]) -> Result<Vec<f32>> {
    let of_class =
        CONSTANT + SHARE * logit(relevant_share(problem)?, 0.05) + SHOTS * (problem.clean.len() as f32).ln();
    let of_candidate = |(r, s): (&f32, &f32)| {
        let logit = of_class + RELEVANCE * logit(*r, 0.02) + STANDING * s;
        1.0 / (1.0 + (-logit).exp())
    };
    Ok(relevance.iter().zip(standing).map(of_candidate).collect())
}

/// π: the share of a pool that belongs to the class, by the ranks of clean examples in it.
///
/// Left out in turn, a clean example ranks among the candidates by its similarity to the other clean ones. Where all candidates belong
/// its mean rank is ½, the middle; where none does, about 0.9, above nearly all. Two pretended ranks of 0.7 stand for what is not known,
/// which is everything at k = 1.
fn relevant_share(problem: &ClassProblem) -> Result<f32> {
    const NONE: f32 = 0.9;
    const ALL: f32 = 0.5;
    const PRETENDED: f32 = 2.0;
    let (clean, noisy) = (problem.clean, problem.noisy.features());
    let k = clean.len();
    let (mut sum, mut count) = (PRETENDED * 0.7, PRETENDED);
    if k >= 2 && !noisy.is_empty() {
        for left_out in 0..k {
            let rest: Vec<usize> = (0..k).filter(|&i| i != left_out).collect();
            let rest = clean.select(&rest);
            let direction = clean_direction(&ClassProblem::new(&rest, problem.noisy)?)?;
            let own = dot(clean.row(left_out), direction.row(0));
            let below = noisy.rows().filter(|row| dot(row, direction.row(0)) < own).count();
            sum += below as f32 / noisy.len() as f32;
            count += 1.0;
        }
    }
    Ok(((NONE - sum / count) / (NONE - ALL)).clamp(0.05, 0.95))
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
    use crate::model::NoisyPool;

    fn pool(n_relevant: usize, n: usize) -> NoisyPool {
        let row = |i: usize| if i < n_relevant { [1.0, 0.1 * i as f32 / n as f32] } else { [0.0, 1.0] };
        NoisyPool::new(Features::new((0..n).flat_map(row).collect(), 2).unwrap())
    }

    #[test]
    fn the_share_by_hand() {
        // Without a left-out example the pretended rank decides: (0.9 - 0.7) / 0.4.
        let one = Features::new(vec![1.0, 0.0], 2).unwrap();
        let noise = pool(0, 10);
        let share = relevant_share(&ClassProblem::new(&one, &noise).unwrap()).unwrap();
        assert!((share - 0.5).abs() < 1e-6, "{share}");
        // Both clean examples rank above all noise: mean rank (1.4 + 2) / 4 = 0.85, share 0.125.
        let two = Features::new(vec![1.0, 0.0, 1.0, 0.01], 2).unwrap();
        let share = relevant_share(&ClassProblem::new(&two, &noise).unwrap()).unwrap();
        assert!((share - 0.125).abs() < 1e-5, "{share}");
        // Below all of a pool that is even closer: (1.4 + 0) / 4 = 0.35, more than a share of 1, which is cut off.
        let far = Features::new(vec![1.0, 0.4, 0.4, 1.0], 2).unwrap();
        let close = NoisyPool::new(Features::new(vec![1.0, 1.0, 1.0, 0.9], 2).unwrap());
        let share = relevant_share(&ClassProblem::new(&far, &close).unwrap()).unwrap();
        assert_eq!(share, 0.95);
    }

    #[test]
    fn probability_by_hand_and_in_the_order_of_relevance() {
        let clean = Features::new(vec![1.0, 0.0], 2).unwrap();
        let pool = pool(2, 4);
        let problem = ClassProblem::new(&clean, &pool).unwrap();
        let found = probability(&problem, &[0.5, 1.0, 0.2, 0.0], &[1.0; 4]).unwrap();
        let expected = 1.0 / (1.0 + 0.2f32.exp()); // logit -1.7 + 1.5
        assert!((found[0] - expected).abs() < 1e-6, "{} against {expected}", found[0]);
        assert!(found[1] > found[0] && found[0] > found[2] && found[2] > found[3]);
    }
}
