//! Decisions joined with the candidates that they are about.

use std::collections::BTreeMap;

use labelsieve::Decision;

use super::DecisionTable;
use crate::RelevanceTable;

/// The current decisions, and which of them have matched a candidate.
#[derive(Clone, Debug)]
pub struct DecisionJoin<'a> {
    /// By class and id: the decision, and whether it has matched a candidate.
    latest: BTreeMap<&'a str, BTreeMap<&'a str, (Decision, bool)>>,
}

impl<'a> DecisionJoin<'a> {
    /// The last decision about each candidate.
    pub fn new(table: &'a DecisionTable) -> DecisionJoin<'a> {
        let mut latest: BTreeMap<&str, BTreeMap<&str, (Decision, bool)>> = BTreeMap::new();
        for ((id, class), decision) in table.latest() {
            latest.entry(class).or_default().insert(id, (decision, false));
        }
        DecisionJoin { latest }
    }

    /// The decision about a candidate. Marks the decision as matched.
    pub fn decision(&mut self, id: &str, class: &str) -> Option<Decision> {
        let (decision, is_matched) = self.latest.get_mut(class)?.get_mut(id)?;
        *is_matched = true;
        Some(*decision)
    }

    /// One entry for each row of a relevance file; clean examples are not candidates and have none.
    pub fn of_relevance(&mut self, relevance: &RelevanceTable) -> Vec<Option<Decision>> {
        let rows = relevance.ids.iter().enumerate();
        rows.map(
            |(row, id)| {
                if relevance.is_clean[row] { None } else { self.decision(id, relevance.classes.get(row)) }
            },
        )
        .collect()
    }

    /// Whether the file holds no decisions at all.
    pub fn is_empty(&self) -> bool {
        self.latest.is_empty()
    }

    /// Whether any decision has matched a candidate.
    pub fn has_matches(&self) -> bool {
        self.latest.values().flat_map(BTreeMap::values).any(|(_, is_matched)| *is_matched)
    }

    /// The decisions without a candidate, as id and class, in order of classes and ids.
    pub fn unmatched(&self) -> Vec<(&'a str, &'a str)> {
        let mut unmatched = Vec::new();
        for (class, ids) in &self.latest {
            let lost = ids.iter().filter(|(_, (_, is_matched))| !is_matched);
            unmatched.extend(lost.map(|(id, _)| (*id, *class)));
        }
        unmatched
    }
}
