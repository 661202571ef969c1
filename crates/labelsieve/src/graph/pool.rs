//! The candidates of a class, and where and how their neighbours are searched: in memory, out of core, or approximately.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use labelsieve_numerics::Watch;
use labelsieve_numerics::kernels::Aligned;
use labelsieve_numerics::level::Level;
use labelsieve_numerics::scratch::{OptionalScratch, Scratch};

use super::{NEIGHBOURS, Neighbours, NoisyGraph, Propagation, SortedRows};
use crate::error::{Result, check_len};
use crate::features::Features;

/// The noisy examples of one class and, where made in advance, the part of their graph that no choice of clean
/// examples changes.
pub struct NoisyPool {
    features: Features,
    graph: Option<NoisyGraph>,
    out_of_core: Option<OutOfCore>,
    approximate: Option<ApproximateSearch>,
}

/// The settings of an approximate search, and its measured recall.
#[derive(Clone)]
struct ApproximateSearch {
    wanted_recall: f64,
    /// The lowest recall of all searches; none before the first.
    lowest_recall: Arc<Mutex<Option<f64>>>,
}

/// The scratch space of a pool that is scored out of core.
struct OutOfCore {
    scratch: Arc<dyn Scratch>,
    /// The rows in the order of the last search, kept until the propagation that follows it.
    sorted: Mutex<Option<SortedRows>>,
}

impl NoisyPool {
    /// Candidates whose graph is made each time a model asks for it.
    pub fn new(features: Features) -> NoisyPool {
        NoisyPool { features, graph: None, out_of_core: None, approximate: None }
    }

    /// Candidates whose neighbours are searched with about the `wanted` recall, below 1, where there are very many of them
    /// ([`Neighbours::approximate`]).
    pub fn approximate(features: Features, wanted: f64) -> NoisyPool {
        let approximate = ApproximateSearch { wanted_recall: wanted, lowest_recall: Arc::default() };
        NoisyPool { approximate: Some(approximate), ..NoisyPool::new(features) }
    }

    /// The lowest recall that the searches so far have reached, as measured on some rows; none if all were exact.
    pub fn recall(&self) -> Option<f64> {
        let lowest = &self.approximate.as_ref()?.lowest_recall;
        let lowest = lowest.lock().unwrap_or_else(PoisonError::into_inner);
        lowest.filter(|&recall| recall < 1.0)
    }

    /// Candidates that are scored within the memory of `scratch`, which takes every large array that grows with them. The
    /// relevance is the same, bit for bit.
    pub fn out_of_core(features: Features, scratch: Arc<dyn Scratch>) -> NoisyPool {
        let out_of_core = OutOfCore { scratch, sorted: Mutex::default() };
        NoisyPool { out_of_core: Some(out_of_core), ..NoisyPool::new(features) }
    }

    /// Candidates with their graph, to be reused for every shot, episode and setting.
    pub fn with_graph(features: Features) -> NoisyPool {
        let graph = NoisyGraph::new(&features, NEIGHBOURS);
        NoisyPool { graph: Some(graph), ..NoisyPool::new(features) }
    }

    /// Candidates with a graph made by another engine.
    pub fn from_parts(features: Features, graph: NoisyGraph) -> Result<NoisyPool> {
        check_len("the graph of a pool", features.len(), graph.neighbours().len())?;
        Ok(NoisyPool { graph: Some(graph), ..NoisyPool::new(features) })
    }

    /// The features of the candidates.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// The graph made in advance, if it has `count` neighbours each.
    pub fn ready_graph(&self, count: usize) -> Option<&NoisyGraph> {
        self.graph.as_ref().filter(|graph| graph.count() == count)
    }

    /// The graph with `count` neighbours each: the one made in advance if it fits, else a new one.
    pub fn graph(&self, count: usize) -> Cow<'_, NoisyGraph> {
        match self.ready_graph(count) {
            Some(graph) => Cow::Borrowed(graph),
            None => Cow::Owned(NoisyGraph::new(&self.features, count)),
        }
    }

    /// The scratch space for arrays that grow with the pool; none if they stay in memory.
    pub(crate) fn scratch(&self) -> OptionalScratch<'_> {
        self.out_of_core.as_ref().map(|out_of_core| out_of_core.scratch.as_ref())
    }

    /// A pool of other features that is searched and stored the same way.
    pub(crate) fn with_features(&self, features: Features) -> NoisyPool {
        match &self.out_of_core {
            Some(OutOfCore { scratch, .. }) => NoisyPool::out_of_core(features, Arc::clone(scratch)),
            None => NoisyPool { approximate: self.approximate.clone(), ..NoisyPool::new(features) },
        }
    }

    /// The `count` nearest neighbours of `clean` and of all candidates, clean rows first; a graph made in advance saves the
    /// search.
    pub(crate) fn neighbours_with(
        &self,
        clean: &Features,
        count: usize,
        watch: &Watch,
    ) -> Result<Neighbours> {
        if let Some(graph) = self.ready_graph(count) {
            return Ok(graph.insert(clean, &self.features));
        }
        let neighbours = self.search(count, watch)?;
        NoisyGraph::from_neighbours(neighbours, count).insert_in(self.scratch(), clean, &self.features)
    }

    /// The `count` nearest noisy neighbours of each noisy example.
    fn search(&self, count: usize, watch: &Watch) -> Result<Neighbours> {
        if let Some(approximate) = &self.approximate {
            return approximate.search(&self.features, count, watch);
        }
        let Some(OutOfCore { scratch, sorted }) = &self.out_of_core else {
            return Neighbours::exact_watched(&self.features, count, watch);
        };
        let rows = SortedRows::new(Level::current(), &self.features, count, scratch.as_ref(), watch)?;
        let neighbours = Neighbours::exact_sorted(&rows, count, scratch.as_ref(), watch)?;
        *sorted.lock().unwrap_or_else(PoisonError::into_inner) = Some(rows);
        Ok(neighbours)
    }

    /// The noisy rows of Ã V. Takes the rows in the order of the last search with it: nothing else needs that order.
    pub(crate) fn propagate(&self, clean: &Features, propagation: &Propagation) -> Result<Aligned> {
        let Some(OutOfCore { scratch, sorted }) = &self.out_of_core else {
            let mut x = Aligned::zeros(self.features.len() * clean.dim());
            propagation.propagate_rows(clean, &self.features, |i| clean.len() + i, &mut x);
            return Ok(x);
        };
        let sorted = sorted.lock().unwrap_or_else(PoisonError::into_inner).take();
        let sorted = sorted.unwrap_or_else(|| SortedRows::unsorted(&self.features));
        propagation.propagate_sorted(clean, sorted, scratch.as_ref())
    }
}

impl ApproximateSearch {
    fn search(&self, features: &Features, count: usize, watch: &Watch) -> Result<Neighbours> {
        let (neighbours, recall) = Neighbours::approximate(features, count, self.wanted_recall, watch)?;
        let mut lowest = self.lowest_recall.lock().unwrap_or_else(PoisonError::into_inner);
        *lowest = Some(lowest.unwrap_or(1.0).min(recall));
        Ok(neighbours)
    }
}
