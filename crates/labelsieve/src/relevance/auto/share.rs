//! The share of a pool that belongs to the class.

use std::cmp::Ordering;

use labelsieve_numerics::kernels::dot;

use crate::error::Result;
use crate::model::ClassProblem;
use crate::relevance::clean_direction;

/// π: the share of a pool that belongs to the class, by the ranks of clean examples in it.
///
/// Left out in turn, a clean example ranks among the candidates by its similarity to the other clean ones. If all candidates belong,
/// its mean rank is ½, the middle; if none does, about 0.9, above nearly all. Two pseudo-ranks of 0.7 act as a prior, which is all
/// there is at k = 1. Twenty clean examples suffice.
pub fn relevant_share(problem: &ClassProblem) -> Result<f32> {
    const NONE: f32 = 0.9;
    const ALL: f32 = 0.5;
    const PSEUDO_RANKS: f32 = 2.0;
    const MAX_LEFT_OUT: usize = 20;
    let clean = problem.clean;
    let noisy = problem.noisy.features();
    let k = clean.len();
    let mut sum = PSEUDO_RANKS * 0.7;
    let mut count = PSEUDO_RANKS;
    let left_out = (0..k.min(MAX_LEFT_OUT)).map(|i| i * k / k.min(MAX_LEFT_OUT));
    for left_out in left_out.filter(|_| k >= 2 && !noisy.is_empty()) {
        problem.watch().check()?;
        let rest: Vec<usize> = (0..k).filter(|&i| i != left_out).collect();
        let rest = clean.select(&rest);
        let direction = clean_direction(&ClassProblem::new(&rest, problem.noisy)?)?;
        let is_zero = |row: &[f32]| row.iter().all(|v| *v == 0.0);
        if is_zero(clean.row(left_out)) || is_zero(direction.row(0)) {
            continue; // an all-zero feature vector has no rank
        }
        let own = dot(clean.row(left_out), direction.row(0));
        let rank = |row: &[f32]| match dot(row, direction.row(0)).total_cmp(&own) {
            Ordering::Less => 1.0,
            Ordering::Equal => 0.5,
            Ordering::Greater => 0.0,
        };
        sum += noisy.pass().map(rank).sum::<f32>() / noisy.len() as f32;
        count += 1.0;
    }
    Ok(((NONE - sum / count) / (NONE - ALL)).clamp(0.05, 0.95))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::Features;
    use crate::graph::NoisyPool;

    #[test]
    fn the_share_by_hand() {
        // Without a left-out example the pretended rank decides: (0.9 - 0.7) / 0.4.
        let one = Features::new(vec![1.0, 0.0], 2).unwrap();
        let noise = NoisyPool::new(Features::new([0.0, 1.0].repeat(10), 2).unwrap());
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
}
