//! Class names, and texts that contain them: [`ClassList`] holds the names, [`MatchRule`] says when a text contains one, [`Matcher`]
//! finds them all in one pass, [`CandidateStatistics`] draws the sizes of the result.

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
pub use matcher::{ComparedClass, FoundClass, Matcher, NameWarning, Searcher};
pub use rule::MatchRule;
pub use statistics::{CandidateStatistics, ClassCount};
pub use words::TextEncoding;
