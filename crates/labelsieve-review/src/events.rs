//! What a session tells those who listen.

use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use super::answers::{CurvePoint, DecisionChange};

/// Something changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Event {
    /// Somebody decided, undid or redid.
    Decisions(DecisionChange),
    /// A class is being scored again.
    Scoring {
        /// Which.
        class: usize,
    },
    /// The relevance or the groups of a class are new.
    Scores {
        /// Which.
        class: usize,
        /// Of its relevance.
        revision: u64,
        /// From the request to the result.
        seconds: f64,
    },
    /// The curve is new.
    Curve {
        /// All of it.
        points: Vec<CurvePoint>,
    },
    /// Somebody chose λ.
    Lambda {
        /// None: the default.
        lambda: Option<f32>,
        /// The command that makes the relevance permanent, with this λ.
        command: Option<String>,
    },
    /// Work in the background failed.
    Failed {
        /// Why.
        message: String,
    },
}

impl Event {
    /// The name of its kind.
    pub fn name(&self) -> &'static str {
        match self {
            Event::Decisions(_) => "decisions",
            Event::Scoring { .. } => "scoring",
            Event::Scores { .. } => "scores",
            Event::Curve { .. } => "curve",
            Event::Lambda { .. } => "lambda",
            Event::Failed { .. } => "failed",
        }
    }
}

/// Gets every event.
pub trait Listener: Send {
    /// Something changed.
    fn tell(&self, event: &Event);
    /// Whether it is still interested; else it is dropped.
    fn is_open(&self) -> bool;
}

/// All listeners.
#[derive(Default)]
pub(super) struct Listeners(Mutex<Vec<Box<dyn Listener>>>);

impl Listeners {
    /// Also drops those that have gone: in a session in which nothing happens, nobody else would.
    pub(super) fn add(&self, listener: Box<dyn Listener>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|listener| listener.is_open());
        all.push(listener);
    }

    pub(super) fn tell(&self, event: &Event) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|listener| {
            listener.tell(event);
            listener.is_open()
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    struct Tab(Arc<AtomicBool>);

    impl Listener for Tab {
        fn tell(&self, _: &Event) {}

        fn is_open(&self) -> bool {
            self.0.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn listeners_that_have_gone_are_dropped_when_others_come() {
        let (listeners, gone) = (Listeners::default(), Arc::new(AtomicBool::new(true)));
        listeners.add(Box::new(Tab(gone.clone())));
        gone.store(false, Ordering::Relaxed);
        listeners.add(Box::new(Tab(Arc::new(AtomicBool::new(true)))));
        assert_eq!(listeners.0.lock().unwrap().len(), 1);
        assert_eq!(Arc::strong_count(&gone), 1);
    }
}
