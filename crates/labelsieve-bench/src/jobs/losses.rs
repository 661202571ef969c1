//! The loss at the start and at the end of a training: enough to see whether it went down.

use serde::Serialize;

/// The summary of a training on base classes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TrainingSummary {
    /// Number of base classes.
    pub n_base: usize,
    /// Mean loss of the first tenth of the steps.
    pub first_loss: f64,
    /// Mean loss of the last tenth.
    pub last_loss: f64,
}

/// Averages the losses of the first and of the last tenth of the steps.
pub(super) struct LossAverages {
    steps: usize,
    tenth: usize,
    first: f64,
    last: f64,
}

impl LossAverages {
    pub(super) fn new(steps: usize) -> LossAverages {
        LossAverages { steps, tenth: (steps / 10).max(1), first: 0.0, last: 0.0 }
    }

    /// Adds the loss of a step; steps count from 1.
    pub(super) fn add(&mut self, step: usize, loss: f64) {
        let share = loss / self.tenth as f64;
        if step <= self.tenth {
            self.first += share;
        }
        if step + self.tenth > self.steps {
            self.last += share;
        }
    }

    pub(super) fn summary(&self, n_base: usize) -> TrainingSummary {
        TrainingSummary { n_base, first_loss: self.first, last_loss: self.last }
    }
}
