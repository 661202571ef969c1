//! Scores the candidates of many classes, as many at a time as memory takes.
//!
//! This is the one place where a class becomes a [`Job`]: which random numbers it draws, which examples of other classes it
//! learns from, and which candidates take no part because they are clean examples of the class themselves.

mod class_context;
mod class_relevance;

use std::sync::{Arc, Mutex};

use labelsieve::engine::{Engine, Job};
use labelsieve::relevance::MAX_OTHERS;
use labelsieve::{Decision, Features, Method, NoisyPool};
use labelsieve_files::ScratchFolder;
use labelsieve_files::inputs::copies::identical_rows;
use labelsieve_files::work::{Context, Error, Result};
use labelsieve_numerics::random::Stream;
use labelsieve_numerics::{Scratch, Watch};
use rayon::prelude::*;

pub use class_context::{ClassContext, Directions};
pub use class_relevance::{ClassRelevance, RECORDS};

use crate::memory::Batch;

/// The classes of a run and how they are scored.
pub struct Scoring<'a> {
    /// How relevance is scored.
    pub method: &'a Method,
    /// Where it is scored.
    pub engine: &'a dyn Engine,
    /// With a class's name it decides the class's random numbers.
    pub seed: u64,
    /// The names of all classes.
    pub names: &'a [&'a str],
    /// The clean examples of all classes: few enough to keep.
    pub clean: &'a [Features],
    /// The directions of base classes, which candidates may come from as well.
    pub base: Option<&'a Features>,
    /// Numbers of candidates of all classes.
    pub pool_sizes: &'a [usize],
    /// What people decided about the candidates of each class, one entry per candidate; empty for no decisions at all.
    pub decisions: &'a [Vec<Option<Decision>>],
    /// The share of neighbours that a search among very many candidates should find, if not all.
    pub recall: Option<f64>,
}

/// A class on its way to the engine.
struct ClassInput {
    class: usize,
    pool: NoisyPool,
    drawn: ClassContext,
    copies: Vec<usize>,
    /// One per candidate that takes part, or none at all.
    decisions: Vec<Option<Decision>>,
}

impl Scoring<'_> {
    /// Scores some of the classes, given by their positions: `load` reads the candidates of one, `done` gets its result,
    /// in no particular order. An error of `done` ends the work after the classes under way.
    pub fn run(
        &self,
        classes: &[usize],
        load: &(dyn Fn(usize) -> Result<Features> + Sync),
        watch: &Watch,
        done: &(dyn Fn(usize, ClassRelevance) -> Result<()> + Sync),
    ) -> Result<()> {
        self.run_batches(&self.batches(classes), &|class, _| load(class), watch, done)
    }

    /// Classes that are in memory together when nobody sets a limit.
    pub fn batches(&self, classes: &[usize]) -> Vec<Batch> {
        let dim = self.clean.first().map_or(1, Features::dim);
        let n_clean: Vec<usize> = self.clean.iter().map(Features::len).collect();
        let held = rows_held(self.method, &n_clean, self.pool_sizes, self.base.map_or(0, Features::len));
        let held: Vec<usize> = classes.iter().map(|&class| held[class]).collect();
        let mut batches = Batch::in_memory(&held, dim);
        batches.iter_mut().flat_map(|batch| &mut batch.classes).for_each(|class| *class = classes[*class]);
        batches
    }

    /// The same for classes in batches that are in memory together, or one out of core: then `load` is told where its rows go
    /// that cannot stay where they are.
    pub fn run_batches(
        &self,
        batches: &[Batch],
        load: &(dyn Fn(usize, Option<&ScratchFolder>) -> Result<Features> + Sync),
        watch: &Watch,
        done: &(dyn Fn(usize, ClassRelevance) -> Result<()> + Sync),
    ) -> Result<()> {
        let directions = Directions::new(self.method, self.clean);
        for batch in batches {
            watch.check()?;
            let scratch = batch.scratch.as_ref();
            let read = |&class: &usize| -> Result<(Features, Vec<usize>)> {
                let noisy = load(class, scratch.map(Arc::as_ref))?;
                let copies = identical_rows(&self.clean[class], &noisy);
                Ok((noisy, copies))
            };
            let rows: Vec<Result<_>> = batch.classes.par_iter().map(read).collect();
            let inputs = batch.classes.iter().zip(rows).map(|(&class, rows)| {
                let (noisy, copies) = rows?;
                self.input(class, &directions, scratch, noisy, copies)
            });
            let inputs = inputs.collect::<Result<Vec<_>>>()?;
            let jobs = inputs
                .iter()
                .map(|input| {
                    let job = input.drawn.job(&self.clean[input.class], &input.pool)?;
                    let problem = match input.decisions.is_empty() {
                        true => job.problem,
                        false => job.problem.with_decisions(&input.decisions)?,
                    };
                    Ok(Job { problem: problem.watched(watch), ..job })
                })
                .collect::<labelsieve::Result<Vec<_>>>()?;
            let failure: Mutex<Option<Error>> = Mutex::default();
            self.engine.relevance(self.method, &jobs, &|i, relevance| {
                let scored = ClassRelevance::new(&jobs[i].problem, relevance, inputs[i].copies.clone());
                if let Err(error) = done(inputs[i].class, scored) {
                    failure.lock().unwrap_or_else(|poison| poison.into_inner()).get_or_insert(error);
                }
            })?;
            if let Some(error) = failure.into_inner().unwrap_or_else(|poison| poison.into_inner()) {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Scores one class whose candidates, without `copies`, are in memory with their graph, which changes the time and not
    /// the result; `decisions` has one entry for each of them.
    pub fn score_ready(
        &self,
        class: usize,
        pool: &NoisyPool,
        decisions: &[Option<Decision>],
        copies: Vec<usize>,
        watch: &Watch,
    ) -> Result<ClassRelevance> {
        let drawn = self.drawn(class, &Directions::new(self.method, self.clean))?;
        let job = drawn.job(&self.clean[class], pool)?;
        let problem = job.problem.with_decisions(decisions)?.watched(watch);
        let relevance = self.engine.relevance(self.method, &[Job { problem, ..job }], &|_, _| ())?;
        let relevance = relevance.first().context("an engine answers every job")?;
        Ok(ClassRelevance::new(&problem, relevance, copies))
    }

    fn drawn(&self, class: usize, directions: &Directions) -> Result<ClassContext> {
        let stream = Stream::new(self.seed).named(self.names[class]);
        let (negatives, seed) = (stream.branch(1), stream.bits(0));
        let drawn = ClassContext::among(directions, self.method, self.clean, class, negatives, seed);
        Ok(match self.base {
            Some(base) => drawn.with_base(base)?,
            None => drawn,
        })
    }

    /// `copies`: candidates that are clean examples of the class.
    fn input(
        &self,
        class: usize,
        directions: &Directions,
        scratch: Option<&Arc<ScratchFolder>>,
        noisy: Features,
        copies: Vec<usize>,
    ) -> Result<ClassInput> {
        let drawn = self.drawn(class, directions)?;
        let takes_part = |place: &usize| copies.binary_search(place).is_err();
        let decisions = self.decisions.get(class).map_or(&[][..], Vec::as_slice);
        let decisions = (0..decisions.len()).filter(takes_part).map(|place| decisions[place]).collect();
        let pool = match scratch {
            Some(scratch) => {
                let kept = || -> Vec<usize> { (0..noisy.len()).filter(takes_part).collect() };
                let noisy = match copies.is_empty() {
                    true => noisy,
                    false => noisy.select_in(&kept(), scratch.as_ref())?,
                };
                NoisyPool::out_of_core(noisy, Arc::clone(scratch) as Arc<dyn Scratch>)
            }
            None if self.engine.scores_in_parts() && matches!(self.method, Method::Auto(_)) => {
                self.engine.pool(self.method, without(noisy, &copies))? // one search for all parts
            }
            None => match self.recall {
                Some(recall) => NoisyPool::approximate(without(noisy, &copies), recall),
                None => NoisyPool::new(without(noisy, &copies)),
            },
        };
        Ok(ClassInput { class, pool, drawn, copies, decisions })
    }
}

/// How many rows are in memory while each class is worked on: its candidates and, for models that learn from other
/// classes, examples or directions of those. `n_clean`: clean examples of each class; `n_base`: base classes.
pub fn rows_held(method: &Method, n_clean: &[usize], pool_sizes: &[usize], n_base: usize) -> Vec<usize> {
    let all: usize = n_clean.iter().sum();
    let others = |of_class: usize| match method {
        Method::Linear(_) => (all - of_class).min(MAX_OTHERS),
        _ if method.uses_other_classes() => n_clean.len() - 1 + n_base,
        _ => 0,
    };
    pool_sizes.iter().zip(n_clean).map(|(n_noisy, &of_class)| n_noisy + others(of_class)).collect()
}

/// All rows but some, which are in ascending order.
pub fn without(features: Features, rows: &[usize]) -> Features {
    if rows.is_empty() {
        return features;
    }
    let kept: Vec<usize> = (0..features.len()).filter(|row| rows.binary_search(row).is_err()).collect();
    features.select(&kept)
}

#[cfg(test)]
mod tests {
    use labelsieve::engine::Cpu;
    use labelsieve::synthetic::Recipe;

    use super::*;

    #[test]
    fn a_class_is_scored_alike_with_any_others_and_copies_of_clean_examples_take_no_part() {
        let classes = Recipe { n_classes: 3, ..Recipe::default() }.generate(0).classes;
        let clean: Vec<Features> = classes.iter().map(|class| class.clean.clone()).collect();
        let pools: Vec<Features> = classes.iter().map(|class| class.noisy.clone()).collect();
        let sizes: Vec<usize> = pools.iter().map(Features::len).collect();
        let method = Method::gcn();
        let scoring = Scoring {
            method: &method,
            engine: &Cpu,
            seed: 7,
            names: &["a", "b", "c"],
            clean: &clean,
            base: None,
            pool_sizes: &sizes,
            decisions: &[],
            recall: None,
        };
        let score = |asked: &[usize], pools: &[Features]| {
            let found: Mutex<Vec<(usize, ClassRelevance)>> = Mutex::default();
            let load = |class: usize| Ok(pools[class].clone());
            let done = |class, scored| {
                found.lock().unwrap().push((class, scored));
                Ok(())
            };
            scoring.run(asked, &load, &Watch::new(), &done).unwrap();
            let mut found = found.into_inner().unwrap();
            found.sort_by_key(|(class, _)| *class);
            found
        };
        let all = score(&[0, 1, 2], &pools);
        assert_eq!(score(&[1], &pools), all[1..2]);

        let mut with_copy = pools.clone();
        with_copy[1] = clean[1].select(&[0]).stack(&pools[1]).unwrap();
        let (_, scored) = score(&[1], &with_copy).remove(0);
        assert_eq!(scored.copies, [0]);
        assert_eq!(scored.relevance, all[1].1.relevance);
    }

    #[test]
    fn decisions_stay_with_their_candidates_when_copies_of_clean_examples_leave_the_pool() {
        let class = Recipe { n_classes: 1, ..Recipe::default() }.generate(0).classes.remove(0);
        let n = class.noisy.len();
        let method = Method::gcn();
        let score = |noisy: &Features, decisions: &[Vec<Option<Decision>>]| {
            let scoring = Scoring {
                method: &method,
                engine: &Cpu,
                seed: 0,
                names: &["a"],
                clean: std::slice::from_ref(&class.clean),
                base: None,
                pool_sizes: &[noisy.len()],
                decisions,
                recall: None,
            };
            let found: Mutex<Vec<f32>> = Mutex::default();
            let done = |_, scored: ClassRelevance| {
                *found.lock().unwrap() = scored.relevance;
                Ok(())
            };
            scoring.run(&[0], &|_| Ok(noisy.clone()), &Watch::new(), &done).unwrap();
            found.into_inner().unwrap()
        };
        let mut decided = vec![None; n];
        (decided[0], decided[3]) = (Some(Decision::Reject), Some(Decision::Accept));
        let with_decisions = score(&class.noisy, &[decided.clone()]);
        assert_eq!((with_decisions[0], with_decisions[3]), (0.0, 1.0));
        let without = score(&class.noisy, &[]);
        assert!((0..n).any(|i| decided[i].is_none() && with_decisions[i] != without[i]));
        assert_eq!(score(&class.noisy, &[vec![None; n]]), without);

        let with_copy = class.clean.select(&[0]).stack(&class.noisy).unwrap();
        decided.insert(0, Some(Decision::Reject)); // about the copy
        assert_eq!(score(&with_copy, &[decided]), with_decisions);
        for decision in [Decision::Accept, Decision::Reject] {
            let expected = decision.relevance().unwrap();
            assert_eq!(score(&class.noisy, &[vec![Some(decision); n]]), vec![expected; n]);
        }
    }

    #[test]
    fn what_cannot_be_noted_ends_the_work() {
        let class = Recipe { n_classes: 1, ..Recipe::default() }.generate(0).classes.remove(0);
        let method = Method::Similarity(labelsieve::relevance::Similarity {});
        let scoring = Scoring {
            method: &method,
            engine: &Cpu,
            seed: 0,
            names: &["a"],
            clean: std::slice::from_ref(&class.clean),
            base: None,
            pool_sizes: &[class.noisy.len()],
            decisions: &[],
            recall: None,
        };
        let full = |_, _| Err(Error::input("disk full", ""));
        let error = scoring.run(&[0], &|_| Ok(class.noisy.clone()), &Watch::new(), &full).unwrap_err();
        assert_eq!(error.to_string(), "disk full");
        let stopped = Watch::new();
        stopped.stop();
        let done = |_, _| Ok(());
        assert!(scoring.run(&[0], &|_| Ok(class.noisy.clone()), &stopped, &done).unwrap_err().is_stopped());
    }
}
