//! The centre: a class to be scored, what scores it, and what learns from the scores. Read this file first.

use labelsieve_numerics::Watch;

use crate::decision::Decision;
use crate::error::{Error, Result, check_len};
use crate::features::Features;
use crate::graph::{NoisyPool, SharedAffinity};

/// Scores how much each noisy example of one class belongs to it.
pub trait RelevanceModel: Send + Sync {
    /// One number in [0, 1] per noisy example; the same seed gives the same numbers at any number of threads.
    fn relevance(&self, problem: &ClassProblem, seed: u64) -> Result<Relevance>;

    /// The relevance of jobs that share one pool, in order; `finished` is called with each result as soon as it is known.
    /// The numbers equal those of [`RelevanceModel::relevance`]; a model overrides this if jobs can share work.
    fn relevance_of_all(
        &self,
        jobs: &[Job],
        finished: &(dyn Fn(usize, &Relevance) + Sync),
    ) -> Vec<Result<Relevance>> {
        one_by_one(self, jobs, finished)
    }

    /// Whether the model reads the graph, so that making it in advance ([`NoisyPool::with_graph`]) pays.
    fn uses_graph(&self) -> bool {
        false
    }
}

/// Scores examples against every class; the largest score wins (eq. 4).
pub trait Classifier {
    /// Number of classes K.
    fn n_classes(&self) -> usize;

    /// N×K scores.
    fn scores(&self, features: &Features) -> Scores;

    /// How far each example is from the class of its highest score; `scores` are those of `features`. Cosines leave 1 − the cosine.
    fn distances(&self, features: &Features, scores: &Scores) -> Vec<f32> {
        (0..features.len()).map(|row| 1.0 - scores.row(row)[scores.best(row)]).collect()
    }
}

/// One class to be scored, and the seed of its random numbers.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// The examples of the class.
    pub problem: ClassProblem<'a>,
    /// Seed of its random numbers.
    pub seed: u64,
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
    /// One direction per other class, for the models that ask which class a candidate comes from; may be empty.
    pub other_classes: Option<&'a Features>,
    /// Number of base classes among the other classes.
    pub(crate) n_base: usize,
    /// Whether the mean direction of all classes was subtracted from the features.
    pub(crate) is_centred: bool,
    /// The graph, where several models share one.
    pub(crate) shared_affinity: Option<&'a SharedAffinity>,
    /// One per noisy example, or empty.
    pub(crate) decisions: &'a [Option<Decision>],
    pub(crate) watch: &'a Watch,
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
            shared_affinity: None,
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

    /// Marks the last `n_base` of the other classes as base classes, which have no candidates of their own.
    pub fn of_which_base(self, n_base: usize) -> ClassProblem<'a> {
        ClassProblem { n_base: n_base.min(self.other_classes.map_or(0, Features::len)), ..self }
    }

    /// Number of base classes among the other classes.
    pub fn n_base(&self) -> usize {
        self.n_base
    }

    /// Adds a person's decisions on the noisy examples, one entry each. The pool and its graph stay the same: an accepted
    /// example counts as a clean one and has relevance 1, a rejected one as a known negative and has relevance 0.
    pub fn with_decisions(self, decisions: &'a [Option<Decision>]) -> Result<ClassProblem<'a>> {
        check_len("decisions", self.noisy.features().len(), decisions.len())?;
        Ok(ClassProblem { decisions, ..self })
    }

    /// Reports progress to `watch`, which can also stop the work.
    pub fn watched(self, watch: &'a Watch) -> ClassProblem<'a> {
        ClassProblem { watch, ..self }
    }

    /// Progress and cancellation of the work on this problem.
    pub fn watch(&self) -> &'a Watch {
        self.watch
    }
}

/// The relevance of a class's noisy examples. Clean examples have relevance 1 by definition.
#[derive(Clone, Debug, PartialEq)]
pub struct Relevance {
    pub(crate) noisy: Vec<f32>,
    pub(crate) probability: Option<Vec<f32>>,
    reciprocal_neighbours: Option<Vec<u32>>,
    choice: Option<String>,
}

impl Relevance {
    /// Wraps one number per noisy example, each in [0, 1].
    pub fn new(noisy: Vec<f32>) -> Result<Relevance> {
        check_range("relevance", &noisy)?;
        Ok(Relevance { noisy, probability: None, reciprocal_neighbours: None, choice: None })
    }

    /// Adds the probability that each noisy example belongs to the class.
    pub fn with_probability(self, probability: Vec<f32>) -> Result<Relevance> {
        check_len("probabilities", self.noisy.len(), probability.len())?;
        check_range("probability", &probability)?;
        Ok(Relevance { probability: Some(probability), ..self })
    }

    /// Adds the number of reciprocal neighbours of each noisy example in the graph.
    pub fn with_reciprocal_neighbours(self, counts: Vec<u32>) -> Relevance {
        Relevance { reciprocal_neighbours: Some(counts), ..self }
    }

    /// Adds the settings that a model chose for this class and why, in one sentence.
    pub fn with_choice(self, sentence: String) -> Relevance {
        Relevance { choice: Some(sentence), ..self }
    }

    /// One number per noisy example.
    pub fn noisy(&self) -> &[f32] {
        &self.noisy
    }

    /// The probability that each noisy example belongs to the class, from models that estimate it.
    pub fn probability(&self) -> Option<&[f32]> {
        self.probability.as_deref()
    }

    /// The number of reciprocal neighbours of each noisy example, from models that read the graph.
    pub fn reciprocal_neighbours(&self) -> Option<&[u32]> {
        self.reciprocal_neighbours.as_deref()
    }

    /// The settings chosen for this class and why, from models that choose.
    pub fn choice(&self) -> Option<&str> {
        self.choice.as_deref()
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

    /// The scores of one example.
    pub fn row(&self, example: usize) -> &[f32] {
        &self.values[example * self.n_classes..(example + 1) * self.n_classes]
    }

    /// The class of highest score of an example, the first of equals.
    pub fn best(&self, example: usize) -> usize {
        let scores = self.row(example).iter().enumerate();
        scores
            .fold((0, f32::NEG_INFINITY), |best, (c, &score)| if score > best.1 { (c, score) } else { best })
            .0
    }
}

/// Scores jobs in order; after a stop, no further one is started.
pub(crate) fn one_by_one<M: RelevanceModel + ?Sized>(
    model: &M,
    jobs: &[Job],
    finished: &(dyn Fn(usize, &Relevance) + Sync),
) -> Vec<Result<Relevance>> {
    let mut results = Vec::with_capacity(jobs.len());
    for (i, job) in jobs.iter().enumerate() {
        let stopped = job.problem.watch().check().map_err(Error::from);
        let result = stopped.and_then(|()| model.relevance(&job.problem, job.seed));
        results.push(result.inspect(|relevance| finished(i, relevance)));
    }
    results
}

fn check_range(name: &'static str, numbers: &[f32]) -> Result<()> {
    match numbers.iter().find(|r| !(0.0..=1.0).contains(*r)) {
        Some(found) => Err(Error::Setting { name, expected: "a number in [0, 1]", found: found.to_string() }),
        None => Ok(()),
    }
}
