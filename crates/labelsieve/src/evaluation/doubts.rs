//! Detection of uninformative relevance, from its values and the sizes of a class alone.

use crate::relevance::Method;

/// Reasons to doubt the relevance of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Doubts {
    /// Nearly all candidates have the same relevance.
    pub is_flat: bool,
    /// The number of neighbours in the graph, if there are hardly more candidates than that.
    pub small_pool: Option<usize>,
}

impl Doubts {
    /// `undecided`: the relevance of the undecided candidates. `method`, if known, determines whether there is a graph and
    /// whether equal relevance is intended.
    pub fn new(method: Option<&Method>, undecided: &[f32], n_clean: usize, n_candidates: usize) -> Doubts {
        let is_small =
            |neighbours: &usize| n_candidates > 0 && is_small_pool(n_candidates, n_clean, *neighbours);
        Doubts {
            is_flat: !matches!(method, Some(Method::Beta(_))) && is_flat(undecided),
            small_pool: method.and_then(|method| method.neighbours(n_candidates)).filter(is_small),
        }
    }
}

/// The relevance of nine tenths of a flat class lies within this.
const FLAT: f32 = 0.05;

/// Whether nearly all candidates have the same relevance: nine tenths of them, those between the 5th and the 95th percentile,
/// lie within 0.05, which makes no difference as a weight. Quartiles would be too strict: with one clean example most candidates
/// of a good class are near 1, and only the tail is informative.
///
/// A single candidate is never flat.
fn is_flat(relevance: &[f32]) -> bool {
    if relevance.len() < 2 {
        return false;
    }
    let mut sorted = relevance.to_vec();
    sorted.sort_unstable_by(f32::total_cmp);
    let tail = sorted.len() / 20; // none below twenty: there, every candidate counts
    sorted[sorted.len() - 1 - tail] - sorted[tail] < FLAT
}

/// Whether the graph of a pool is nearly complete and thus uninformative: there are at most as many candidates as neighbours and
/// clean examples.
fn is_small_pool(n_candidates: usize, n_clean: usize, neighbours: usize) -> bool {
    n_candidates <= neighbours + n_clean
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relevance::{Beta, Similarity};

    #[test]
    fn doubts_are_raised_where_they_mean_something() {
        let spread: Vec<f32> = (0..60).map(|i| i as f32 / 60.0).collect();
        let doubts = |method: &Method, relevance: &[f32]| {
            let Doubts { is_flat, small_pool } = Doubts::new(Some(method), relevance, 2, relevance.len());
            (is_flat, small_pool)
        };
        let gcn = Method::gcn();
        let similarity = Method::Similarity(Similarity {});
        assert_eq!(doubts(&gcn, &[0.75; 60]), (true, None));
        assert_eq!(doubts(&gcn, &spread[..9]), (false, Some(50)));
        assert_eq!(doubts(&gcn, &spread), (false, None));
        assert_eq!(doubts(&gcn, &[]), (false, None), "no candidates, no doubts");
        assert_eq!(doubts(&similarity, &spread[..9]), (false, None), "there is no graph");
        assert_eq!(doubts(&similarity, &[0.75; 60]), (true, None));
        assert_eq!(
            doubts(&Method::Beta(Beta { beta: 0.75 }), &[0.75; 60]),
            (false, None),
            "as was asked for"
        );
        assert_eq!(Doubts::new(None, &[0.75; 9], 2, 9), Doubts { is_flat: true, small_pool: None });
        assert_eq!(Doubts::new(Some(&gcn), &[0.75], 2, 60).small_pool, None, "decided ones are in the pool");
    }

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
