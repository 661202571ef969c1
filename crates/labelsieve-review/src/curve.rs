//! Does another decision still help? Accuracy on clean and accepted examples, each left out in turn, after each decision.
//!
//! All points are measured on the same examples, those that are clean or accepted *now*: what is accepted later joins the
//! earlier points too, left out with the weight that it had then. Otherwise the check would change with every accepted example,
//! and the curve could fall although nothing got worse.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use labelsieve::classifier::WeightedClass;
use labelsieve::evaluation::is_recognised;
use labelsieve::{Decision, Features};
use labelsieve_files::work::Result;
use rayon::prelude::*;

use super::answers::CurvePoint;

/// Points that are kept; of more, every second one goes.
const MOST_POINTS: usize = 128;

/// The curve, and the classes whose sums are out of date.
pub(super) struct Curve {
    state: Mutex<CurveState>,
    changed: Condvar,
}

struct CurveState {
    points: Vec<CurvePoint>,
    stale: BTreeSet<usize>,
    is_closed: bool,
}

impl Curve {
    /// All of these classes still have to be summed up.
    pub(super) fn new(n_classes: usize) -> Curve {
        let stale = (0..n_classes).collect();
        let state = CurveState { points: Vec::new(), stale, is_closed: false };
        Curve { state: Mutex::new(state), changed: Condvar::new() }
    }

    pub(super) fn points(&self) -> Vec<CurvePoint> {
        self.lock().points.clone()
    }

    pub(super) fn set(&self, points: Vec<CurvePoint>) {
        self.lock().points = points;
    }

    /// Relevance or decisions of a class have changed.
    pub(super) fn mark_stale(&self, class: usize) {
        self.lock().stale.insert(class);
        self.changed.notify_all();
    }

    /// Waits for a class to sum up; none when the session is over. `more`: whether others wait too.
    pub(super) fn next(&self) -> Option<(usize, bool)> {
        let idle = |state: &mut CurveState| state.stale.is_empty() && !state.is_closed;
        let mut state = self.changed.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner);
        if state.is_closed {
            return None;
        }
        let class = state.stale.pop_first()?;
        Some((class, !state.stale.is_empty()))
    }

    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, CurveState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A class as it is now.
pub(super) struct ClassSnapshot {
    learned: Arc<ClassPrototype>,
    /// Its clean and its accepted examples.
    left_out: Features,
    /// Who they are.
    examples: Vec<Example>,
}

/// An example of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Example {
    /// By its position among the clean ones.
    Clean(u32),
    /// By its place among the candidates.
    Accepted(u32),
}

/// What a class's prototype was at some moment.
struct ClassPrototype {
    /// Over clean examples and, by relevance, candidates.
    sum: Vec<f32>,
    /// The sum at unit length, one row.
    prototype: Features,
    /// The relevance of each candidate, by place.
    relevance: Vec<f32>,
}

impl ClassSnapshot {
    /// Of one class: its candidates with their relevance and decisions, by place.
    pub(super) fn new(
        clean: &Features,
        noisy: &Features,
        relevance: Vec<f32>,
        decisions: &[Option<Decision>],
    ) -> Result<ClassSnapshot> {
        let sum = WeightedClass::new(clean, noisy, &relevance)?.weighted_sum(|relevance| relevance);
        let accepted: Vec<usize> =
            (0..decisions.len()).filter(|&place| decisions[place] == Some(Decision::Accept)).collect();
        let examples = (0..clean.len() as u32).map(Example::Clean);
        let examples =
            examples.chain(accepted.iter().map(|&place| Example::Accepted(place as u32))).collect();
        let prototype = Features::new(sum.clone(), clean.dim())?;
        Ok(ClassSnapshot {
            learned: Arc::new(ClassPrototype { sum, prototype, relevance }),
            left_out: clean.stack(&noisy.select(&accepted))?,
            examples,
        })
    }
}

/// All classes, now and after each number of decisions.
pub(super) struct History {
    now: Vec<Option<ClassSnapshot>>,
    moments: Vec<HistoryPoint>,
}

/// The classes after so many decisions.
struct HistoryPoint {
    n_decisions: usize,
    classes: Vec<Arc<ClassPrototype>>,
    /// Whether examples were recognised, by class: nothing that happens later changes it.
    verdicts: HashMap<(usize, Example), bool>,
}

impl History {
    pub(super) fn new(n_classes: usize) -> History {
        History { now: (0..n_classes).map(|_| None).collect(), moments: Vec::new() }
    }

    /// A class has changed.
    pub(super) fn update(&mut self, class: usize, now: ClassSnapshot) {
        self.now[class] = Some(now);
    }

    /// All points, with one for how things are now; none while a class is missing, or where there are fewer than two.
    pub(super) fn points(&mut self, n_decisions: usize) -> Result<Option<Vec<CurvePoint>>> {
        let now: Vec<&ClassSnapshot> = self.now.iter().flatten().collect();
        if now.len() < self.now.len() || now.len() < 2 {
            return Ok(None);
        }
        // Gone: what was undone, and what as many decisions led to before.
        self.moments.retain(|moment| moment.n_decisions < n_decisions);
        let classes = now.iter().map(|class| class.learned.clone()).collect();
        self.moments.push(HistoryPoint { n_decisions, classes, verdicts: HashMap::new() });
        thin_out(&mut self.moments);
        let points = self.moments.iter_mut().map(|moment| moment.point(&now)).collect::<Result<_>>()?;
        Ok(Some(points))
    }
}

impl HistoryPoint {
    /// The share of these examples that would have been recognised at this moment.
    fn point(&mut self, now: &[&ClassSnapshot]) -> Result<CurvePoint> {
        let classes = now.iter().enumerate();
        let all: Vec<(usize, usize)> =
            classes.flat_map(|(c, class)| (0..class.examples.len()).map(move |i| (c, i))).collect();
        let key = |&(c, i): &(usize, usize)| (c, now[c].examples[i]);
        let open: Vec<&(usize, usize)> =
            all.iter().filter(|at| !self.verdicts.contains_key(&key(at))).collect();
        let found: Vec<bool> =
            open.par_iter().map(|(c, i)| self.is_recognised(*c, now[*c], *i)).collect::<Result<_>>()?;
        self.verdicts.extend(open.into_iter().map(key).zip(found));
        let right = all.iter().filter(|at| self.verdicts[&key(at)]).count();
        let n_left_out = all.len();
        let accuracy = right as f64 / n_left_out.max(1) as f64;
        Ok(CurvePoint { n_decisions: self.n_decisions, accuracy, n_left_out })
    }

    fn is_recognised(&self, c: usize, class: &ClassSnapshot, i: usize) -> Result<bool> {
        let own = &self.classes[c];
        let weight = match class.examples[i] {
            Example::Clean(_) => 1.0,
            Example::Accepted(place) => own.relevance[place as usize],
        };
        let others = self.classes.iter().enumerate().filter(|(other, _)| *other != c);
        let others = others.map(|(_, class)| class.prototype.row(0));
        Ok(is_recognised(class.left_out.row(i), &own.sum, weight, others)?)
    }
}

/// Of too many, every second one goes, but never the first or the last.
fn thin_out(moments: &mut Vec<HistoryPoint>) {
    if moments.len() > MOST_POINTS {
        let last = moments.len() - 1;
        let mut at = 0..;
        moments.retain(|_| at.next().is_none_or(|at: usize| at.is_multiple_of(2) || at == last));
    }
}

#[cfg(test)]
mod tests {
    use labelsieve::evaluation::{CheckedClass, leave_one_out};
    use labelsieve::synthetic::{Recipe, SyntheticTask};

    use super::*;

    fn task() -> SyntheticTask {
        Recipe { n_classes: 4, n_clean: 2, ..Recipe::default() }.generate(3)
    }

    /// Every class with its first candidates accepted, and all others of some relevance.
    fn with_accepted(history: &mut History, task: &SyntheticTask, n_accepted: usize) {
        for (c, class) in task.classes.iter().enumerate() {
            let n = class.noisy.len();
            let accepted = |i: usize| (i < n_accepted).then_some(Decision::Accept);
            let decisions: Vec<Option<Decision>> = (0..n).map(accepted).collect();
            let relevance =
                (0..n).map(|i| if i < n_accepted { 1.0 } else { (i % 10) as f32 / 10.0 }).collect();
            let now = ClassSnapshot::new(&class.clean, &class.noisy, relevance, &decisions).unwrap();
            history.update(c, now);
        }
    }

    #[test]
    fn the_last_point_is_the_leave_one_out_check_with_accepted_candidates_among_the_clean() {
        let task = task();
        let mut history = History::new(4);
        with_accepted(&mut history, &task, 1);
        let points = history.points(4).unwrap().unwrap();
        let as_trained: Vec<(Features, Features, Vec<f32>)> = task
            .classes
            .iter()
            .map(|class| {
                let rest: Vec<usize> = (1..class.noisy.len()).collect();
                let relevance = rest.iter().map(|i| (i % 10) as f32 / 10.0).collect();
                let clean = class.clean.stack(&class.noisy.select(&[0])).unwrap();
                (clean, class.noisy.select(&rest), relevance)
            })
            .collect();
        let nothing = vec![0.0; task.classes[0].clean.dim()];
        let checked: Vec<CheckedClass> = as_trained
            .iter()
            .map(|(clean, noisy, relevance)| CheckedClass {
                learned: WeightedClass::new(clean, noisy, relevance).unwrap(),
                irrelevant: &nothing,
            })
            .collect();
        let expected = leave_one_out(&checked).unwrap();
        assert_eq!((Some(points[0].accuracy), points[0].n_left_out), (expected.weighted, 4 * 3));
    }

    #[test]
    fn what_is_accepted_joins_the_earlier_points_with_the_weight_that_it_had() {
        // Class north has one clean example north and one candidate east of relevance ½, class east one clean example
        // east. While nobody has accepted the candidate, north without it points north: east is closer, it is not recognised.
        let row = |x: f32, y: f32| Features::new(vec![x, y], 2).unwrap();
        let north = |relevance, decision| {
            ClassSnapshot::new(&row(0.0, 1.0), &row(1.0, 0.1), vec![relevance], &[decision])
        };
        let east = ClassSnapshot::new(&row(1.0, 0.0), &Features::empty(2), Vec::new(), &[]).unwrap();
        let mut history = History::new(2);
        history.update(1, east);
        assert!(history.points(0).unwrap().is_none(), "a class is missing");
        history.update(0, north(0.5, None).unwrap());
        let before = history.points(0).unwrap().unwrap();
        assert_eq!(before[0].n_left_out, 2);
        history.update(0, north(1.0, Some(Decision::Accept)).unwrap());
        let after = history.points(1).unwrap().unwrap();
        assert_eq!(after.iter().map(|point| point.n_left_out).collect::<Vec<_>>(), [3, 3]);
        let right = |point: &CurvePoint| (point.accuracy * point.n_left_out as f64).round() as usize;
        assert_eq!(right(&after[0]), right(&before[0]), "one more to recognise, not one more recognised");
    }

    #[test]
    fn what_is_undone_leaves_the_curve_and_a_long_one_is_thinned_out() {
        let task = task();
        let mut history = History::new(4);
        let mut points = Vec::new();
        for n in 0..=MOST_POINTS {
            with_accepted(&mut history, &task, n.min(2));
            points = history.points(4 * n).unwrap().unwrap();
        }
        let numbers: Vec<usize> = points.iter().map(|point| point.n_decisions / 4).collect();
        assert_eq!(numbers.len(), MOST_POINTS / 2 + 1);
        assert_eq!((numbers[0], numbers[1], numbers[numbers.len() - 1]), (0, 2, MOST_POINTS));
        assert!(points.iter().all(|point| point.n_left_out == 4 * (2 + 2)));

        with_accepted(&mut history, &task, 1);
        let undone = history.points(9).unwrap().unwrap();
        assert_eq!(undone.iter().map(|point| point.n_decisions).collect::<Vec<_>>(), [0, 8, 9]);
    }
}
