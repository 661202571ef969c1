//! The statistics in the figures.

/// The number of values in each of `n_bins` equal parts of [0, 1]; 1 itself is in the last.
pub(crate) fn histogram(values: impl IntoIterator<Item = f32>, n_bins: usize) -> Vec<usize> {
    let mut counts = vec![0; n_bins];
    for value in values {
        counts[((value * n_bins as f32) as usize).min(n_bins - 1)] += 1;
    }
    counts
}

/// The empirical distribution at `n_steps` + 1 equal steps from 0 to 1: the share of `sorted` values that are at most x.
pub(crate) fn cumulative(sorted: &[f32], n_steps: usize) -> Vec<(f64, f64)> {
    (0..=n_steps)
        .map(|step| {
            let x = step as f64 / n_steps as f64;
            let below = sorted.partition_point(|&value| f64::from(value) <= x);
            (x, below as f64 / sorted.len().max(1) as f64)
        })
        .collect()
}

/// A curve from (0, 0) to (1, 1): as the threshold falls, the share of irrelevant (x) and of relevant values (y) above
/// it. Equal values are added together, so that the area under the curve counts a tie as half.
pub(crate) fn roc(relevant: &[f32], irrelevant: &[f32]) -> Vec<(f64, f64)> {
    let mut all: Vec<(f32, bool)> =
        relevant.iter().map(|&r| (r, true)).chain(irrelevant.iter().map(|&r| (r, false))).collect();
    all.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
    let mut hits = 0usize;
    let mut misses = 0usize;
    let mut curve = vec![(0.0, 0.0)];
    for group in all.chunk_by(|a, b| a.0 == b.0) {
        let n_relevant = group.iter().filter(|(_, is_relevant)| *is_relevant).count();
        hits += n_relevant;
        misses += group.len() - n_relevant;
        curve.push((
            misses as f64 / irrelevant.len().max(1) as f64,
            hits as f64 / relevant.len().max(1) as f64,
        ));
    }
    curve
}

/// Every nth point of a curve, both ends included, so that at most about `max_points` are left.
pub(crate) fn thinned(curve: &[(f64, f64)], max_points: usize) -> Vec<(f64, f64)> {
    let every = curve.len().div_ceil(max_points.max(1)).max(1);
    let last = curve.len().saturating_sub(1);
    (0..curve.len()).filter(|&at| at % every == 0 || at == last).map(|at| curve[at]).collect()
}

/// Their mean, if there are any.
pub(crate) fn mean(values: impl IntoIterator<Item = f32>) -> Option<f64> {
    let mut sum = 0f64;
    let mut count = 0usize;
    for value in values {
        sum += f64::from(value);
        count += 1;
    }
    (count > 0).then(|| sum / count as f64)
}

/// The area under the ROC curve; none unless there are values on both sides.
pub(crate) fn auc(relevant: &[f32], irrelevant: &[f32]) -> Option<f64> {
    let scores = [relevant, irrelevant].concat();
    let truth: Vec<bool> = (0..scores.len()).map(|at| at < relevant.len()).collect();
    labelsieve::evaluation::roc_auc(&scores, &truth)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_counts_both_ends() {
        assert_eq!(histogram([0.0, 0.25, 0.49, 0.5, 1.0], 2), [3, 2]);
        assert_eq!(histogram([], 3), [0, 0, 0]);
    }

    #[test]
    fn the_cumulative_share_counts_values_up_to_and_with_x() {
        let shares = cumulative(&[0.0, 0.5, 0.5, 1.0], 2);
        assert_eq!(shares, [(0.0, 0.25), (0.5, 0.75), (1.0, 1.0)]);
        assert_eq!(cumulative(&[], 1), [(0.0, 0.0), (1.0, 0.0)]);
    }

    #[test]
    fn the_area_under_the_roc_curve_is_the_share_of_pairs_in_order() {
        // 0.9 beats both, 0.4 beats 0.1 and loses to 0.6: three of four pairs.
        assert_eq!(auc(&[0.9, 0.4], &[0.6, 0.1]), Some(0.75));
        assert_eq!(auc(&[0.5], &[0.5]), Some(0.5));
        assert_eq!(auc(&[0.5], &[]), None);
        let area = |curve: &[(f64, f64)]| -> f64 {
            curve.windows(2).map(|w| (w[1].0 - w[0].0) * (w[1].1 + w[0].1) / 2.0).sum()
        };
        assert_eq!(area(&roc(&[0.9, 0.4], &[0.6, 0.1])), 0.75);
        assert_eq!(roc(&[0.5], &[0.5]), [(0.0, 0.0), (1.0, 1.0)], "a tie is a diagonal");
    }

    #[test]
    fn a_thinned_curve_keeps_its_ends() {
        let curve: Vec<(f64, f64)> = (0..10).map(|i| (f64::from(i), 0.0)).collect();
        let xs: Vec<f64> = thinned(&curve, 4).iter().map(|point| point.0).collect();
        assert_eq!(xs, [0.0, 3.0, 6.0, 9.0]);
        assert_eq!(thinned(&curve, 100).len(), 10);
        assert!(thinned(&[], 4).is_empty());
    }
}
