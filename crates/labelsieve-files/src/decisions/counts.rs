//! Counts of decisions.

use labelsieve::Decision;
use serde::Serialize;

/// The number of candidates with each decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DecisionCounts {
    /// Accepted: used as clean examples.
    pub n_accept: usize,
    /// Rejected: they belong to another class.
    pub n_reject: usize,
    /// Reviewed without a result.
    pub n_unsure: usize,
    /// Decisions about examples that are not candidates of the class, which have no effect.
    pub n_unmatched: usize,
}

impl DecisionCounts {
    /// Counts decisions about candidates.
    pub fn of(decisions: impl IntoIterator<Item = Option<Decision>>) -> DecisionCounts {
        let mut counts = DecisionCounts::default();
        for decision in decisions.into_iter().flatten() {
            *match decision {
                Decision::Accept => &mut counts.n_accept,
                Decision::Reject => &mut counts.n_reject,
                Decision::Unsure => &mut counts.n_unsure,
            } += 1;
        }
        counts
    }

    /// The counts with their names.
    pub fn named(&self) -> [(&'static str, usize); 3] {
        [("accepted", self.n_accept), ("rejected", self.n_reject), ("unsure", self.n_unsure)]
    }

    /// The number of candidates with a decision.
    pub fn total(&self) -> usize {
        self.n_accept + self.n_reject + self.n_unsure
    }
}
