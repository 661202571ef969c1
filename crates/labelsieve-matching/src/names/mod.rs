//! Finding class names in texts.
//!
//! [`ClassList`] holds the names, [`MatchRule`] defines when a text contains one, [`Matcher`] finds them all in one pass and
//! [`CandidateStatistics`] counts the results. Before they are compared, names and texts become sequences of `words`: `html`
//! removes tags, `folding` unifies case and forms, `plural` makes singular and plural forms.

mod class_list;
mod error;
mod folding;
mod html;
mod matcher;
mod plural;
mod rule;
mod statistics;
mod words;

pub use class_list::{ClassEntry, ClassList};
pub use error::NamesError;
pub use matcher::{ClassMatch, ComparedMatch, Matcher, NameWarning, Searcher};
pub use rule::MatchRule;
pub use statistics::{CandidateStatistics, ClassCount};
pub use words::TextEncoding;
