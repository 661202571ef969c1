//! In which order candidates are looked at.

use labelsieve::Features;
use labelsieve::graph::closest_clean;

/// Undecided candidates so that any number of the first ones is spread evenly over the ranking: the top, then the middle,
/// then the quarters, and so on. Confirming the top alone teaches nothing new.
pub(super) fn coarse_to_fine(ranked: &[u32]) -> Vec<u32> {
    let n = ranked.len();
    if n < 2 {
        return ranked.to_vec();
    }
    let bits = usize::BITS - (n - 1).leading_zeros();
    (0..1usize << bits)
        .map(|i| i.reverse_bits() >> (usize::BITS - bits))
        .filter_map(|rank| ranked.get(rank).copied())
        .collect()
}

/// Rows by relevance, the most relevant first, equal ones by row.
pub(super) fn ranked(rows: impl Iterator<Item = u32>, relevance: &[f32]) -> Vec<u32> {
    let mut rows: Vec<u32> = rows.collect();
    rows.sort_by(|&a, &b| relevance[b as usize].total_cmp(&relevance[a as usize]).then(a.cmp(&b)));
    rows
}

/// All rows by similarity to one of them, which comes first.
pub(super) fn similar(features: &Features, to: usize) -> Vec<u32> {
    let similarity: Vec<f32> =
        closest_clean(&features.select(&[to]), features).into_iter().map(|(_, like)| like).collect();
    let mut rows: Vec<u32> = (0..features.len() as u32).collect();
    let key = |row: u32| (row as usize != to, similarity[row as usize]);
    rows.sort_by(|&a, &b| {
        let ((a_other, a_like), (b_other, b_like)) = (key(a), key(b));
        a_other.cmp(&b_other).then(b_like.total_cmp(&a_like)).then(a.cmp(&b))
    });
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_beginning_is_spread_over_the_ranking() {
        let ranking: Vec<u32> = (0..8).collect();
        assert_eq!(coarse_to_fine(&ranking), [0, 4, 2, 6, 1, 5, 3, 7]);
        assert_eq!(coarse_to_fine(&[7, 5, 3]), [7, 3, 5]);
        assert_eq!((coarse_to_fine(&[]), coarse_to_fine(&[4])), (vec![], vec![4]));
        for n in 1..70 {
            let mut all = coarse_to_fine(&(0..n).collect::<Vec<u32>>());
            all.sort_unstable();
            assert_eq!(all, (0..n).collect::<Vec<u32>>(), "each once");
        }
    }

    #[test]
    fn rows_are_ranked_by_relevance_and_by_similarity() {
        assert_eq!(ranked(0..4, &[0.5, 0.9, 0.5, 1.0]), [3, 1, 0, 2]);
        let features = Features::new(vec![1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0], 2).unwrap();
        assert_eq!(similar(&features, 3), [3, 0, 2, 1]);
    }
}
