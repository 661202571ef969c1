//! Decisions matched with the candidates that they are about.

use std::collections::HashSet;
use std::hash::Hasher;
use std::path::{Path, PathBuf};

use labelsieve::Decision;
use labelsieve_numerics::Fnv1a;

pub use crate::DecisionCounts;

use super::left_out::{counts, listed, named};
use crate::work::near_name::nearest;
use crate::work::outputs::beside;
use crate::work::{Error, Monitor, Result, command, option, words};
use crate::{DecisionJoin, DecisionTable, RelevanceTable, counted, read_decisions};

/// Reports the number of decisions.
pub fn say(counts: &DecisionCounts, monitor: &dyn Monitor) {
    let DecisionCounts { n_accept, n_reject, n_unsure, .. } = counts;
    monitor.note(&format!("decisions: {n_accept} accepted, {n_reject} rejected, {n_unsure} unsure"));
}

/// A file of decisions.
pub struct Decisions {
    table: DecisionTable,
}

impl Decisions {
    /// Reads the file, and the log of a review beside it.
    pub fn open(path: &Path) -> Result<Decisions> {
        Ok(Decisions { table: read_decisions(path)? })
    }

    /// Whether there is no current decision: no rows, or all withdrawn.
    pub fn is_empty(&self) -> bool {
        self.table.latest().is_empty()
    }

    /// The decisions as they were read.
    pub fn table(&self) -> &DecisionTable {
        &self.table
    }

    /// The files that [`Decisions::open`] reads.
    pub fn files(path: &Path) -> [PathBuf; 2] {
        [path.to_path_buf(), beside(path, ".log")]
    }

    /// A digest of the current decisions, independent of the file and of the order in which they were made.
    pub fn digest(&self) -> String {
        let mut hash = Fnv1a::default();
        for ((id, class), decision) in self.table.latest() {
            for text in [id, class, decision.name()] {
                hash.write(&(text.len() as u64).to_le_bytes());
                hash.write(text.as_bytes());
            }
        }
        format!("{:016x}", hash.finish())
    }

    /// One entry for each row of a relevance file; clean examples have none.
    pub fn of_relevance(
        &self,
        relevance: &RelevanceTable,
        monitor: &dyn Monitor,
    ) -> Result<(Vec<Option<Decision>>, DecisionCounts)> {
        let mut join = DecisionJoin::new(&self.table);
        let decided = join.of_relevance(relevance);
        let rows = (0..relevance.ids.len()).filter(|&row| relevance.is_clean[row]);
        let clean: HashSet<(&str, &str)> =
            rows.map(|row| (&relevance.ids[row], relevance.classes.get(row))).collect();
        let known = KnownExamples {
            classes: relevance.classes.names.iter().map(String::as_str).collect(),
            is_clean: &|id, class| clean.contains(&(id, class)),
            near_id: &|id, class| {
                let rows = (0..relevance.ids.len()).filter(|&i| relevance.classes.get(i) == class);
                nearest(id, rows.map(|i| &relevance.ids[i])).map(str::to_owned)
            },
            is_ours: &|_| true,
        };
        let n_unmatched = self.warn_of_unmatched(&join, &known, monitor)?;
        let counts = DecisionCounts::of(decided.iter().copied());
        Ok((decided, DecisionCounts { n_unmatched, ..counts }))
    }

    /// Warns about decisions that match no candidate, and returns their number. A file in which nothing matches is an error.
    pub fn warn_of_unmatched(
        &self,
        join: &DecisionJoin<'_>,
        known: &KnownExamples<'_>,
        monitor: &dyn Monitor,
    ) -> Result<usize> {
        let shown = self.table.path.display();
        if join.is_empty() {
            monitor.note(&format!("`{shown}` contains no decisions"));
            return Ok(0);
        }
        let classes: HashSet<&str> = known.classes.iter().copied().collect();
        let mut lost = join.unmatched();
        let n_lost = lost.len();
        lost.retain(|(_, class)| (known.is_ours)(class));
        let is_whole = lost.len() == n_lost;
        let (of_known, of_unknown): (Vec<_>, Vec<_>) =
            lost.iter().copied().partition(|(_, class)| classes.contains(class));
        let (clean, strange): (Vec<_>, Vec<_>) =
            of_known.into_iter().partition(|(id, class)| (known.is_clean)(id, class));
        let describe = |(id, class): &(&str, &str)| match (known.near_id)(id, class) {
            Some(meant) => format!("`{id}` of `{class}` (did you mean `{meant}`?)"),
            None => format!("`{id}` of `{class}`"),
        };
        if is_whole && !join.has_matches() && clean.is_empty() {
            let class =
                of_unknown.first().and_then(|(_, class)| nearest(class, known.classes.iter().copied()));
            return Err(Error::input(
                format!(
                    "no decision in `{shown}` matches a candidate, e.g. {}",
                    describe(strange.first().or(of_unknown.first()).unwrap_or(&("", "")))
                ),
                match class {
                    Some(meant) => format!("did you mean the class `{meant}`? ids and classes must match"),
                    None => "`id` and `class` must match those of the candidates".to_owned(),
                },
            ));
        }
        let ignoring = |n: usize, what: &str, names: String| {
            if n > 0 {
                let decisions = counted(n, "decision");
                monitor.warning(&format!("ignoring {decisions} in `{shown}` about {what}: {names}"));
            }
        };
        let names = named(&counts(of_unknown.iter().map(|(_, class)| *class)), &known.classes);
        ignoring(of_unknown.len(), "unknown classes", names);
        let names = listed(strange.iter().map(describe), strange.len());
        ignoring(strange.len(), "examples that are not candidates of their class", names);
        let names = listed(clean.iter().map(|(id, class)| format!("`{id}` of `{class}`")), clean.len());
        ignoring(clean.len(), "clean examples", names);
        Ok(lost.len())
    }
}

/// The current decisions for the rows of a relevance file: from the file of decisions if one is given, else from its own
/// column, if it has one.
pub fn in_force(
    decisions: Option<&Decisions>,
    relevance: &RelevanceTable,
    monitor: &dyn Monitor,
) -> Result<Option<(Vec<Option<Decision>>, DecisionCounts)>> {
    let Some(decisions) = decisions else {
        let decided = relevance.decisions.clone();
        return Ok(decided.map(|decided| {
            let counts = DecisionCounts::of(decided.iter().copied());
            (decided, counts)
        }));
    };
    let (decided, counts) = decisions.of_relevance(relevance, monitor)?;
    let fixed = |decision: Option<Decision>| decision.and_then(Decision::relevance);
    let before = relevance.decisions.iter().flatten();
    let n_withdrawn =
        before.zip(&decided).filter(|(a, b)| fixed(**a).is_some() && fixed(**a) != fixed(**b)).count();
    if n_withdrawn > 0 {
        monitor.warning(&format!(
            "`{}` was made with decisions about {} that were withdrawn or changed in `{}`",
            relevance.path.display(),
            counted(n_withdrawn, "candidate"),
            decisions.table.path.display()
        ));
        monitor.hint(&words!["score again with ", command("score").with(option("decisions"))]);
    }
    Ok(Some((decided, counts)))
}

/// The examples that decisions may be about.
pub struct KnownExamples<'a> {
    /// The class names.
    pub classes: Vec<&'a str>,
    /// Whether an id is a clean example of a class.
    pub is_clean: &'a dyn Fn(&str, &str) -> bool,
    /// The candidate of a class with the most similar id.
    pub near_id: &'a dyn Fn(&str, &str) -> Option<String>,
    /// Whether this class belongs to this part of the run.
    pub is_ours: &'a dyn Fn(&str) -> bool,
}

#[cfg(test)]
#[path = "decisions_tests.rs"]
mod tests;
