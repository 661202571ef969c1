//! The candidates of some classes in memory, with their graphs.

use labelsieve::engine::Engine;
use labelsieve::schedule::map_classes;
use labelsieve::{Features, Method, NoisyPool};
use labelsieve_files::work::Result;

use super::{Grid, Setting, Source, Task};

/// The pools of a batch of classes. Episodes whose clean examples are among the candidates have pools of their own.
pub(super) struct Pools {
    /// A method that uses the graph, if any does.
    reads_graph: Option<Method>,
    /// All candidates, by class.
    whole: Vec<NoisyPool>,
    episodes: usize,
    /// Pools without the clean examples, by class and episode, where some are among the candidates.
    own: Vec<Option<NoisyPool>>,
    /// Which candidates are left out, by class and episode, ascending.
    removed: Vec<Vec<usize>>,
}

impl Pools {
    /// The pools of the classes of `batch`, with graphs if any setting uses them.
    pub(super) fn new(
        engine: &dyn Engine,
        task: &dyn Task,
        batch: &[usize],
        settings: &[Setting],
    ) -> Result<Pools> {
        let reads_graph = settings.iter().find_map(|setting| match &setting.source {
            Source::Scored(method) if method.build().is_ok_and(|model| model.uses_graph()) => {
                Some(method.clone())
            }
            _ => None,
        });
        let all_sizes = task.pool_sizes();
        let sizes: Vec<usize> = batch.iter().map(|&class| all_sizes[class]).collect();
        let pool = |b: usize| pool_of(engine, reads_graph.as_ref(), task.pool(batch[b])?);
        let whole = map_classes(&sizes, pool).into_iter().collect::<Result<_>>()?;
        Ok(Pools { reads_graph, whole, episodes: 0, own: Vec::new(), removed: Vec::new() })
    }

    /// Prepares for k shots: removes the clean examples of each episode from the pools they are in.
    pub(super) fn leave_out_clean(
        &mut self,
        engine: &dyn Engine,
        task: &dyn Task,
        batch: &[usize],
        k: usize,
        episodes: usize,
    ) -> Result<()> {
        let cells: Vec<(usize, usize)> =
            (0..batch.len()).flat_map(|b| (0..episodes).map(move |episode| (b, episode))).collect();
        let removed: Vec<Vec<usize>> =
            cells.iter().map(|&(b, episode)| task.removed(batch[b], episode, k)).collect();
        let sizes: Vec<usize> = cells.iter().map(|&(b, _)| self.whole[b].features().len()).collect();
        let own = |cell: usize| {
            if removed[cell].is_empty() {
                return Ok(None);
            }
            let kept: Vec<usize> =
                (0..sizes[cell]).filter(|place| removed[cell].binary_search(place).is_err()).collect();
            let features = self.whole[cells[cell].0].features().select(&kept);
            pool_of(engine, self.reads_graph.as_ref(), features).map(Some)
        };
        self.own = map_classes(&sizes, own).into_iter().collect::<Result<_>>()?;
        self.removed = removed;
        self.episodes = episodes;
        Ok(())
    }

    /// All candidates of a class of the batch.
    pub(super) fn whole(&self, b: usize) -> &NoisyPool {
        &self.whole[b]
    }

    /// The candidates of a class that take part in an episode.
    pub(super) fn of(&self, b: usize, episode: usize) -> &NoisyPool {
        self.own[b * self.episodes + episode].as_ref().unwrap_or(&self.whole[b])
    }

    /// The candidates of a class that are left out of an episode.
    pub(super) fn removed(&self, b: usize, episode: usize) -> &[usize] {
        &self.removed[b * self.episodes + episode]
    }

    /// Extends the relevance of an episode's candidates to all candidates, with zeros for those left out.
    pub(super) fn spread(&self, relevance: Vec<f32>, b: usize, episode: usize) -> Vec<f32> {
        spread(relevance, self.removed(b, episode), self.whole[b].features().len())
    }
}

fn pool_of(engine: &dyn Engine, reads_graph: Option<&Method>, features: Features) -> Result<NoisyPool> {
    Ok(match reads_graph {
        Some(method) => engine.pool(method, features)?,
        None => NoisyPool::new(features),
    })
}

/// Inserts zeros where candidates were left out.
fn spread(relevance: Vec<f32>, removed: &[usize], n: usize) -> Vec<f32> {
    if removed.is_empty() {
        return relevance;
    }
    let mut given = relevance.into_iter();
    let weight = |place: usize| match removed.binary_search(&place) {
        Ok(_) => 0.0,
        Err(_) => given.next().unwrap_or(0.0),
    };
    (0..n).map(weight).collect()
}

/// The rows that each of these classes holds in memory: its candidates, once more for every episode with a pool of its own.
/// More shots only add clean examples, so the largest number of shots determines which episodes these are.
pub(super) fn rows_held(task: &dyn Task, classes: &[usize], grid: &Grid) -> Vec<usize> {
    let max_shots = grid.shots.iter().copied().max().unwrap_or(0);
    let sizes = task.pool_sizes();
    let n_own =
        |class: usize| (0..grid.episodes).filter(|&e| !task.removed(class, e, max_shots).is_empty()).count();
    classes.iter().map(|&class| sizes[class] * (1 + n_own(class))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_left_out_weigh_nothing_and_the_others_keep_their_order() {
        assert_eq!(spread(vec![0.5, 0.7], &[0, 2], 4), [0.0, 0.5, 0.0, 0.7]);
        assert_eq!(spread(vec![0.5, 0.7], &[], 2), [0.5, 0.7]);
    }
}
