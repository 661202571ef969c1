//! The spelling of decisions in files.

use labelsieve::Decision;

/// The word for a decision that was withdrawn.
pub const UNDECIDED: &str = "undecided";

/// The word in files and answers: `accept`, `reject`, `unsure` or `undecided`.
pub fn decision_word(decision: Option<Decision>) -> &'static str {
    decision.map_or(UNDECIDED, Decision::name)
}

/// The number in arrays: 0 undecided, 1 accept, 2 reject, 3 unsure.
pub fn decision_code(decision: Option<Decision>) -> u8 {
    match decision {
        None => 0,
        Some(Decision::Accept) => 1,
        Some(Decision::Reject) => 2,
        Some(Decision::Unsure) => 3,
    }
}

/// Parses the word of a file. `None` for an unknown word; `Some(None)` for a withdrawn decision.
pub(super) fn parse(word: &str) -> Option<Option<Decision>> {
    match word.trim().to_ascii_lowercase().as_str() {
        "" | UNDECIDED => Some(None),
        word => word.parse().ok().map(Some),
    }
}
