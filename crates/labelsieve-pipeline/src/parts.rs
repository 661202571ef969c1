//! What the parts of a run say beyond their rows, for `merge` to know what only the whole knows.

use serde::{Deserialize, Serialize};

/// What a part of `clean` says beyond its rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CleanDetail {
    /// Classes of the whole run.
    pub n_classes: usize,
    /// The classes of the part by ascending position; their rows follow each other in this order.
    pub classes: Vec<ClassDetail>,
    /// Decisions about candidates of the part, where decisions were given.
    pub decisions: Option<DecidedDetail>,
}

/// What a part of `clean` says of one of its classes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassDetail {
    /// Where the class stands among all of the run.
    pub position: usize,
    /// Its name.
    pub name: String,
    /// Its rows in the part, clean examples and candidates.
    pub n_rows: usize,
    /// Candidates that were scored.
    pub n_candidates: usize,
    /// The sum of their relevance.
    pub sum_relevance: f64,
    /// What the method chose for the class and why, where it chooses.
    pub choice: Option<String>,
}

/// How many candidates of a part were decided about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecidedDetail {
    /// Accepted ones.
    pub n_accept: usize,
    /// Rejected ones.
    pub n_reject: usize,
    /// Those that nobody could decide.
    pub n_unsure: usize,
}

/// What a part of `match` says beyond its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchDetail {
    /// Rows that were searched.
    pub n_rows: u64,
    /// Rows that could not be read.
    pub n_malformed: u64,
    /// Files that could not be read to their end.
    pub n_damaged_files: usize,
    /// Candidates that are copies of guarded examples.
    pub n_leaks: u64,
}
