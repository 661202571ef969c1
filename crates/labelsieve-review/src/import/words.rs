//! The words that people answer with.

use labelsieve::Decision;
use labelsieve_files::UNDECIDED;

/// Which words mean what, in any case. Besides those given here, `accept`, `accepted`, `reject`, `rejected` and `unsure` are
/// understood.
#[derive(Clone, Debug, Default)]
pub struct DecisionWords {
    /// Words that accept.
    pub accept: Vec<String>,
    /// Words that reject.
    pub reject: Vec<String>,
    /// Words for "cannot tell".
    pub unsure: Vec<String>,
}

/// What a word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Decided(Decision),
    /// Nothing was decided.
    Nothing,
    /// An earlier decision no longer holds.
    Withdrawn,
    Unknown,
}

impl Said {
    pub(super) fn decision(self) -> Option<Decision> {
        match self {
            Said::Decided(decision) => Some(decision),
            Said::Nothing | Said::Withdrawn | Said::Unknown => None,
        }
    }
}

impl DecisionWords {
    pub(super) fn meaning(&self, word: &str) -> Said {
        let word = word.trim().to_lowercase();
        let is_one_of = |given: &[String], known: &[&str]| {
            given.iter().any(|other| other.trim().to_lowercase() == word) || known.contains(&word.as_str())
        };
        match () {
            () if is_one_of(&self.accept, &[]) => Said::Decided(Decision::Accept),
            () if is_one_of(&self.reject, &[]) => Said::Decided(Decision::Reject),
            () if is_one_of(&self.unsure, &["unsure"]) => Said::Decided(Decision::Unsure),
            () if is_one_of(&[], &["accept", "accepted"]) => Said::Decided(Decision::Accept),
            () if is_one_of(&[], &["reject", "rejected"]) => Said::Decided(Decision::Reject),
            () if word == UNDECIDED => Said::Withdrawn,
            () if word.is_empty() => Said::Nothing,
            () => Said::Unknown,
        }
    }

    /// What several tags say, of which most mean something else. Tags that contradict each other say nothing.
    pub(super) fn of_tags<'a>(&self, tags: impl Iterator<Item = &'a str>) -> Said {
        let mut found = Said::Nothing;
        for tag in tags {
            match (self.meaning(tag), found) {
                (Said::Decided(new), Said::Decided(old)) if new != old => return Said::Unknown,
                (Said::Decided(new), _) => found = Said::Decided(new),
                _ => (),
            }
        }
        found
    }
}
