//! Which class is worked on next: the one that was asked for last.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use labelsieve_numerics::Watch;

/// Classes that wait, and the one that is worked on.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    /// The last one is next.
    waiting: Vec<Request>,
    running: Option<RunningRequest>,
    is_closed: bool,
}

/// A class that somebody waits for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) class: usize,
    pub(super) since: Instant,
}

struct RunningRequest {
    request: Request,
    watch: Arc<Watch>,
    /// Whether new decisions make the work useless.
    depends_on_decisions: bool,
}

/// How urgent a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Urgency {
    /// Somebody looks at the class: when there is time.
    Look,
    /// Somebody decided: what is under way and in the way stops.
    Decision,
}

impl Queue {
    /// Asks for a class. It comes before all others.
    pub(super) fn ask(&self, class: usize, urgency: Urgency) {
        let mut state = self.lock();
        let known = state.waiting.iter().position(|request| request.class == class);
        let known = known.map(|at| state.waiting.remove(at));
        let since = match urgency {
            Urgency::Look => known.map_or_else(Instant::now, |request| request.since),
            Urgency::Decision => Instant::now(),
        };
        if let Some(running) = state.running.as_ref().filter(|_| urgency == Urgency::Decision) {
            let (other, watch) = (running.request, running.watch.clone());
            if other.class != class {
                watch.stop();
                state.waiting.retain(|request| request.class != other.class);
                state.waiting.push(other); // it goes on after this one
            } else if running.depends_on_decisions {
                watch.stop();
            }
        }
        state.waiting.push(Request { class, since });
        self.changed.notify_all();
    }

    /// Waits for the next request; none when the session is over.
    pub(super) fn next(&self) -> Option<(Request, Arc<Watch>)> {
        let state = self.lock();
        let idle = |state: &mut QueueState| state.waiting.is_empty() && !state.is_closed;
        let mut state = self.changed.wait_while(state, idle).unwrap_or_else(PoisonError::into_inner);
        if state.is_closed {
            return None;
        }
        let request = state.waiting.pop()?;
        let watch = Arc::new(Watch::new());
        state.running = Some(RunningRequest { request, watch: watch.clone(), depends_on_decisions: false });
        Some((request, watch))
    }

    /// The class is ready; from here on, new decisions of it stop the work on it.
    pub(super) fn stop_on_decisions(&self) {
        if let Some(running) = &mut self.lock().running {
            running.depends_on_decisions = true;
        }
        self.changed.notify_all();
    }

    /// The work on the last request is over.
    pub(super) fn finish(&self) {
        self.lock().running = None;
        self.changed.notify_all();
    }

    /// Waits until `is_done` or the time is over; looks again whenever work is over.
    pub(super) fn wait(&self, most: Duration, mut is_done: impl FnMut() -> bool) {
        let end = Instant::now() + most;
        let mut state = self.lock();
        while !state.is_closed && !is_done() {
            let Some(left) = end.checked_duration_since(Instant::now()) else { return };
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends all work.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        if let Some(running) = &state.running {
            running.watch.stop();
        }
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(queue: &Queue) -> (usize, Arc<Watch>) {
        let (request, watch) = queue.next().unwrap();
        (request.class, watch)
    }

    #[test]
    fn the_newest_request_comes_first_and_none_twice() {
        let queue = Queue::default();
        for class in [1, 2, 3, 1] {
            queue.ask(class, Urgency::Look);
        }
        for expected in [1, 3, 2] {
            assert_eq!(next(&queue).0, expected);
            queue.finish();
        }
        queue.close();
        assert!(queue.next().is_none());
    }

    #[test]
    fn a_look_stops_nothing_and_a_decision_stops_what_is_in_the_way() {
        let queue = Queue::default();
        queue.ask(1, Urgency::Look);
        let (_, watch) = next(&queue);
        queue.ask(2, Urgency::Look);
        queue.ask(1, Urgency::Decision); // its graph is being made, which it needs anyway
        assert!(!watch.is_stopped());
        queue.stop_on_decisions();
        queue.ask(1, Urgency::Decision);
        assert!(watch.is_stopped());
        queue.finish();

        let (class, watch) = next(&queue);
        assert_eq!(class, 1);
        queue.ask(7, Urgency::Decision);
        assert!(watch.is_stopped());
        queue.finish();
        let order: Vec<usize> = (0..3).map(|_| next(&queue).0).collect();
        assert_eq!(order, [7, 1, 2], "what was stopped is not forgotten");
    }
}
