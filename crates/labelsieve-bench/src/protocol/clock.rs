//! Time by stage.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Seconds by stage, in the order in which stages first ran.
#[derive(Default)]
pub struct Clock(Mutex<Vec<(String, f64)>>);

impl Clock {
    /// Runs `work` and adds its duration to the stage.
    pub fn time<T>(&self, stage: &str, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        let seconds = start.elapsed().as_secs_f64();
        let mut stages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match stages.iter_mut().find(|(name, _)| name == stage) {
            Some((_, sum)) => *sum += seconds,
            None => stages.push((stage.to_owned(), seconds)),
        }
        result
    }

    /// All stages with their seconds.
    pub fn stages(&self) -> Vec<(String, f64)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_that_runs_twice_is_listed_once() {
        let clock = Clock::default();
        assert_eq!(clock.time("graph", || 7), 7);
        clock.time("training", || ());
        clock.time("graph", || ());
        let names: Vec<String> = clock.stages().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["graph", "training"]);
    }
}
