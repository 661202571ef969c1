use std::io::Write;
use std::sync::Mutex;

use labelsieve_numerics::Watch;

use super::*;
use crate::DecisionRow;
use crate::work::{Progress, SavedWork, Silent, Words};

/// Records warnings.
#[derive(Default)]
struct Listener(Silent, Mutex<Vec<String>>);

impl Monitor for Listener {
    fn detail(&self, _line: &str) {}
    fn note(&self, _line: &str) {}
    fn warning(&self, line: &str) {
        self.1.lock().unwrap().push(line.to_owned());
    }
    fn hint(&self, _hint: &Words) {}
    fn suggestion(&self, _suggestion: &Words) {}
    fn progress(&self, total: u64, unit: &'static str) -> Progress {
        self.0.progress(total, unit)
    }
    fn counter(&self, unit: &'static str) -> Progress {
        self.0.counter(unit)
    }
    fn keep(&self, _kept: SavedWork) {}
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
        probability: None,
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
        "ignoring 1 decision in `d.csv` about unknown classes: `cat` (1; did you mean `cats`?)",
        "ignoring 1 decision in `d.csv` about examples that are not candidates of their class: `IMG_02` of `owl` \
         (did you mean `img-02`?)",
        "ignoring 1 decision in `d.csv` about clean examples: `a` of `owl`",
    ];
    assert_eq!(warnings, expected);
}

#[test]
fn a_file_in_which_nothing_matches_is_an_error_and_one_without_decisions_is_not() {
    let given = decisions(&[("img-01", "Owl", Decision::Accept)]);
    let Err(Error::Input { message, hint }) = given.of_relevance(&relevance(), &Silent::default()) else {
        panic!("nothing matches")
    };
    assert!(
        message.to_string().starts_with("no decision in `d.csv` matches a candidate, e.g. "),
        "{message}"
    );
    assert!(hint.to_string().starts_with("did you mean the class `owl`?"), "{hint}");
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
