//! How many candidates were decided about.

use labelsieve::Decision;
use serde::Serialize;

/// How many candidates were decided about, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DecisionCounts {
    /// Accepted: they count as clean examples.
    pub n_accept: usize,
    /// Rejected: they belong to another class.
    pub n_reject: usize,
    /// Looked at without a result.
    pub n_unsure: usize,
    /// Decisions about examples that are no candidates of the class, which change nothing.
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

    /// Candidates by what they are called after the decision.
    pub fn named(&self) -> [(&'static str, usize); 3] {
        [("accepted", self.n_accept), ("rejected", self.n_reject), ("unsure", self.n_unsure)]
    }

    /// Candidates that were decided about in any way.
    pub fn total(&self) -> usize {
        self.n_accept + self.n_reject + self.n_unsure
    }
}
