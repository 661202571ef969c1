//! What people decided, joined with the candidates that it is about.

use std::collections::{HashMap, HashSet};
use std::hash::Hasher;
use std::path::{Path, PathBuf};

use labelsieve::Decision;
use labelsieve_data::{DecisionJoin, DecisionTable, RelevanceTable, counted, read_decisions};
use labelsieve_numerics::Fnv1a;

use super::left_out::{counts, listed, named};
use super::pools::Pools;
use crate::error::{Error, Result};
use crate::monitor::Monitor;
use crate::near_name::nearest;
use crate::outputs::beside;

pub use labelsieve_data::DecisionCounts;

/// Tells how many candidates were decided about.
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

    /// Whether nothing is decided: no rows, or all withdrawn.
    pub fn is_empty(&self) -> bool {
        self.table.latest().is_empty()
    }

    /// All files that are read.
    pub fn files(path: &Path) -> [PathBuf; 2] {
        [path.to_path_buf(), beside(path, ".log")]
    }

    /// The same text for the same decisions, whatever file they are in and in whatever order they were made.
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

    /// Per class one entry for each candidate.
    pub fn of_pools(
        &self,
        pools: &Pools,
        monitor: &dyn Monitor,
    ) -> Result<(Vec<Vec<Option<Decision>>>, DecisionCounts)> {
        let mut join = DecisionJoin::new(&self.table);
        let decided: Vec<Vec<Option<Decision>>> = pools
            .classes
            .iter()
            .map(|class| {
                let ids = class.noisy.iter().map(|&row| pools.noisy.ids.get(row));
                ids.map(|id| join.decision(&id, &class.name)).collect()
            })
            .collect();
        let classes: HashMap<&str, usize> =
            pools.classes.iter().enumerate().map(|(c, class)| (class.name.as_str(), c)).collect();
        let known = Known {
            classes: pools.classes.iter().map(|class| class.name.as_str()).collect(),
            is_clean: &|id, class| {
                let rows = classes.get(class).map_or(&[][..], |&c| &pools.classes[c].clean);
                rows.iter().any(|&row| pools.clean.ids.get(row) == id)
            },
            near_id: &|id, class| {
                let rows = classes.get(class).map_or(&[][..], |&c| &pools.classes[c].noisy);
                let ids: Vec<_> = rows.iter().map(|&row| pools.noisy.ids.get(row)).collect();
                nearest(id, ids.iter().map(AsRef::as_ref)).map(str::to_owned)
            },
            is_ours: &|class| match classes.get(class) {
                Some(&c) => pools.scope.contains(c),
                None => pools.scope.tells_of_strays(),
            },
        };
        let n_unmatched = self.warn_of_unmatched(&join, &known, monitor)?;
        let counts = DecisionCounts::of(decided.iter().flatten().copied());
        Ok((decided, DecisionCounts { n_unmatched, ..counts }))
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
        let known = Known {
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

    /// Says which decisions are about nothing, and returns how many these are. A file of which nothing can be used is an
    /// error.
    fn warn_of_unmatched(
        &self,
        join: &DecisionJoin<'_>,
        known: &Known<'_>,
        monitor: &dyn Monitor,
    ) -> Result<usize> {
        let shown = self.table.path.display();
        if join.is_empty() {
            monitor.note(&format!("`{shown}` holds no decisions"));
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
                    "no decision in `{shown}` is about a candidate: e.g. {}",
                    describe(strange.first().or(of_unknown.first()).unwrap_or(&("", "")))
                ),
                match class {
                    Some(meant) => format!("did you mean the class `{meant}`? ids and classes must match"),
                    None => "`id` and `class` must be those of the candidates".to_owned(),
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
        ignoring(strange.len(), "examples that are no candidates of their class", names);
        let names = listed(clean.iter().map(|(id, class)| format!("`{id}` of `{class}`")), clean.len());
        ignoring(clean.len(), "clean examples", names);
        Ok(lost.len())
    }
}

/// The decisions that hold for the rows of a relevance file: those in a file of their own if one is given, else those in its
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
            "`{}` was made with decisions about {} that no longer hold in `{}`",
            relevance.path.display(),
            counted(n_withdrawn, "candidate"),
            decisions.table.path.display()
        ));
        monitor.hint("score again with `labelsieve clean --decisions`");
    }
    Ok(Some((decided, counts)))
}

/// What is known about the examples that decisions may be about.
struct Known<'a> {
    classes: Vec<&'a str>,
    is_clean: &'a dyn Fn(&str, &str) -> bool,
    near_id: &'a dyn Fn(&str, &str) -> Option<String>,
    /// Whether decisions about this class are looked at here, and not in another part of the run.
    is_ours: &'a dyn Fn(&str) -> bool,
}

#[cfg(test)]
#[path = "decisions_tests.rs"]
mod tests;
