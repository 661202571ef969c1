//! What people decided, joined with the candidates that it is about.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hasher;
use std::path::{Path, PathBuf};

use labelsieve::{Decision, Fnv1a};
use labelsieve_data::{DecisionTable, RelevanceTable, read_decisions};
use serde::Serialize;

use super::left_out::{counts, listed, named};
use super::pools::Pools;
use crate::error::{Error, Result};
use crate::monitor::Monitor;
use crate::near_name::nearest;
use crate::outputs::beside;

/// How many candidates were decided about, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DecisionCounts {
    /// Accepted: they count as clean examples.
    pub n_accept: usize,
    /// Rejected: they belong to another class.
    pub n_reject: usize,
    /// Looked at without a result.
    pub n_unsure: usize,
    /// Decisions about examples that are no candidates of the class, which change nothing.
    pub n_unmatched: usize,
}

impl DecisionCounts {
    /// Counts decisions about candidates.
    pub fn of(decisions: impl IntoIterator<Item = Option<Decision>>) -> DecisionCounts {
        let mut counts = DecisionCounts::default();
        for decision in decisions.into_iter().flatten() {
            match decision {
                Decision::Accept => counts.n_accept += 1,
                Decision::Reject => counts.n_reject += 1,
                Decision::Unsure => counts.n_unsure += 1,
            }
        }
        counts
    }

    /// For people.
    pub fn say(&self, monitor: &dyn Monitor) {
        let DecisionCounts { n_accept, n_reject, n_unsure, .. } = self;
        monitor.note(&format!("decisions: {n_accept} accepted, {n_reject} rejected, {n_unsure} unsure"));
    }
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
        let mut join = Join::new(&self.table);
        let candidate = |class: &super::pools::ClassRows, row| (pools.noisy.ids.get(row), class.name.clone());
        let decided: Vec<Vec<Option<Decision>>> = pools
            .classes
            .iter()
            .map(|class| {
                let candidates = class.noisy.iter().map(|&row| candidate(class, row));
                candidates.map(|(id, class)| join.decision(&id, &class)).collect()
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
        };
        let n_unmatched = join.finish(&known, monitor)?;
        let counts = DecisionCounts::of(decided.iter().flatten().copied());
        Ok((decided, DecisionCounts { n_unmatched, ..counts }))
    }

    /// One entry for each row of a relevance file; clean examples have none.
    pub fn of_relevance(
        &self,
        relevance: &RelevanceTable,
        monitor: &dyn Monitor,
    ) -> Result<(Vec<Option<Decision>>, DecisionCounts)> {
        let mut join = Join::new(&self.table);
        let mut clean: HashSet<(&str, &str)> = HashSet::new();
        let mut decided = Vec::with_capacity(relevance.ids.len());
        for (i, id) in relevance.ids.iter().enumerate() {
            let class = relevance.classes.get(i);
            if relevance.is_clean[i] {
                clean.insert((id, class));
            }
            decided.push(if relevance.is_clean[i] { None } else { join.decision(id, class) });
        }
        let known = Known {
            classes: relevance.classes.names.iter().map(String::as_str).collect(),
            is_clean: &|id, class| clean.contains(&(id, class)),
            near_id: &|id, class| {
                let rows = (0..relevance.ids.len()).filter(|&i| relevance.classes.get(i) == class);
                nearest(id, rows.map(|i| &relevance.ids[i])).map(str::to_owned)
            },
        };
        let n_unmatched = join.finish(&known, monitor)?;
        let counts = DecisionCounts::of(decided.iter().copied());
        Ok((decided, DecisionCounts { n_unmatched, ..counts }))
    }
}

/// The decisions that hold for the rows of a relevance file: those in a file of their own if one is given, else those in its
/// column, if it has one.
pub fn in_force(
    path: Option<&Path>,
    relevance: &RelevanceTable,
    monitor: &dyn Monitor,
) -> Result<Option<(Vec<Option<Decision>>, DecisionCounts)>> {
    let Some(path) = path else {
        let decided = relevance.decisions.clone();
        return Ok(decided.map(|decided| {
            let counts = DecisionCounts::of(decided.iter().copied());
            (decided, counts)
        }));
    };
    let (decided, counts) = Decisions::open(path)?.of_relevance(relevance, monitor)?;
    let fixed = |decision: Option<Decision>| decision.and_then(Decision::relevance);
    let before = relevance.decisions.iter().flatten();
    let n_withdrawn =
        before.zip(&decided).filter(|(a, b)| fixed(**a).is_some() && fixed(**a) != fixed(**b)).count();
    if n_withdrawn > 0 {
        monitor.warning(&format!(
            "{n_withdrawn} candidates in `{}` were scored with decisions that no longer hold in `{}`",
            relevance.path.display(),
            path.display()
        ));
        monitor.hint("score again with `labelsieve clean --decisions`");
    }
    Ok(Some((decided, counts)))
}

/// Decisions on their way to candidates.
struct Join<'a> {
    path: &'a Path,
    /// By class and id: what was decided, and whether there is such a candidate.
    latest: BTreeMap<&'a str, BTreeMap<&'a str, (Decision, bool)>>,
}

/// What is known about the examples that decisions may be about.
struct Known<'a> {
    classes: Vec<&'a str>,
    is_clean: &'a dyn Fn(&str, &str) -> bool,
    near_id: &'a dyn Fn(&str, &str) -> Option<String>,
}

impl<'a> Join<'a> {
    fn new(table: &'a DecisionTable) -> Join<'a> {
        let mut latest: BTreeMap<&str, BTreeMap<&str, (Decision, bool)>> = BTreeMap::new();
        for ((id, class), decision) in table.latest() {
            latest.entry(class).or_default().insert(id, (decision, false));
        }
        Join { path: &table.path, latest }
    }

    fn decision(&mut self, id: &str, class: &str) -> Option<Decision> {
        let (decision, is_matched) = self.latest.get_mut(class)?.get_mut(id)?;
        *is_matched = true;
        Some(*decision)
    }

    /// Says which decisions are about nothing, and returns how many these are. A file of which nothing can be used is an
    /// error.
    fn finish(self, known: &Known<'_>, monitor: &dyn Monitor) -> Result<usize> {
        let shown = self.path.display();
        if self.latest.is_empty() {
            monitor.note(&format!("`{shown}` holds no decisions"));
            return Ok(0);
        }
        let classes: HashSet<&str> = known.classes.iter().copied().collect();
        let all = self.latest.iter().flat_map(|(&class, ids)| {
            ids.iter().map(move |(&id, &(_, is_matched))| ((id, class), is_matched))
        });
        let (matched, lost): (Vec<_>, Vec<_>) = all.partition(|(_, is_matched)| *is_matched);
        let lost: Vec<(&str, &str)> = lost.into_iter().map(|(about, _)| about).collect();
        let (of_known, of_unknown): (Vec<_>, Vec<_>) =
            lost.iter().copied().partition(|(_, class)| classes.contains(class));
        let (clean, strange): (Vec<_>, Vec<_>) =
            of_known.into_iter().partition(|(id, class)| (known.is_clean)(id, class));
        let describe = |(id, class): &(&str, &str)| match (known.near_id)(id, class) {
            Some(meant) => format!("`{id}` of `{class}` (did you mean `{meant}`?)"),
            None => format!("`{id}` of `{class}`"),
        };
        if matched.is_empty() && clean.is_empty() {
            let class =
                of_unknown.first().and_then(|(_, class)| nearest(class, known.classes.iter().copied()));
            return Err(Error::input(
                format!(
                    "none of the {} decisions in `{shown}` is about a candidate: e.g. {}",
                    lost.len(),
                    describe(strange.first().or(of_unknown.first()).unwrap_or(&("", "")))
                ),
                match class {
                    Some(meant) => format!("did you mean the class `{meant}`? ids and classes must match"),
                    None => "`id` and `class` must be those of the candidates".to_owned(),
                },
            ));
        }
        if !of_unknown.is_empty() {
            let names = named(&counts(of_unknown.iter().map(|(_, class)| *class)), &known.classes);
            monitor.warning(&format!(
                "{} decisions in `{shown}` are about classes that are not there: {names}",
                of_unknown.len()
            ));
        }
        if !strange.is_empty() {
            let names = listed(strange.iter().map(describe), strange.len());
            monitor.warning(&format!(
                "{} decisions in `{shown}` are about examples that are no candidates of their class: {names}",
                strange.len()
            ));
        }
        if !clean.is_empty() {
            let names = listed(clean.iter().map(|(id, class)| format!("`{id}` of `{class}`")), clean.len());
            monitor.warning(&format!(
                "{} decisions in `{shown}` are about clean examples, and change nothing: {names}",
                clean.len()
            ));
        }
        Ok(lost.len())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Mutex;

    use labelsieve::Watch;
    use labelsieve_data::DecisionRow;

    use super::*;
    use crate::monitor::{Kept, Progress, Silent};

    /// Keeps warnings.
    #[derive(Default)]
    struct Listener(Silent, Mutex<Vec<String>>);

    impl Monitor for Listener {
        fn detail(&self, _line: &str) {}
        fn note(&self, _line: &str) {}
        fn warning(&self, line: &str) {
            self.1.lock().unwrap().push(line.to_owned());
        }
        fn hint(&self, _line: &str) {}
        fn progress(&self, total: u64, unit: &'static str) -> Progress {
            self.0.progress(total, unit)
        }
        fn counter(&self, unit: &'static str) -> Progress {
            self.0.counter(unit)
        }
        fn keep(&self, _kept: Kept) {}
        fn stdout(&self) -> Box<dyn Write + Send> {
            self.0.stdout()
        }
        fn watch(&self) -> &Watch {
            self.0.watch()
        }
        fn warn_later(&self) -> Box<dyn Fn(&str) + Send + Sync> {
            self.0.warn_later()
        }
    }

    fn decisions(rows: &[(&str, &str, Decision)]) -> Decisions {
        let row = |(id, class, decision): &(&str, &str, Decision)| DecisionRow {
            id: (*id).to_owned(),
            class: (*class).to_owned(),
            decision: Some(*decision),
            by: String::new(),
            at: String::new(),
        };
        Decisions { table: DecisionTable { path: "d.csv".into(), rows: rows.iter().map(row).collect() } }
    }

    fn relevance() -> RelevanceTable {
        RelevanceTable {
            path: "r.parquet".into(),
            ids: ["a", "img-01", "img-02", "img-01"].into_iter().collect(),
            classes: ["owl", "owl", "owl", "cats"].iter().collect(),
            relevance: vec![1.0, 0.5, 0.5, 0.5],
            is_clean: vec![true, false, false, false],
            decisions: None,
            metadata: Default::default(),
        }
    }

    #[test]
    fn a_candidate_of_two_classes_may_be_accepted_in_one_and_rejected_in_the_other() {
        let given = decisions(&[("img-01", "owl", Decision::Accept), ("img-01", "cats", Decision::Reject)]);
        let (found, counts) = given.of_relevance(&relevance(), &Silent::default()).unwrap();
        assert_eq!(found, [None, Some(Decision::Accept), None, Some(Decision::Reject)]);
        assert_eq!(counts, DecisionCounts { n_accept: 1, n_reject: 1, ..DecisionCounts::default() });
    }

    #[test]
    fn decisions_about_nothing_are_named_with_what_may_have_been_meant() {
        let given = decisions(&[
            ("img-01", "owl", Decision::Accept),
            ("IMG_02", "owl", Decision::Accept),
            ("img-01", "cat", Decision::Reject),
            ("a", "owl", Decision::Unsure),
        ]);
        let listener = Listener::default();
        let (_, counts) = given.of_relevance(&relevance(), &listener).unwrap();
        assert_eq!((counts.n_accept, counts.n_unmatched), (1, 3));
        let warnings = listener.1.into_inner().unwrap();
        let expected = [
            "1 decisions in `d.csv` are about classes that are not there: `cat` (1; did you mean `cats`?)",
            "1 decisions in `d.csv` are about examples that are no candidates of their class: `IMG_02` of `owl` \
             (did you mean `img-02`?)",
            "1 decisions in `d.csv` are about clean examples, and change nothing: `a` of `owl`",
        ];
        assert_eq!(warnings, expected);
    }

    #[test]
    fn a_file_in_which_nothing_matches_is_an_error_and_one_without_decisions_is_not() {
        let given = decisions(&[("img-01", "Owl", Decision::Accept)]);
        let Err(Error::Input { message, hint }) = given.of_relevance(&relevance(), &Silent::default()) else {
            panic!("nothing matches")
        };
        assert!(message.starts_with("none of the 1 decisions in `d.csv` is about a candidate"), "{message}");
        assert!(hint.starts_with("did you mean the class `owl`?"), "{hint}");
        let (found, _) = decisions(&[]).of_relevance(&relevance(), &Silent::default()).unwrap();
        assert_eq!(found, [None; 4]);
    }

    #[test]
    fn a_digest_depends_on_what_holds_not_on_how_it_came_about() {
        let a = ("a", "owl", Decision::Accept);
        let b = ("b", "owl", Decision::Reject);
        let digest = |rows: &[_]| decisions(rows).digest();
        assert_eq!(digest(&[a, b]), digest(&[b, ("a", "owl", Decision::Unsure), a]));
        assert_ne!(digest(&[a, b]), digest(&[a]));
        assert_ne!(digest(&[("ab", "c", Decision::Accept)]), digest(&[("a", "bc", Decision::Accept)]));
    }
}
