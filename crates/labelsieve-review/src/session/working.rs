//! Work in the background.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use labelsieve::Decision;
use labelsieve_files::work::{Error, Result};
use labelsieve_numerics::Watch;

use super::{Inner, lock};
use crate::curve::{ClassSnapshot, History};
use crate::events::Event;
use crate::queue::Request;
use crate::ready::{Ready, Scorer};
use crate::scores::Stamp;

/// Brings one class after the other up to date, the one that was asked for last first.
pub(super) fn score(inner: &Inner) {
    while let Some((request, watch)) = inner.queue.next() {
        let done = without_panic(|| inner.bring_up_to_date(request, &watch));
        let failed = done.err().filter(|error| !error.is_stopped()); // stopped by a newer request
        let message = failed.map(|error| error.to_string());
        // Before those who wait for the class look again.
        inner.note_failure(request.class, message.clone());
        inner.queue.finish();
        if let Some(message) = message {
            inner.listeners.tell(&Event::Failed { message });
        }
    }
}

/// Sums up classes whose relevance has changed, and measures the curve again when all are done.
pub(super) fn follow_curve(inner: &Inner) {
    let mut history = History::new(inner.contents.classes.len());
    while let Some((class, more)) = inner.curve.next() {
        let points = without_panic(|| {
            history.update(class, inner.class_now(class)?);
            if more {
                return Ok(None);
            }
            let n_decisions = lock(&inner.decided).n_decisions(); // released at once: decisions must not wait for the curve
            history.points(n_decisions)
        });
        match points {
            Ok(None) => (),
            Ok(Some(points)) => {
                inner.curve.set(points.clone());
                inner.listeners.tell(&Event::Curve { points });
            }
            Err(error) => {
                inner.listeners.tell(&Event::Failed { message: format!("no curve: {error}") });
                return;
            }
        }
    }
}

/// A panic is an error of one request: the next one may well succeed.
fn without_panic<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(Error::Internal(text.to_owned()))
    })
}

impl Inner {
    /// Whether nothing is to be done for a class.
    pub(super) fn is_up_to_date(&self, class: usize) -> bool {
        self.is_ready(class) && self.is_scored(class)
    }

    /// Whether the relevance of a class is that of its decisions and of λ as they are now.
    pub(super) fn is_scored(&self, class: usize) -> bool {
        let now = self.stamp(class);
        lock(&self.scores)[class].made_from == Some(now)
    }

    /// Whether a class is in memory and its near-duplicates are known.
    pub(super) fn is_ready(&self, class: usize) -> bool {
        self.ready.get(class).is_some() && lock(&self.scores)[class].has_groups
    }

    /// Why a class could not be made ready when that was last tried.
    pub(super) fn failure(&self, class: usize) -> Option<String> {
        lock(&self.failures).get(&class).cloned()
    }

    fn note_failure(&self, class: usize, message: Option<String>) {
        let mut failures = lock(&self.failures);
        match message.filter(|_| !self.is_ready(class)) {
            Some(message) => failures.insert(class, message),
            None => failures.remove(&class),
        };
    }

    /// The current versions of everything that the relevance of a class depends on.
    fn stamp(&self, class: usize) -> Stamp {
        let lambda = lock(&self.lambda).version;
        Stamp { decisions: lock(&self.decided).version(class), lambda }
    }

    fn bring_up_to_date(&self, request: Request, watch: &Watch) -> Result<()> {
        let Some(scorer) = &self.scorer else { return Ok(()) };
        let class = request.class;
        let ready = self.make_ready(scorer, request, watch)?;
        self.queue.stop_on_decisions(); // also wakes those who wait for the class
        let stamp = self.stamp(class);
        let method = self.method();
        if lock(&self.scores)[class].made_from == Some(stamp) {
            return Ok(());
        }
        let decisions = lock(&self.decided).of(class).to_vec();
        self.listeners.tell(&Event::Scoring { class });
        let scored = scorer.score(class, &ready, &method, &decisions, watch)?;
        let revision = {
            let scores = &mut lock(&self.scores)[class];
            scores.relevance = Arc::new(ready.by_row(&scored.relevance, scores.relevance.to_vec()));
            let probability =
                scored.probability.unwrap_or_default().into_iter().map(Some).collect::<Vec<_>>();
            scores.probability = ready.by_row(&probability, vec![None; scores.probability.len()]);
            scores.made_from = Some(stamp);
            scores.revision += 1;
            scores.revision
        };
        let seconds = request.since.elapsed().as_secs_f64();
        self.listeners.tell(&Event::Scores { class, revision, seconds });
        self.curve.mark_stale(class);
        Ok(())
    }

    /// The class in memory, with its near-duplicates known. Clients that looked at it before have to ask again: without the graph
    /// there were no neighbours, and the order was another.
    fn make_ready(&self, scorer: &Scorer, request: Request, watch: &Watch) -> Result<Arc<Ready>> {
        let class = request.class;
        if let Some(ready) = self.ready.get(class) {
            return Ok(ready);
        }
        let ready = Arc::new(scorer.ready(class, &self.contents, &self.method(), watch)?);
        let groups = ready.groups();
        let revision = {
            let scores = &mut lock(&self.scores)[class];
            scores.has_groups = true;
            scores.groups = Arc::new(groups);
            scores.revision += 1;
            scores.revision
        };
        self.ready.add(class, ready.clone(), ready.bytes());
        let seconds = request.since.elapsed().as_secs_f64();
        self.listeners.tell(&Event::Scores { class, revision, seconds });
        Ok(ready)
    }

    /// A class as the curve needs it, from memory or else from disk.
    fn class_now(&self, class: usize) -> Result<ClassSnapshot> {
        let Some(scorer) = &self.scorer else {
            return Err(Error::Internal("no features to sum up".to_owned()));
        };
        let decisions = lock(&self.decided).of(class).to_vec();
        let relevance = lock(&self.scores)[class].relevance.clone();
        let by_place = |row_of: &[Option<u32>]| -> (Vec<f32>, Vec<Option<Decision>>) {
            let of = |row: &Option<u32>| match row {
                Some(row) => (relevance[*row as usize], decisions[*row as usize]),
                None => (0.0, None),
            };
            row_of.iter().map(of).unzip()
        };
        match self.ready.get(class) {
            Some(ready) => {
                let (relevance, decisions) = by_place(&ready.row_of);
                ClassSnapshot::new(scorer.clean(class), ready.pool.features(), relevance, &decisions)
            }
            None => {
                let read = scorer.candidates(class, &self.contents)?;
                let (relevance, decisions) = by_place(&read.row_of);
                ClassSnapshot::new(scorer.clean(class), &read.features, relevance, &decisions)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_like_others() {
        assert_eq!(without_panic(|| Ok(7)).unwrap(), 7);
        let rows: [u8; 0] = [];
        let error = without_panic(|| Ok(rows[std::hint::black_box(3)])).unwrap_err();
        assert!(error.to_string().contains("index out of bounds"), "{error}");
    }
}
