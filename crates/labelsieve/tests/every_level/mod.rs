//! The same work at every level of the machine; `labelsieve-bench` has such tests too.

use std::sync::{Mutex, PoisonError};

use labelsieve_numerics::level::Level;

/// The result of `work` at each level, the plain one first. The level belongs to the process, so tests take turns.
pub fn at_every_level<T>(work: impl Fn() -> T) -> Vec<(Level, T)> {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let before = Level::current();
    let results = Level::available()
        .into_iter()
        .map(|level| {
            level.make_current();
            (level, work())
        })
        .collect();
    before.make_current();
    results
}

/// The largest difference from the plain level.
#[track_caller]
pub fn difference(what: &str, work: impl Fn() -> Vec<f32>) -> f32 {
    let results = at_every_level(work);
    let plain = &results[0].1;
    let mut worst = 0f32;
    for (level, found) in &results[1..] {
        assert_eq!(found.len(), plain.len());
        let largest = found.iter().zip(plain).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        println!("{what}: {level} differs from plain by at most {largest:e}");
        worst = worst.max(largest);
    }
    worst
}
