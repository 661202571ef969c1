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
pub(super) enum Answer {
    Decided(Decision),
    /// Nothing was decided.
    Nothing,
    /// An earlier decision no longer holds.
    Withdrawn,
    Unknown,
}

impl Answer {
    pub(super) fn decision(self) -> Option<Decision> {
        match self {
            Answer::Decided(decision) => Some(decision),
            Answer::Nothing | Answer::Withdrawn | Answer::Unknown => None,
        }
    }
}

impl DecisionWords {
    pub(super) fn meaning(&self, word: &str) -> Answer {
        let word = word.trim().to_lowercase();
        let is_one_of = |given: &[String], known: &[&str]| {
            given.iter().any(|other| other.trim().to_lowercase() == word) || known.contains(&word.as_str())
        };
        match () {
            () if is_one_of(&self.accept, &[]) => Answer::Decided(Decision::Accept),
            () if is_one_of(&self.reject, &[]) => Answer::Decided(Decision::Reject),
            () if is_one_of(&self.unsure, &["unsure"]) => Answer::Decided(Decision::Unsure),
            () if is_one_of(&[], &["accept", "accepted"]) => Answer::Decided(Decision::Accept),
            () if is_one_of(&[], &["reject", "rejected"]) => Answer::Decided(Decision::Reject),
            () if word == UNDECIDED => Answer::Withdrawn,
            () if word.is_empty() => Answer::Nothing,
            () => Answer::Unknown,
        }
    }

    /// What several tags say, of which most mean something else. Tags that contradict each other say nothing.
    pub(super) fn of_tags<'a>(&self, tags: impl Iterator<Item = &'a str>) -> Answer {
        let mut found = Answer::Nothing;
        for tag in tags {
            match (self.meaning(tag), found) {
                (Answer::Decided(new), Answer::Decided(old)) if new != old => return Answer::Unknown,
                (Answer::Decided(new), _) => found = Answer::Decided(new),
                _ => (),
            }
        }
        found
    }
}
