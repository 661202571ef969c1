//! The simulated reviewer: decides about a few candidates of every class by the ground truth, and rescores the rest.

use labelsieve::classifier::{Cosine, WeightedClass};
use labelsieve::engine::{Engine, Job};
use labelsieve::evaluation::{accuracy, roc_auc};
use labelsieve::graph::{NEIGHBOURS, NoisyGraph};
use labelsieve::ordering::{Look, LookOrder, NEAR_DUPLICATES, near_duplicates};
use labelsieve::{ClassProblem, Decision, Features, Method, NoisyPool};
use labelsieve_files::work::{Progress, Result};
use labelsieve_jobs::scoring::ClassContext;
use labelsieve_numerics::random::Stream;
use rayon::prelude::*;

use crate::sets::{KnownClass, KnownSet};

/// One draw of clean examples, with all that the reviews in different orders share.
pub struct Session<'a> {
    engine: &'a dyn Engine,
    method: &'a Method,
    classes: Vec<ReviewedClass>,
    test: (Features, Vec<usize>),
    stream: Stream,
}

/// A class with its graph and its near-duplicates.
struct ReviewedClass {
    clean: Features,
    pool: NoisyPool,
    graph: NoisyGraph,
    groups: Vec<u32>,
    relevant: Vec<bool>,
}

/// The quality after some decisions.
#[derive(Clone, Copy, Debug)]
pub struct ReviewScore {
    /// Accuracy of prototypes on the test examples.
    pub top_1: f64,
    /// Area under the ROC curve over the undecided candidates, mean over the classes.
    pub auc: f64,
}

/// Numbers of pairs of similar candidates.
#[derive(Clone, Copy, Default)]
pub struct PairCounts {
    pub pairs: usize,
    /// Pairs of which both are relevant, or neither.
    pub same_truth: usize,
}

/// The state of a review: decisions and relevance of every class.
#[derive(Clone)]
struct State {
    decisions: Vec<Vec<Option<Decision>>>,
    relevance: Vec<Vec<f32>>,
}

impl<'a> Session<'a> {
    pub fn new(
        engine: &'a dyn Engine,
        method: &'a Method,
        set: &KnownSet,
        max_clean: usize,
        stream: Stream,
    ) -> Result<Session<'a>> {
        let drawn = set.draw(max_clean, stream.branch(0))?;
        // All drawn examples leave the pools, however many are used, so that figures for different numbers of clean examples are
        // about the same candidates.
        let ready = |(class, clean): (&KnownClass, &Vec<usize>)| {
            let (rows, relevant) = class.without(clean);
            let noisy = set.features.select(&rows);
            let graph = engine.noisy_graph(&noisy, NEIGHBOURS)?;
            Ok(ReviewedClass {
                clean: set.features.select(clean),
                pool: NoisyPool::from_parts(noisy, graph.clone())?,
                groups: near_duplicates(&graph, NEAR_DUPLICATES),
                graph,
                relevant,
            })
        };
        let classes = set.classes.iter().zip(&drawn).map(ready).collect::<Result<Vec<_>>>()?;
        Ok(Session { engine, method, classes, test: set.test(), stream })
    }

    /// Reviews with `shots` clean examples in each of the orders, and measures after each of these numbers of decisions per class;
    /// one row per order.
    pub fn review(
        &self,
        shots: usize,
        orders: &[LookOrder],
        steps: &[usize],
        progress: &Progress,
    ) -> Result<Vec<Vec<ReviewScore>>> {
        let clean: Vec<Features> =
            self.classes.iter().map(|class| class.clean.select(&(0..shots).collect::<Vec<_>>())).collect();
        let mut start = State {
            decisions: self.classes.iter().map(|class| vec![None; class.relevant.len()]).collect(),
            relevance: Vec::new(),
        };
        start.relevance = self.score(&clean, &start)?;
        orders.iter().map(|&order| self.in_order(&clean, start.clone(), order, steps, progress)).collect()
    }

    fn in_order(
        &self,
        clean: &[Features],
        mut state: State,
        order: LookOrder,
        steps: &[usize],
        progress: &Progress,
    ) -> Result<Vec<ReviewScore>> {
        let mut done = 0;
        let mut reached = Vec::with_capacity(steps.len());
        for &step in steps {
            if step > done {
                self.decide(clean, &mut state, order, step - done)?;
                state.relevance = self.score(clean, &state)?;
                done = step;
            }
            reached.push(self.measure(clean, &state)?);
            progress.inc(1);
        }
        Ok(reached)
    }

    /// Decides about the first `count` candidates of every class in this order. Near-duplicates get the same decision, right or wrong.
    fn decide(&self, clean: &[Features], state: &mut State, order: LookOrder, count: usize) -> Result<()> {
        let State { decisions, relevance } = state;
        decisions.par_iter_mut().enumerate().try_for_each(|(c, decisions)| {
            let class = &self.classes[c];
            let before = decisions.clone();
            let problem = ClassProblem::new(&clean[c], &class.pool)?.with_decisions(&before)?;
            let look = Look { problem: &problem, groups: &class.groups, relevance: &relevance[c] };
            for row in order.first(&look, count, self.stream.branch(1).branch(c as u64))? {
                let relevant = class.relevant[row as usize];
                let decision = if relevant { Decision::Accept } else { Decision::Reject };
                for (group, decided) in class.groups.iter().zip(decisions.iter_mut()) {
                    if *group == row {
                        *decided = Some(decision);
                    }
                }
            }
            Ok(())
        })
    }

    fn score(&self, clean: &[Features], state: &State) -> Result<Vec<Vec<f32>>> {
        let drawn: Vec<ClassContext> = (0..clean.len())
            .map(|c| {
                let negatives = self.stream.branch(2);
                let seeds = self.stream.branch(3);
                ClassContext::new(self.method, clean, c, negatives.branch(c as u64), seeds.bits(c as u64))
            })
            .collect();
        let jobs = (0..clean.len())
            .map(|c| {
                let job = drawn[c].job(&clean[c], &self.classes[c].pool)?;
                Ok(Job { problem: job.problem.with_decisions(&state.decisions[c])?, ..job })
            })
            .collect::<Result<Vec<_>>>()?;
        let scored = self.engine.relevance(self.method, &jobs, &|_, _| ())?;
        Ok(scored.iter().map(|relevance| relevance.noisy().to_vec()).collect())
    }

    fn measure(&self, clean: &[Features], state: &State) -> Result<ReviewScore> {
        let (features, labels) = &self.test;
        let weighted = (0..clean.len())
            .map(|c| WeightedClass::new(&clean[c], self.classes[c].pool.features(), &state.relevance[c]))
            .collect::<labelsieve::Result<Vec<_>>>()?;
        let matrix = self.engine.prototypes(&weighted, features.dim(), Cosine::default().scale)?;
        let areas: Vec<f64> = (0..clean.len()).filter_map(|c| self.auc(c, state)).collect();
        Ok(ReviewScore {
            top_1: accuracy(&matrix, features, labels)?.top_1,
            auc: areas.iter().sum::<f64>() / areas.len().max(1) as f64,
        })
    }

    fn auc(&self, c: usize, state: &State) -> Option<f64> {
        let undecided = (0..self.classes[c].relevant.len()).filter(|&row| state.decisions[c][row].is_none());
        let (relevance, truth): (Vec<f32>, Vec<bool>) =
            undecided.map(|row| (state.relevance[c][row], self.classes[c].relevant[row])).unzip();
        roc_auc(&relevance, &truth)
    }

    /// Counts pairs of candidates of one class with at least this similarity.
    pub fn pairs(&self, min_similarity: f32) -> PairCounts {
        let mut counts = PairCounts::default();
        for class in &self.classes {
            for row in 0..class.relevant.len() {
                let (others, similarities) = class.graph.neighbours().of(row);
                for (&other, &similarity) in others.iter().zip(similarities) {
                    if similarity >= min_similarity && row < other as usize {
                        counts.pairs += 1;
                        counts.same_truth +=
                            usize::from(class.relevant[row] == class.relevant[other as usize]);
                    }
                }
            }
        }
        counts
    }
}
