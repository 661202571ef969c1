//! The decisions so far, and those that can be undone.

use std::collections::HashMap;

use labelsieve::Decision;

use super::answers::{CandidatePosition, Counts, PastDecision};

/// The decisions of all classes.
pub(super) struct DecisionState {
    classes: Vec<ClassDecisions>,
    actions: Actions,
    last: Option<CandidatePosition>,
    pasts: HashMap<(usize, usize), Vec<PastDecision>>,
}

/// The decisions of one class.
struct ClassDecisions {
    decisions: Vec<Option<Decision>>,
    counts: Counts,
    /// Grows with every decision.
    version: u64,
}

/// One action of a person: rows of one class, each with its decision before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Action {
    pub(super) class: usize,
    pub(super) changes: Vec<Change>,
}

/// A row and its decision before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) row: usize,
    pub(super) before: Option<Decision>,
    pub(super) after: Option<Decision>,
}

impl Change {
    fn alters(&self) -> bool {
        self.before != self.after
    }
}

impl Action {
    /// The action that takes it back.
    pub(super) fn inverse(&self) -> Action {
        let turn = |change: &Change| Change { before: change.after, after: change.before, ..*change };
        Action { class: self.class, changes: self.changes.iter().map(turn).collect() }
    }
}

/// Actions that can be undone and redone.
#[derive(Default)]
struct Actions {
    done: Vec<Action>,
    undone: Vec<Action>,
}

impl Actions {
    /// An action that takes back the last one *is* an undo, and one that repeats what was undone last a redo, no matter who says
    /// so: a file of decisions has no other sign of either, and what it tells must not depend on a restart.
    fn note(&mut self, action: Action) {
        if self.done.last().is_some_and(|last| last.inverse() == action) {
            self.undone.extend(self.done.pop());
        } else if self.undone.last() == Some(&action) {
            self.done.extend(self.undone.pop());
        } else {
            self.undone.clear();
            self.done.push(action);
        }
    }
}

impl DecisionState {
    /// Nothing decided, in classes of so many candidates.
    pub(super) fn new(n_candidates: impl Iterator<Item = usize>) -> DecisionState {
        let class =
            |n: usize| ClassDecisions { decisions: vec![None; n], counts: Counts::default(), version: 0 };
        DecisionState {
            classes: n_candidates.map(class).collect(),
            actions: Actions::default(),
            last: None,
            pasts: HashMap::new(),
        }
    }

    pub(super) fn of(&self, class: usize) -> &[Option<Decision>] {
        &self.classes[class].decisions
    }

    pub(super) fn counts(&self, class: usize) -> Counts {
        self.classes[class].counts
    }

    pub(super) fn version(&self, class: usize) -> u64 {
        self.classes[class].version
    }

    /// Candidates with a decision, of all classes.
    pub(super) fn n_decisions(&self) -> usize {
        let n = |counts: &Counts| counts.n_accept + counts.n_reject + counts.n_unsure;
        self.classes.iter().map(|class| n(&class.counts)).sum()
    }

    pub(super) fn n_undo(&self) -> usize {
        self.actions.done.len()
    }

    pub(super) fn n_redo(&self) -> usize {
        self.actions.undone.len()
    }

    pub(super) fn last(&self) -> Option<CandidatePosition> {
        self.last
    }

    pub(super) fn history(&self, class: usize, row: usize) -> Vec<PastDecision> {
        self.pasts.get(&(class, row)).cloned().unwrap_or_default()
    }

    /// The action that gives `rows` this decision; those that have it already are not part of it.
    pub(super) fn action(&self, class: usize, rows: &[usize], after: Option<Decision>) -> Action {
        let change = |&row: &usize| Change { row, before: self.of(class)[row], after };
        Action { class, changes: rows.iter().map(change).filter(Change::alters).collect() }
    }

    /// The action that undoes the last one.
    pub(super) fn undo(&self) -> Option<Action> {
        self.actions.done.last().map(Action::inverse)
    }

    /// The action that was undone last.
    pub(super) fn redo(&self) -> Option<Action> {
        self.actions.undone.last().cloned()
    }

    /// Makes an action count. It is on disk.
    pub(super) fn apply(&mut self, mut action: Action, by: &str, at: &str) {
        let class = &mut self.classes[action.class];
        for change in &action.changes {
            if let Some(count) = count_of(&mut class.counts, class.decisions[change.row]) {
                *count -= 1;
            }
            if let Some(count) = count_of(&mut class.counts, change.after) {
                *count += 1;
            }
            class.decisions[change.row] = change.after;
            let past = PastDecision { decision: change.after, by: by.to_owned(), at: at.to_owned() };
            self.pasts.entry((action.class, change.row)).or_default().push(past);
        }
        class.version += 1;
        if let Some(first) = action.changes.first() {
            self.last = Some(CandidatePosition { class: action.class, row: first.row }); // the one that was pointed at
        }
        action.changes.retain(Change::alters); // a file may say the same twice
        if !action.changes.is_empty() {
            self.actions.note(action);
        }
    }
}

fn count_of(counts: &mut Counts, decision: Option<Decision>) -> Option<&mut usize> {
    match decision? {
        Decision::Accept => Some(&mut counts.n_accept),
        Decision::Reject => Some(&mut counts.n_reject),
        Decision::Unsure => Some(&mut counts.n_unsure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(decided: &mut DecisionState, class: usize, rows: &[usize], decision: Option<Decision>) {
        let action = decided.action(class, rows, decision);
        decided.apply(action, "me", "now");
    }

    #[test]
    fn what_was_done_is_undone_in_turn_and_redone() {
        let mut decided = DecisionState::new([3, 2].into_iter());
        decide(&mut decided, 0, &[0, 2], Some(Decision::Accept));
        decide(&mut decided, 1, &[1], Some(Decision::Reject));
        decide(&mut decided, 0, &[2], Some(Decision::Unsure));
        assert_eq!(decided.counts(0), Counts { n_accept: 1, n_reject: 0, n_unsure: 1 });
        assert_eq!((decided.n_decisions(), decided.n_undo(), decided.n_redo()), (3, 3, 0));
        for left in [2, 1, 0] {
            let undo = decided.undo().unwrap();
            decided.apply(undo, "me", "then");
            assert_eq!((decided.n_undo(), decided.n_redo()), (left, 3 - left));
        }
        assert_eq!((decided.n_decisions(), decided.undo()), (0, None));
        for _ in 0..2 {
            let redo = decided.redo().unwrap();
            decided.apply(redo, "me", "again");
        }
        assert_eq!(decided.of(0), [Some(Decision::Accept), None, Some(Decision::Accept)]);
        assert_eq!(decided.of(1), [None, Some(Decision::Reject)]);
        decide(&mut decided, 1, &[0], Some(Decision::Reject));
        assert_eq!((decided.n_undo(), decided.n_redo()), (3, 0), "what is new forgets what was undone");
        assert_eq!(decided.history(1, 1).len(), 3);
        assert_eq!(decided.last(), Some(CandidatePosition { class: 1, row: 0 }));
    }

    #[test]
    fn a_decision_taken_back_by_hand_is_an_undo() {
        let mut decided = DecisionState::new([1].into_iter());
        decide(&mut decided, 0, &[0], Some(Decision::Accept));
        decide(&mut decided, 0, &[0], None);
        assert_eq!((decided.n_undo(), decided.n_redo(), decided.n_decisions()), (0, 1, 0));
    }
}
