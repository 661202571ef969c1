//! What the parts of a run say beyond their rows, for `merge` to know what only the whole knows.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::Part;
use crate::work::{Error, Result};

/// A part that was written, or found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartDone {
    /// The digest of the run.
    pub run: String,
    /// Which part it is, from 0.
    pub index: usize,
    /// How many there are.
    pub of: usize,
    /// Whether it was there already, complete, and nothing was done.
    pub was_complete: bool,
}

impl PartDone {
    /// The answer for a part; `was_complete`: an earlier run wrote it.
    pub fn new(part: &Part, was_complete: bool) -> PartDone {
        PartDone { run: part.run.clone(), index: part.index, of: part.of, was_complete }
    }
}

/// What is under the name of a part to make: the same part complete, so that nothing is left to do, or nothing. Anything else
/// is an error: it may be somebody's.
pub fn find_complete(part: &Part, output: &Path) -> Result<Option<Part>> {
    if !output.exists() {
        return Ok(None);
    }
    let refused = |why: &str| in_the_way(output, why);
    let found = match Part::of_file(output) {
        Ok(Some(found)) => found,
        Ok(None) => return Err(refused("is not a part of a run")),
        Err(error) => return Err(refused(&format!("cannot be read as a part: {error}"))),
    };
    if found.command != part.command || found.run != part.run {
        return Err(refused("is a part of another run, made with other files or settings"));
    }
    if !found.is_same_as(part) {
        let index = found.index;
        let of = found.of;
        return Err(refused(&format!("is part {index} of {of}, not part {} of {}", part.index, part.of)));
    }
    Ok(Some(found))
}

/// The error for a file under the name of a part that is not that part.
pub fn in_the_way(output: &Path, why: &str) -> Error {
    Error::input(
        format!("`{}` exists and {why}", output.display()),
        "move it elsewhere, or choose another name for this part",
    )
}

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
