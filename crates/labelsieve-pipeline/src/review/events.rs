//! What a session tells those who listen.

use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use super::answers::{Changed, CurvePoint};

/// Something changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Event {
    /// Somebody decided, undid or redid.
    Decisions(Changed),
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

/// Gets every event; false when it wants no more.
pub type Listener = Box<dyn Fn(&Event) -> bool + Send>;

/// All listeners.
#[derive(Default)]
pub(super) struct Listeners(Mutex<Vec<Listener>>);

impl Listeners {
    pub(super) fn add(&self, listener: Listener) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(listener);
    }

    pub(super) fn tell(&self, event: &Event) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|listener| listener(event));
    }
}
