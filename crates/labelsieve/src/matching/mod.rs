//! From class names to candidates: which examples' texts contain a name of which class.
//!
//! [`ClassList`] holds the names, [`MatchRule`] says when a text contains one, [`Matcher`] finds them all in one pass.
//! [`CandidateStatistics`] draws the sizes of the result and [`LeakGuard`] keeps test photos out of it. The design,
//! from the naive algorithm up, is in `docs/matching.md`.

mod class_list;
mod folding;
mod html;
mod leak_guard;
mod matcher;
mod plural;
mod rule;
mod statistics;
mod words;

pub use class_list::{ClassEntry, ClassList};
pub use leak_guard::{Leak, LeakGuard, LeakKind};
pub use matcher::{ComparedClass, FoundClass, Matcher, NameWarning, Searcher};
pub use rule::MatchRule;
pub use statistics::{CandidateStatistics, ClassCount, SizeGroup};
pub use words::TextEncoding;
