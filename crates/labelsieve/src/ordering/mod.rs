//! The order in which to review candidates.
//!
//! Confirming the top of the ranking adds little information; `docs/review-measured.md` compares the orders. All of them are pure
//! functions of the class, the decisions and the relevance so far.

mod coverage;
mod near_duplicates;

use std::fmt;

use labelsieve_numerics::random::{Stream, row_key};
use serde::{Deserialize, Serialize};

pub use near_duplicates::{NEAR_DUPLICATES, near_duplicates};

use self::coverage::Coverage;
use crate::error::{Error, Result};
use crate::model::ClassProblem;

/// An order in which to show the undecided candidates of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum LookOrder {
    /// Those that represent most of the pool: the recommended order
    Covering,
    /// The most relevant first
    MostRelevant,
    /// Those nearest to the median relevance first
    NearMedian,
    /// In random order
    Random,
    /// Evenly over the ranking by relevance
    Evenly,
}

impl LookOrder {
    /// Every order.
    pub const ALL: [LookOrder; 5] = [
        LookOrder::Covering,
        LookOrder::MostRelevant,
        LookOrder::NearMedian,
        LookOrder::Random,
        LookOrder::Evenly,
    ];

    /// The word in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            LookOrder::Covering => "covering",
            LookOrder::MostRelevant => "most-relevant",
            LookOrder::NearMedian => "near-median",
            LookOrder::Random => "random",
            LookOrder::Evenly => "evenly",
        }
    }

    /// The first `count` undecided rows of the class in this order, one of each group of near-duplicates. Only the random order
    /// uses `stream`.
    pub fn first(self, look: &Look, count: usize, stream: Stream) -> Result<Vec<u32>> {
        look.check()?;
        let open = look.open();
        let by_relevance = |open: Vec<u32>| {
            let mut ranked = open;
            let relevance = |row: u32| look.relevance[row as usize];
            ranked.sort_by(|&a, &b| relevance(b).total_cmp(&relevance(a)).then(a.cmp(&b)));
            ranked
        };
        let mut rows = match self {
            LookOrder::Covering => return Ok(Coverage::of(look.problem).choose(open, count)),
            LookOrder::MostRelevant => by_relevance(open),
            LookOrder::NearMedian => from_the_middle(&by_relevance(open)),
            LookOrder::Random => {
                let features = look.problem.noisy.features();
                let mut drawn = open;
                drawn.sort_by_cached_key(|&row| (stream.bits(row_key(features.row(row as usize))), row));
                drawn
            }
            LookOrder::Evenly => evenly(&by_relevance(open), count),
        };
        rows.truncate(count);
        Ok(rows)
    }
}

impl fmt::Display for LookOrder {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The inputs of an order.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    /// The class, with its decisions.
    pub problem: &'a ClassProblem<'a>,
    /// The first row of each candidate's near-duplicates, by [`near_duplicates`].
    pub groups: &'a [u32],
    /// The relevance of each candidate so far.
    pub relevance: &'a [f32],
}

impl Look<'_> {
    fn check(&self) -> Result<()> {
        let expected = self.problem.noisy.features().len();
        let lengths = [("groups of near-duplicates", self.groups.len()), ("relevance", self.relevance.len())];
        match lengths.into_iter().find(|(_, found)| *found != expected) {
            Some((what, found)) => Err(Error::Length { what, expected, found }),
            None => Ok(()),
        }
    }

    /// Candidates that can be shown: undecided ones that are the first of their near-duplicates.
    fn open(&self) -> Vec<u32> {
        let is_open =
            |&row: &u32| self.groups[row as usize] == row && self.problem.decision(row as usize).is_none();
        (0..self.groups.len() as u32).filter(is_open).collect()
    }
}

/// The candidates to review next: the first `count` undecided ones in the order that measured best, [`LookOrder::Covering`].
pub fn what_next(
    problem: &ClassProblem,
    groups: &[u32],
    relevance: &[f32],
    count: usize,
) -> Result<Vec<u32>> {
    LookOrder::Covering.first(&Look { problem, groups, relevance }, count, Stream::new(0))
}

/// The middle of the ranking first, then its neighbours on both sides in turn.
fn from_the_middle(ranked: &[u32]) -> Vec<u32> {
    let middle = ranked.len() / 2;
    let (above, below) = ranked.split_at(middle);
    let mut rows = Vec::with_capacity(ranked.len());
    for step in 0..below.len().max(above.len()) {
        rows.extend(below.get(step));
        rows.extend(above.iter().rev().nth(step));
    }
    rows
}

/// The middles of `count` equal parts of the ranking.
fn evenly(ranked: &[u32], count: usize) -> Vec<u32> {
    let count = count.min(ranked.len());
    (0..count).map(|part| ranked[(2 * part + 1) * ranked.len() / (2 * count)]).collect()
}

#[cfg(test)]
mod tests;
