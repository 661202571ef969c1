//! Decisions of people about candidates: a table of rows in the order in which they were made, and the log of a review in
//! progress.
//!
//! [`DecisionLog`] appends rows so that they survive a kill (its bytes are in `records`); [`read_decisions`] reads table and
//! log; [`DecisionJoin`] matches decisions with candidates.

mod counts;
mod join;
mod log;
mod records;
mod spelling;
mod table_file;

use std::collections::BTreeMap;
use std::path::PathBuf;

use labelsieve::Decision;
use serde::{Deserialize, Serialize};

pub use counts::DecisionCounts;
pub use join::DecisionJoin;
pub use log::DecisionLog;
pub use spelling::{UNDECIDED, decision_code, decision_word};
pub use table_file::read_decisions;

/// One decision about one candidate of one class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionRow {
    /// The candidate.
    pub id: String,
    /// The class in whose pool it is.
    pub class: String,
    /// The decision; `None` when an earlier one was withdrawn, which files spell `undecided`.
    pub decision: Option<Decision>,
    /// The reviewer; may be empty.
    pub by: String,
    /// The time: RFC 3339, UTC, with microseconds; may be empty.
    pub at: String,
}

/// All decisions of a file in the order in which they were made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionTable {
    /// The file.
    pub path: PathBuf,
    /// The decisions, earliest first.
    pub rows: Vec<DecisionRow>,
}

impl DecisionTable {
    /// The current decision about each candidate (id, class): that of its last row. Withdrawn decisions are left out.
    pub fn latest(&self) -> BTreeMap<(&str, &str), Decision> {
        let mut latest = BTreeMap::new();
        for row in &self.rows {
            let key = (row.id.as_str(), row.class.as_str());
            match row.decision {
                Some(decision) => latest.insert(key, decision),
                None => latest.remove(&key),
            };
        }
        latest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_row_of_a_candidate_counts_and_a_withdrawn_one_does_not() {
        let row = |id: &str, class: &str, decision| {
            let [id, class] = [id, class].map(str::to_owned);
            DecisionRow { id, class, decision, by: String::new(), at: String::new() }
        };
        let rows = vec![
            row("a", "owl", Some(Decision::Accept)),
            row("a", "cat", Some(Decision::Reject)),
            row("b", "owl", Some(Decision::Unsure)),
            row("a", "owl", Some(Decision::Reject)),
            row("b", "owl", None),
        ];
        let table = DecisionTable { path: "d.csv".into(), rows };
        let expected = [(("a", "cat"), Decision::Reject), (("a", "owl"), Decision::Reject)];
        assert_eq!(table.latest().into_iter().collect::<Vec<_>>(), expected);
    }
}
