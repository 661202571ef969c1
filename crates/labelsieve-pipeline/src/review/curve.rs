//! Does another decision still help? Accuracy on clean and accepted examples, each left out in turn, as decisions come in.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, PoisonError};

use labelsieve::classifier::WeightedClass;
use labelsieve::evaluation::recognised_by_sums;
use labelsieve::{Decision, Features};

use super::answers::CurvePoint;
use crate::error::Result;

/// The curve, and the classes whose sums are out of date.
pub(super) struct Curve {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    points: Vec<CurvePoint>,
    stale: BTreeSet<usize>,
    is_closed: bool,
}

/// What the curve keeps of a class.
pub(super) struct Sums {
    sum: Vec<f32>,
    /// Its clean and its accepted examples.
    left_out: Features,
}

impl Curve {
    /// All of these classes still have to be summed up.
    pub(super) fn new(n_classes: usize) -> Curve {
        let stale = (0..n_classes).collect();
        let state = State { points: Vec::new(), stale, is_closed: false };
        Curve { state: Mutex::new(state), changed: Condvar::new() }
    }

    pub(super) fn points(&self) -> Vec<CurvePoint> {
        self.lock().points.clone()
    }

    /// Relevance or decisions of a class have changed.
    pub(super) fn is_stale(&self, class: usize) {
        self.lock().stale.insert(class);
        self.changed.notify_all();
    }

    /// Waits for a class to sum up; none when the session is over. `more`: whether others wait too.
    pub(super) fn next(&self) -> Option<(usize, bool)> {
        let idle = |state: &mut State| state.stale.is_empty() && !state.is_closed;
        let mut state = self.changed.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner);
        if state.is_closed {
            return None;
        }
        let class = state.stale.pop_first()?;
        Some((class, !state.stale.is_empty()))
    }

    /// Adds a point, or moves the last one if nothing was decided since.
    pub(super) fn add(&self, point: CurvePoint) {
        let points = &mut self.lock().points;
        if points.last().is_some_and(|last| last.n_decisions == point.n_decisions) {
            points.pop();
        }
        points.push(point);
    }

    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sums {
    /// Of one class: its candidates with their relevance and decisions, by place.
    pub(super) fn new(
        clean: &Features,
        noisy: &Features,
        relevance: &[f32],
        decisions: &[Option<Decision>],
    ) -> Result<Sums> {
        let sum = WeightedClass::new(clean, noisy, relevance)?.weighted_sum(|relevance| relevance);
        let accepted: Vec<usize> =
            (0..decisions.len()).filter(|&place| decisions[place] == Some(Decision::Accept)).collect();
        Ok(Sums { sum, left_out: clean.stack(&noisy.select(&accepted))? })
    }

    /// The accuracy over all classes; none for fewer than two.
    pub(super) fn accuracy(classes: &[&Sums], n_decisions: usize) -> Result<Option<CurvePoint>> {
        if classes.len() < 2 {
            return Ok(None);
        }
        let sums: Vec<Vec<f32>> = classes.iter().map(|class| class.sum.clone()).collect();
        let left_out: Vec<&Features> = classes.iter().map(|class| &class.left_out).collect();
        let accuracy = recognised_by_sums(&sums, &left_out)?;
        let n_left_out = left_out.iter().map(|examples| examples.len()).sum();
        Ok(Some(CurvePoint { n_decisions, accuracy, n_left_out }))
    }
}

#[cfg(test)]
mod tests {
    use labelsieve::evaluation::{CheckedClass, leave_one_out};
    use labelsieve::synthetic::Recipe;

    use super::*;

    #[test]
    fn the_curve_is_the_leave_one_out_check_with_accepted_candidates_among_the_clean() {
        let task = Recipe { n_classes: 4, n_clean: 2, ..Recipe::default() }.generate(3);
        let mut sums = Vec::new();
        let mut as_trained = Vec::new();
        for class in &task.classes {
            let n = class.noisy.len();
            let mut relevance: Vec<f32> = (0..n).map(|i| (i % 10) as f32 / 10.0).collect();
            let mut decisions = vec![None; n];
            (decisions[0], relevance[0]) = (Some(Decision::Accept), 1.0);
            (decisions[1], relevance[1]) = (Some(Decision::Reject), 0.0);
            sums.push(Sums::new(&class.clean, &class.noisy, &relevance, &decisions).unwrap());
            let rest: Vec<usize> = (1..n).collect();
            let clean = class.clean.stack(&class.noisy.select(&[0])).unwrap();
            as_trained.push((clean, class.noisy.select(&rest), relevance[1..].to_vec()));
        }
        let nothing = vec![0.0; task.classes[0].clean.dim()];
        let checked: Vec<CheckedClass> = as_trained
            .iter()
            .map(|(clean, noisy, relevance)| CheckedClass {
                learned: WeightedClass::new(clean, noisy, relevance).unwrap(),
                irrelevant: &nothing,
            })
            .collect();
        let expected = leave_one_out(&checked).unwrap();
        let point = Sums::accuracy(&sums.iter().collect::<Vec<_>>(), 8).unwrap().unwrap();
        assert_eq!((Some(point.accuracy), point.n_left_out), (expected.weighted, expected.n));
        assert_eq!(point.n_left_out, 4 * 3);
        assert!(Sums::accuracy(&[&sums[0]], 8).unwrap().is_none());
    }
}
