//! The centre: what a class problem is, what scores it, and what learns from the scores. Read this file first.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use labelsieve_numerics::Watch;
use labelsieve_numerics::kernels::Aligned;
use labelsieve_numerics::level::Level;
use labelsieve_numerics::scratch::{Place, Scratch};

use crate::decision::Decision;
use crate::engine::Job;
use crate::error::{Error, Result};
use crate::features::Features;
use crate::graph::{Affinity, NEIGHBOURS, Neighbours, NoisyGraph, Propagation, Sorted};

/// Scores how much each noisy example of one class belongs to it.
pub trait RelevanceModel: Send + Sync {
    /// One number in [0, 1] per noisy example; the same seed gives the same numbers at any number of threads.
    fn relevance(&self, problem: &ClassProblem, seed: u64) -> Result<Relevance>;

    /// The relevance of jobs that share one pool, each told to `finished` once it is done. The numbers are those of
    /// [`RelevanceModel::relevance`], and so is the work, unless a model can save some.
    fn relevance_of_all(
        &self,
        jobs: &[Job],
        finished: &(dyn Fn(usize, &Relevance) + Sync),
    ) -> Vec<Result<Relevance>> {
        one_by_one(self, jobs, finished)
    }

    /// Whether the model reads the graph, so that one made in advance ([`NoisyPool::with_graph`]) pays.
    fn uses_graph(&self) -> bool {
        false
    }
}

/// Jobs one after the other; after a stop, no further one is begun.
pub(crate) fn one_by_one<M: RelevanceModel + ?Sized>(
    model: &M,
    jobs: &[Job],
    finished: &(dyn Fn(usize, &Relevance) + Sync),
) -> Vec<Result<Relevance>> {
    let score = |(i, job): (usize, &Job)| {
        job.problem.watch().check()?;
        let relevance = model.relevance(&job.problem, job.seed)?;
        finished(i, &relevance);
        Ok(relevance)
    };
    jobs.iter().enumerate().map(score).collect()
}

/// Scores examples against every class; the largest score wins (eq. 4).
pub trait Classifier {
    /// Number of classes K.
    fn n_classes(&self) -> usize;

    /// N×K scores.
    fn scores(&self, features: &Features) -> Scores;
}

/// The examples of one class: k verified ones and the candidates found by text.
#[derive(Clone, Copy)]
pub struct ClassProblem<'a> {
    /// The k clean examples, at least one.
    pub clean: &'a Features,
    /// The noisy examples, any number.
    pub noisy: &'a NoisyPool,
    /// Examples of other classes, for the models that learn from them; may be empty.
    pub others: Option<&'a Features>,
    /// The direction of every other class, for the models that ask which of them brought a candidate; may be empty.
    pub other_classes: Option<&'a Features>,
    /// How many of these are base classes.
    n_base: usize,
    /// Whether what all classes share was taken off the features.
    is_centred: bool,
    /// The graph, where several models share it, with the number of neighbours it was made with.
    affinity: Option<(usize, &'a Arc<Affinity>)>,
    /// One per noisy example, or none at all.
    decisions: &'a [Option<Decision>],
    watch: &'a Watch,
}

impl<'a> ClassProblem<'a> {
    /// A problem without examples of other classes.
    pub fn new(clean: &'a Features, noisy: &'a NoisyPool) -> Result<ClassProblem<'a>> {
        if clean.is_empty() {
            return Err(Error::NoCleanExample);
        }
        clean.check_width("the noisy set", noisy.features(), "the clean set")?;
        Ok(ClassProblem {
            clean,
            noisy,
            others: None,
            other_classes: None,
            n_base: 0,
            is_centred: false,
            affinity: None,
            decisions: &[],
            watch: Watch::unwatched(),
        })
    }

    /// Adds examples of other classes.
    pub fn with_others(self, others: &'a Features) -> Result<ClassProblem<'a>> {
        self.clean.check_width("the set of other classes", others, "the clean set")?;
        Ok(ClassProblem { others: Some(others), ..self })
    }

    /// Adds the directions of the other classes, a row each.
    pub fn with_other_classes(self, rows: &'a Features) -> Result<ClassProblem<'a>> {
        self.clean.check_width("the set of other classes", rows, "the clean set")?;
        Ok(ClassProblem { other_classes: Some(rows), n_base: 0, ..self })
    }

    /// The same examples with features that no longer have what all classes share.
    pub(crate) fn centred(
        self,
        clean: &'a Features,
        noisy: &'a NoisyPool,
        other_classes: &'a Features,
    ) -> ClassProblem<'a> {
        ClassProblem {
            clean,
            noisy,
            other_classes: Some(other_classes),
            is_centred: true,
            affinity: None,
            ..self
        }
    }

    pub(crate) fn is_centred(&self) -> bool {
        self.is_centred
    }

    /// Says that the last `n_base` of the other classes are base classes, which have no candidates of their own.
    pub fn of_which_base(self, n_base: usize) -> ClassProblem<'a> {
        ClassProblem { n_base: n_base.min(self.other_classes.map_or(0, Features::len)), ..self }
    }

    /// How many of the other classes are base classes.
    pub fn n_base(&self) -> usize {
        self.n_base
    }

    /// Adds what a person has decided about the noisy examples, one entry each. The pool and its graph stay as they are: an
    /// accepted example counts as a clean one and has relevance 1, a rejected one as a known negative and has relevance 0.
    pub fn with_decisions(self, decisions: &'a [Option<Decision>]) -> Result<ClassProblem<'a>> {
        let (expected, found) = (self.noisy.features().len(), decisions.len());
        if expected != found {
            return Err(Error::Length { what: "decisions", expected, found });
        }
        Ok(ClassProblem { decisions, ..self })
    }

    /// What was decided about noisy example `i`.
    pub fn decision(&self, i: usize) -> Option<Decision> {
        self.decisions.get(i).copied().flatten()
    }

    /// The noisy examples with this decision, in order.
    pub fn decided(&self, decision: Decision) -> Vec<usize> {
        (0..self.decisions.len()).filter(|&i| self.decisions[i] == Some(decision)).collect()
    }

    /// What a model says of the noisy examples, with the decided ones at what the person said.
    pub fn settle(&self, mut relevance: Relevance) -> Relevance {
        let probability = relevance.probability.as_deref_mut().unwrap_or_default();
        for numbers in [&mut relevance.noisy[..], probability] {
            for (number, decision) in numbers.iter_mut().zip(self.decisions) {
                if let Some(fixed) = decision.and_then(Decision::relevance) {
                    *number = fixed;
                }
            }
        }
        relevance
    }

    /// Lets `watch` follow and stop the work on this problem.
    pub fn watched(self, watch: &'a Watch) -> ClassProblem<'a> {
        ClassProblem { watch, ..self }
    }

    /// Who follows the work.
    pub fn watch(&self) -> &'a Watch {
        self.watch
    }

    /// The `count` nearest neighbours of all examples, clean rows first; the pool's own graph saves the search.
    pub fn neighbours(&self, count: usize) -> Result<Neighbours> {
        let noisy = self.noisy.features();
        match self.noisy.ready_graph(count) {
            Some(graph) => Ok(graph.insert(self.clean, noisy)),
            None => {
                let found = self.noisy.search(count, self.watch)?;
                NoisyGraph::from_neighbours(found, count).insert_in(self.noisy.scratch(), self.clean, noisy)
            }
        }
    }

    /// The affinity of all examples to their `count` nearest neighbours, clean rows first.
    pub(crate) fn affinity(&self, count: usize) -> Result<Arc<Affinity>> {
        match self.affinity {
            Some((made_with, affinity)) if made_with == count => Ok(Arc::clone(affinity)),
            _ => Ok(Arc::new(Affinity::reciprocal_in(self.noisy.scratch(), &self.neighbours(count)?)?)),
        }
    }

    /// Lets several models share one [`ClassProblem::affinity`].
    pub(crate) fn with_affinity(self, count: usize, affinity: &'a Arc<Affinity>) -> ClassProblem<'a> {
        ClassProblem { affinity: Some((count, affinity)), ..self }
    }
}

/// The noisy examples of one class and, where made in advance, the part of their graph that no choice of clean
/// examples changes.
pub struct NoisyPool {
    features: Features,
    graph: Option<NoisyGraph>,
    out_of_core: Option<OutOfCore>,
    approximate: Option<Approximate>,
}

/// What a pool has whose neighbours are searched approximately.
#[derive(Clone)]
struct Approximate {
    wanted: f64,
    /// The lowest recall of all searches.
    reached: Arc<Mutex<Option<f64>>>,
}

/// What a pool has that is scored out of core.
struct OutOfCore {
    scratch: Arc<dyn Scratch>,
    /// Its rows in the order of the last search, until nobody needs them any more.
    sorted: Mutex<Option<Sorted>>,
}

impl NoisyPool {
    /// Candidates whose graph is made when a model asks for it, each time.
    pub fn new(features: Features) -> NoisyPool {
        NoisyPool { features, graph: None, out_of_core: None, approximate: None }
    }

    /// Candidates whose neighbours are searched with about the `wanted` recall, below 1, where they are very many
    /// ([`Neighbours::approximate`]).
    pub fn approximate(features: Features, wanted: f64) -> NoisyPool {
        let approximate = Approximate { wanted, reached: Arc::default() };
        NoisyPool { approximate: Some(approximate), ..NoisyPool::new(features) }
    }

    /// The lowest recall that the searches so far have reached, as measured on some rows; none where all were exact.
    pub fn recall(&self) -> Option<f64> {
        let reached = self.approximate.as_ref()?.reached.lock().unwrap_or_else(PoisonError::into_inner);
        reached.filter(|&recall| recall < 1.0)
    }

    /// Candidates that are scored within the memory of `scratch`, where everything goes that grows with them and is large. The
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
        let (expected, found) = (features.len(), graph.neighbours().len());
        if expected != found {
            return Err(Error::Length { what: "the graph of a pool", expected, found });
        }
        Ok(NoisyPool { graph: Some(graph), ..NoisyPool::new(features) })
    }

    /// The examples.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// The graph made in advance, if there is one with `count` neighbours each.
    pub fn ready_graph(&self, count: usize) -> Option<&NoisyGraph> {
        self.graph.as_ref().filter(|graph| graph.count() == count)
    }

    /// Their graph with `count` neighbours each: the one made in advance if it fits, else a new one.
    pub fn graph(&self, count: usize) -> Cow<'_, NoisyGraph> {
        match self.ready_graph(count) {
            Some(graph) => Cow::Borrowed(graph),
            None => Cow::Owned(NoisyGraph::new(&self.features, count)),
        }
    }

    /// Where arrays go that grow with the pool; none: to memory.
    pub(crate) fn scratch(&self) -> Place<'_> {
        self.out_of_core.as_ref().map(|out_of_core| out_of_core.scratch.as_ref())
    }

    /// A pool of other features that is scored where this one is.
    pub(crate) fn with_features(&self, features: Features) -> NoisyPool {
        match &self.out_of_core {
            Some(OutOfCore { scratch, .. }) => NoisyPool::out_of_core(features, Arc::clone(scratch)),
            None => NoisyPool { approximate: self.approximate.clone(), ..NoisyPool::new(features) },
        }
    }

    /// The `count` nearest noisy neighbours of each noisy example.
    fn search(&self, count: usize, watch: &Watch) -> Result<Neighbours> {
        if let Some(Approximate { wanted, reached }) = &self.approximate {
            let (found, recall) = Neighbours::approximate(&self.features, count, *wanted, watch)?;
            let mut reached = reached.lock().unwrap_or_else(PoisonError::into_inner);
            *reached = Some(reached.unwrap_or(1.0).min(recall));
            return Ok(found);
        }
        let Some(OutOfCore { scratch, sorted }) = &self.out_of_core else {
            return Neighbours::exact_watched(&self.features, count, watch);
        };
        let rows = Sorted::new(Level::current(), &self.features, count, scratch.as_ref(), watch)?;
        let found = Neighbours::exact_sorted(&rows, count, scratch.as_ref(), watch)?;
        *sorted.lock().unwrap_or_else(PoisonError::into_inner) = Some(rows);
        Ok(found)
    }

    /// The noisy rows of Ã V. Nothing else needs the order of the search after this.
    pub(crate) fn propagate(&self, clean: &Features, propagation: &Propagation) -> Result<Aligned> {
        let Some(OutOfCore { scratch, sorted }) = &self.out_of_core else {
            let mut x = Aligned::zeros(self.features.len() * clean.dim());
            propagation.propagate_rows(clean, &self.features, |i| clean.len() + i, &mut x);
            return Ok(x);
        };
        let sorted = sorted.lock().unwrap_or_else(PoisonError::into_inner).take();
        let sorted = sorted.unwrap_or_else(|| Sorted::as_they_are(&self.features));
        propagation.propagate_sorted(clean, sorted, scratch.as_ref())
    }
}

/// The relevance of a class's noisy examples. Clean examples have relevance 1 by definition.
#[derive(Clone, Debug, PartialEq)]
pub struct Relevance {
    noisy: Vec<f32>,
    probability: Option<Vec<f32>>,
    reciprocal_neighbours: Option<Vec<u32>>,
    choice: Option<String>,
}

impl Relevance {
    /// Wraps one number per noisy example, each in [0, 1].
    pub fn new(noisy: Vec<f32>) -> Result<Relevance> {
        check_range("relevance", &noisy)?;
        Ok(Relevance { noisy, probability: None, reciprocal_neighbours: None, choice: None })
    }

    /// Adds, for the models that can tell, how probable it is that each noisy example belongs to the class.
    pub fn with_probability(self, probability: Vec<f32>) -> Result<Relevance> {
        let (expected, found) = (self.noisy.len(), probability.len());
        if expected != found {
            return Err(Error::Length { what: "probabilities", expected, found });
        }
        check_range("probability", &probability)?;
        Ok(Relevance { probability: Some(probability), ..self })
    }

    /// Adds, for the models that read the graph, how many reciprocal neighbours each noisy example has in it.
    pub fn with_reciprocal_neighbours(self, counts: Vec<u32>) -> Relevance {
        Relevance { reciprocal_neighbours: Some(counts), ..self }
    }

    /// Adds, for a model that chooses its settings by the class, what it chose and why, in one sentence.
    pub fn with_choice(self, words: String) -> Relevance {
        Relevance { choice: Some(words), ..self }
    }

    /// One number per noisy example.
    pub fn noisy(&self) -> &[f32] {
        &self.noisy
    }

    /// How probable it is that each noisy example belongs to the class, from models that can tell.
    pub fn probability(&self) -> Option<&[f32]> {
        self.probability.as_deref()
    }

    /// How many reciprocal neighbours each noisy example has, from models that read the graph.
    pub fn reciprocal_neighbours(&self) -> Option<&[u32]> {
        self.reciprocal_neighbours.as_deref()
    }

    /// What the model chose for this class and why, from models that choose.
    pub fn choice(&self) -> Option<&str> {
        self.choice.as_deref()
    }
}

fn check_range(name: &'static str, numbers: &[f32]) -> Result<()> {
    match numbers.iter().find(|r| !(0.0..=1.0).contains(*r)) {
        Some(found) => Err(Error::Setting { name, expected: "a number in [0, 1]", found: found.to_string() }),
        None => Ok(()),
    }
}

/// N×K scores, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Scores {
    /// The numbers, one row of K per example.
    pub values: Vec<f32>,
    /// K.
    pub n_classes: usize,
}

impl Scores {
    /// The scores of each example in turn.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.values.chunks_exact(self.n_classes.max(1))
    }
}
