//! The descriptions of parts of a run, from which `merge` computes facts about the whole.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::Part;
use crate::work::{Error, Result};

/// A complete part, as a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartDone {
    /// The digest of the run.
    pub run: String,
    /// The index of the part, from 0.
    pub index: usize,
    /// The number of parts.
    pub of: usize,
    /// Whether an earlier run had completed it, so that nothing was done.
    pub was_complete: bool,
}

impl PartDone {
    /// The result for a part; `was_complete`: an earlier run wrote it.
    pub fn new(part: &Part, was_complete: bool) -> PartDone {
        PartDone { run: part.run.clone(), index: part.index, of: part.of, was_complete }
    }
}

/// The existing file of a part to make: the same part, complete, so that nothing is left to do, or `None`. Any other file is an
/// error, since it must not be overwritten.
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
        return Err(refused("is a part of another run, with different files or settings"));
    }
    if !found.is_same_as(part) {
        let index = found.index;
        let of = found.of;
        return Err(refused(&format!("is part {index} of {of}, not part {} of {}", part.index, part.of)));
    }
    Ok(Some(found))
}

/// The error for another file in the place of a part.
pub fn in_the_way(output: &Path, why: &str) -> Error {
    Error::input(
        format!("`{}` exists and {why}", output.display()),
        "move it elsewhere, or choose another name for this part",
    )
}

/// The description of a part of the relevance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CleanDetail {
    /// The number of classes of the whole run.
    pub n_classes: usize,
    /// The classes of the part by ascending position; their rows follow each other in this order.
    pub classes: Vec<ClassDetail>,
    /// Decisions about candidates of the part, where decisions were given.
    pub decisions: Option<DecidedDetail>,
}

/// The description of one class of a part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassDetail {
    /// The position of the class among all classes of the run.
    pub position: usize,
    /// Its name.
    pub name: String,
    /// The number of its rows in the part, clean examples and candidates.
    pub n_rows: usize,
    /// The number of scored candidates.
    pub n_candidates: usize,
    /// The sum of their relevance.
    pub sum_relevance: f64,
    /// The method that was chosen for the class and the reason, if the method of the run chooses one.
    pub choice: Option<String>,
}

/// The numbers of candidates of a part with each decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecidedDetail {
    /// Accepted ones.
    pub n_accept: usize,
    /// Rejected ones.
    pub n_reject: usize,
    /// Those without a clear decision.
    pub n_unsure: usize,
}

/// The description of a part of the candidates.
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
