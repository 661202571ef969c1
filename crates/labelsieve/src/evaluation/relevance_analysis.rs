//! Relevance against the truth, if it is known.

use serde::{Deserialize, Serialize};

/// How well relevance separates relevant from irrelevant examples of a class.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RelevanceAnalysis {
    /// Relevant examples.
    pub n_relevant: usize,
    /// Irrelevant examples.
    pub n_irrelevant: usize,
    /// Irrelevant share of all.
    pub noise_ratio: f64,
    /// Mean relevance of the relevant ones; none without any.
    pub mean_relevant: Option<f64>,
    /// Mean relevance of the irrelevant ones; none without any.
    pub mean_irrelevant: Option<f64>,
    /// Area under the ROC curve; none unless there are both.
    pub auc: Option<f64>,
    /// Average precision of the ranking by relevance; none without relevant examples.
    pub average_precision: Option<f64>,
}

impl RelevanceAnalysis {
    /// Compares `relevance` with `truth`, example by example.
    pub fn new(relevance: &[f32], truth: &[bool]) -> RelevanceAnalysis {
        let mean_where = |wanted: bool| {
            let chosen = || relevance.iter().zip(truth).filter(|(_, t)| **t == wanted);
            let n = chosen().count();
            (n > 0).then(|| chosen().map(|(&r, _)| f64::from(r)).sum::<f64>() / n as f64)
        };
        let n_relevant = truth.iter().filter(|t| **t).count();
        let n_irrelevant = truth.len() - n_relevant;
        RelevanceAnalysis {
            n_relevant,
            n_irrelevant,
            noise_ratio: n_irrelevant as f64 / truth.len().max(1) as f64,
            mean_relevant: mean_where(true),
            mean_irrelevant: mean_where(false),
            auc: roc_auc(relevance, truth),
            average_precision: average_precision(relevance, truth),
        }
    }
}

/// The probability that a relevant example scores above an irrelevant one; a tie counts half.
pub fn roc_auc(scores: &[f32], truth: &[bool]) -> Option<f64> {
    let mut wins = 0f64;
    let mut positives = 0usize;
    let mut negatives = 0usize;
    for group in descending_groups(scores, truth).iter().rev() {
        wins += group.positives as f64 * (negatives as f64 + 0.5 * group.negatives as f64);
        positives += group.positives;
        negatives += group.negatives;
    }
    (positives > 0 && negatives > 0).then(|| wins / (positives as f64 * negatives as f64))
}

/// Σ (recall step) × (precision there), going down the ranking; examples of equal score enter together.
pub fn average_precision(scores: &[f32], truth: &[bool]) -> Option<f64> {
    let mut sum = 0f64;
    let mut positives = 0usize;
    let mut seen = 0usize;
    for group in descending_groups(scores, truth) {
        positives += group.positives;
        seen += group.positives + group.negatives;
        sum += group.positives as f64 * positives as f64 / seen as f64;
    }
    (positives > 0).then(|| sum / positives as f64)
}

struct Group {
    positives: usize,
    negatives: usize,
}

/// Examples of equal score together, best first.
fn descending_groups(scores: &[f32], truth: &[bool]) -> Vec<Group> {
    let mut order: Vec<(f32, bool)> = scores.iter().copied().zip(truth.iter().copied()).collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0));
    order
        .chunk_by(|a, b| a.0 == b.0)
        .map(|chunk| {
            let positives = chunk.iter().filter(|(_, t)| *t).count();
            Group { positives, negatives: chunk.len() - positives }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::{numbers, read};

    #[test]
    fn auc_and_average_precision_agree_with_scikit_learn() {
        for case in read("metrics")["cases"].as_array().unwrap() {
            let truth: Vec<bool> = numbers(&case["truth"]).iter().map(|&t| t == 1.0).collect();
            let analysis = RelevanceAnalysis::new(&numbers(&case["score"]), &truth);
            let close = |found: Option<f64>, name: &str| {
                assert!((found.unwrap() - case[name].as_f64().unwrap()).abs() < 1e-8, "{name}: {found:?}");
            };
            close(analysis.auc, "roc_auc_f64");
            close(analysis.average_precision, "average_precision_f64");
        }
    }

    #[test]
    fn means_and_noise_are_counted_by_truth() {
        let analysis = RelevanceAnalysis::new(&[1.0, 0.5, 0.25, 0.25], &[true, true, false, false]);
        assert_eq!((analysis.mean_relevant, analysis.mean_irrelevant), (Some(0.75), Some(0.25)));
        assert_eq!((analysis.noise_ratio, analysis.auc), (0.5, Some(1.0)));
    }

    #[test]
    fn what_cannot_be_measured_is_none() {
        let analysis = RelevanceAnalysis::new(&[0.3], &[false]);
        assert_eq!((analysis.auc, analysis.average_precision, analysis.mean_relevant), (None, None, None));
        assert_eq!(RelevanceAnalysis::new(&[], &[]).noise_ratio, 0.0);
    }
}
