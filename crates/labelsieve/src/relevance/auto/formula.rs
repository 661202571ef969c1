//! The formula that combines the parts of `auto` into one relevance.

use labelsieve_numerics::kernels::dot;

use crate::error::Result;
use crate::model::ClassProblem;
use crate::relevance::clean_direction;

/// The network gains weight with the number of clean examples: its relevance g enters as φ + (1 − φ) g with φ = 0.3/√k. At k = 1 the
/// paper's λ makes it reject many right candidates, which costs four points of top-1 on fashion, and none with this.
const FLOOR: f32 = 0.3;
/// The exponent of the network's relevance: from ½, where nearly all candidates belong and rejecting some costs more than noise, to
/// 1 in noisy pools.
const NETWORK: std::ops::RangeInclusive<f32> = 0.5..=1.0;
/// In pools of about this size and smaller, similarity counts too: their graphs are nearly complete and carry little information,
/// and many small weights of wrong candidates outweigh the clean examples.
const SMALL_POOL: f32 = 50.0;
/// The standing of the least similar candidates of a pool.
const MIN_STANDING: f32 = 0.05;
/// Candidates whose similarities differ by less are about equally similar.
const MIN_SPREAD: f32 = 0.05;

/// The relevance of one candidate by network, mixture and similarity.
///
/// ```text
/// relevance = m · (φ + (1 − φ) g)^ν · s^ε        φ = 0.3/√k,  ν = 1.25 − π in [½, 1],  ε = 1/(1 + (z/50)²)
/// ```
///
/// `m`: posterior of the mixture, 1 without other classes; `g`: relevance by the network; `s`: [`standing`].
pub fn blend(m: f32, g: f32, s: f32, class: &ClassStatistics) -> f32 {
    let floor = FLOOR / (class.n_clean.max(1) as f32).sqrt();
    let network = (1.25 - class.share).clamp(*NETWORK.start(), *NETWORK.end());
    m * (floor + (1.0 - floor) * g).powf(network) * s.powf(similarity_exponent(class.n_noisy))
}

/// The properties of a class that the formula uses.
pub struct ClassStatistics {
    /// k.
    pub n_clean: usize,
    /// z.
    pub n_noisy: usize,
    /// π: the share of the pool that belongs ([`super::share`]).
    pub share: f32,
}

/// ε: how much similarity counts in a pool of this size.
pub fn similarity_exponent(n_noisy: usize) -> f32 {
    1.0 / (1.0 + (n_noisy as f32 / SMALL_POOL).powi(2))
}

/// The standing of each candidate in its pool by similarity to the clean examples: from 0 at the 5 % least similar ones to 1 at the
/// 5 % most similar, and at least 0.05. About 1 for all if all are about equally similar.
pub fn standing(problem: &ClassProblem) -> Result<Vec<f32>> {
    let direction = clean_direction(problem)?;
    let similarities: Vec<f32> =
        problem.noisy.features().pass().map(|row| dot(row, direction.row(0))).collect();
    let mut sorted = similarities.clone();
    sorted.sort_by(f32::total_cmp);
    let low = quantile(&sorted, 0.05);
    let high = quantile(&sorted, 0.95);
    let spread = (high - low).max(MIN_SPREAD);
    Ok(similarities.iter().map(|s| (1.0 - (high - s) / spread).clamp(MIN_STANDING, 1.0)).collect())
}

/// A quantile with linear interpolation between the sorted values; 0 if there are none.
pub fn quantile(sorted: &[f32], share: f32) -> f32 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let at = share * last as f32;
    let below = at.floor() as usize;
    let above = (below + 1).min(last);
    sorted[below] + (at - below as f32) * (sorted[above] - sorted[below])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::Features;
    use crate::graph::NoisyPool;

    #[test]
    fn the_formula_by_hand() {
        // φ = 0.3 at k = 1 and 0.15 at k = 4; ν = ½ at π = 0.9 and 1 at π = 0.1; ε = ½ at z = 50.
        let class = |n_clean, n_noisy, share| ClassStatistics { n_clean, n_noisy, share };
        assert!((blend(0.5, 0.0, 1.0, &class(1, 50, 0.9)) - 0.5 * 0.3f32.sqrt()).abs() < 1e-6);
        assert!((blend(1.0, 0.4, 0.25, &class(4, 50, 0.1)) - 0.49 * 0.5).abs() < 1e-6);
        assert!((blend(1.0, 1.0, 0.05, &class(1, 5000, 0.5)) - 1.0).abs() < 1e-3);
    }

    #[test]
    fn a_candidate_stands_between_the_least_and_the_most_similar() {
        // 21 candidates with similarities 0, 0.05, … 1: the quantiles are the second and the last but one.
        let row = |i: u16| {
            let x = f32::from(i) / 20.0;
            [x, (1.0 - x * x).max(0.0).sqrt()]
        };
        let pool = NoisyPool::new(Features::new((0..=20).flat_map(row).collect(), 2).unwrap());
        let clean = Features::new(vec![1.0, 0.0], 2).unwrap();
        let found = standing(&ClassProblem::new(&clean, &pool).unwrap()).unwrap();
        assert_eq!((found[0], found[1], found[20]), (0.05, 0.05, 1.0));
        assert!((found[10] - 0.5).abs() < 1e-5, "{}", found[10]);
        let alike = NoisyPool::new(Features::new(vec![0.0, 1.0, 0.0, 1.0], 2).unwrap());
        assert_eq!(standing(&ClassProblem::new(&clean, &alike).unwrap()).unwrap(), [1.0, 1.0]);
    }
}
