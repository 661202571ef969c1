//! From class names to candidates: which examples' texts contain a name of which class.
//!
//! - [`names`]: the classes, and the automaton that finds all their names in a text in one pass
//! - [`text`]: reading texts from CSV, JSON Lines, Parquet and other files, in parallel
//! - [`job`]: the stage itself, which writes candidates and a list of photos to download
//! - [`LeakGuard`]: detecting copies of clean and test examples among the candidates
//!
//! The design, from the naive algorithm up, is in `docs/matching.md`.

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
    CandidateStatistics, ClassCount, ClassEntry, ClassList, ClassMatch, ComparedMatch, MatchRule, Matcher,
    NameWarning, NamesError, Searcher, TextEncoding,
};
