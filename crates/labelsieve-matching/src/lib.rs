//! From class names to candidates: which examples' texts contain a name of which class.
//!
//! [`names`] holds the classes and finds their names in a text, all in one pass; [`text`] reads texts from the files that people have;
//! [`job`] puts both together, writes candidates and lists photos to download; [`LeakGuard`] keeps test photos out of them. The design,
//! from the naive algorithm up, is in `docs/matching.md`.

mod candidates_file;
pub mod convert_classes;
mod download_list;
pub mod job;
mod leak_guard;
pub mod names;
pub mod text;

pub use candidates_file::{CandidateRow, CandidateTable, CandidateWriter, LeakedExample, read_candidates};
pub use download_list::{DownloadListWriter, DownloadRow};
pub use leak_guard::{Leak, LeakGuard, LeakKind};
pub use names::{
    CandidateStatistics, ClassCount, ClassEntry, ClassList, ComparedClass, FoundClass, MatchRule, Matcher,
    NameWarning, NamesError, Searcher, TextEncoding,
};
