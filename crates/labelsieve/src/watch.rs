//! Lets a caller follow running work and stop it early.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::error::{Error, Result};

/// Shared with work under way: it counts what is done, and asks the work to stop.
///
/// The method has no clock and calls nobody back; a front end looks at the count when it likes.
#[derive(Debug, Default)]
pub struct Watch {
    stopped: AtomicBool,
    done: AtomicUsize,
}

static NOBODY: Watch = Watch::new();

impl Watch {
    /// Nothing done, nothing to be stopped.
    pub const fn new() -> Watch {
        Watch { stopped: AtomicBool::new(false), done: AtomicUsize::new(0) }
    }

    /// Stands for: nobody watches. It is never stopped.
    pub(crate) fn nobody() -> &'static Watch {
        &NOBODY
    }

    /// Asks the work to end with [`Error::Stopped`] soon: after the block or the iteration under way.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether the work was asked to end.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// An error once the work was asked to end.
    pub fn check(&self) -> Result<()> {
        if self.is_stopped() { Err(Error::Stopped) } else { Ok(()) }
    }

    /// Rows done so far; a row counts once for its neighbours and once for the training, where there are such.
    pub fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    /// One of `n_parts` equal parts of a pass over `n_rows` rows is done. All parts together add up to `n_rows`.
    pub(crate) fn advance(&self, part: usize, n_parts: usize, n_rows: usize) {
        let upto = |part: usize| (part as u128 * n_rows as u128 / n_parts.max(1) as u128) as usize;
        self.done.fetch_add(upto(part + 1) - upto(part), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classifier::{Cosine, WeightedClass};
    use crate::graph::Neighbours;
    use crate::synthetic::Recipe;
    use crate::{ClassProblem, Method, NoisyPool};

    #[test]
    fn parts_add_up_to_the_whole_in_any_order() {
        for (n_parts, n_rows) in [(1, 7), (3, 100), (7, 3), (100, 12_345)] {
            let watch = Watch::new();
            (0..n_parts).rev().for_each(|part| watch.advance(part, n_parts, n_rows));
            assert_eq!(watch.done(), n_rows);
        }
    }

    #[test]
    fn a_watched_class_counts_its_rows_for_the_graph_and_for_the_training() {
        let class = Recipe { n_classes: 1, ..Recipe::default() }.generate(0).classes.remove(0);
        let (z, n) = (class.noisy.len(), class.clean.len() + class.noisy.len());
        let pool = NoisyPool::new(class.noisy);
        let watch = Watch::new();
        let problem = ClassProblem::new(&class.clean, &pool).unwrap().watched(&watch);
        let followed = Method::gcn().build().unwrap().relevance(&problem, 3).unwrap();
        assert_eq!(watch.done(), z + n);
        let alone = ClassProblem::new(&class.clean, &pool).unwrap();
        assert_eq!(followed, Method::gcn().build().unwrap().relevance(&alone, 3).unwrap());
    }

    #[test]
    fn stopped_work_ends_with_an_error_and_not_with_half_a_result() {
        let class = Recipe { n_classes: 1, ..Recipe::default() }.generate(0).classes.remove(0);
        let watch = Watch::new();
        watch.stop();
        assert_eq!(Neighbours::exact_watched(&class.noisy, 50, &watch), Err(Error::Stopped));
        let ones = vec![1.0; class.noisy.len()];
        let examples = [WeightedClass::new(&class.clean, &class.noisy, &ones).unwrap(); 2];
        assert_eq!(Cosine::default().train_watched(&examples, 64, 0, &watch), Err(Error::Stopped));
        let pool = NoisyPool::with_graph(class.noisy.clone());
        let problem = ClassProblem::new(&class.clean, &pool).unwrap().watched(&watch);
        for name in ["gcn", "mlp", "label-propagation"] {
            let method: Method = serde_json::from_value(serde_json::json!({ "method": name })).unwrap();
            assert_eq!(method.build().unwrap().relevance(&problem, 0), Err(Error::Stopped), "{name}");
        }
    }
}
