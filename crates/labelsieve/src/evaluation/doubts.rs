//! Classes whose relevance says little, told from the relevance and the sizes alone.

/// Nine tenths of a flat class's candidates lie within this.
pub const FLAT: f32 = 0.05;

/// Whether relevance hardly tells the candidates apart: nine tenths of them, those between the 5th and the 95th percentile,
/// lie within 0.05. As weights, such numbers are one number. A quartile would not do: with one clean example most candidates
/// of a good class are near 1, and its tail is what tells.
///
/// A single candidate is not compared with any other, so it is never flat.
pub fn is_flat(relevance: &[f32]) -> bool {
    if relevance.len() < 2 {
        return false;
    }
    let mut sorted = relevance.to_vec();
    sorted.sort_unstable_by(f32::total_cmp);
    let tail = sorted.len() / 20; // none below twenty: there, every candidate counts
    sorted[sorted.len() - 1 - tail] - sorted[tail] < FLAT
}

/// Whether a pool is about as large as the neighbourhood of each of its examples, so that the graph joins nearly all with all
/// and says nothing: at most as many candidates as neighbours and clean examples.
pub fn is_small_pool(n_candidates: usize, n_clean: usize, neighbours: usize) -> bool {
    n_candidates <= neighbours + n_clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_tenths_close_together_are_flat() {
        assert!(is_flat(&[0.75, 0.76, 0.78]) && is_flat(&[1.0, 1.0]));
        assert!(!is_flat(&[0.75, 0.75, 0.85]), "few candidates: each counts");
        let with_tail = |n: usize| -> Vec<f32> { (0..100).map(|i| if i < n { 0.1 } else { 0.99 }).collect() };
        assert!(is_flat(&with_tail(5)), "five of a hundred aside");
        assert!(!is_flat(&with_tail(6)));
    }

    #[test]
    fn one_candidate_is_compared_with_none() {
        assert!(!is_flat(&[0.5]) && !is_flat(&[]));
    }

    #[test]
    fn a_pool_is_small_up_to_the_size_of_a_neighbourhood() {
        assert!(is_small_pool(52, 2, 50) && !is_small_pool(53, 2, 50));
    }
}
