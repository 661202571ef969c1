//! The paper's protocol: clean the pools of all classes, learn a classifier from them, test it.

use serde::{Deserialize, Serialize};

use super::accuracy::{Accuracy, accuracy};
use crate::classifier::{Cosine, WeightMatrix, WeightedClass, prototypes};
use crate::engine::{Engine, Job};
use crate::error::{Error, Result};
use crate::features::Features;
use crate::model::{ClassProblem, NoisyPool, Relevance};
use crate::random::Stream;
use crate::relevance::Method;

/// The classifier learned from weighted examples, by name.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "classifier", rename_all = "kebab-case")]
pub enum ClassifierKind {
    /// Eq. (5).
    Prototype,
    /// Eq. (6).
    Cosine(Cosine),
}

/// What stays the same over shots and episodes: the pools of the novel classes and the test set.
pub struct FewShot<'a> {
    /// The candidates of each novel class.
    pub pools: &'a [NoisyPool],
    /// Test examples of the novel classes.
    pub test: &'a Features,
    /// Their classes, as positions in `pools`.
    pub test_labels: &'a [usize],
    /// The base classes' weights W_B and test examples, for accuracy over all classes.
    pub base: Option<BaseClasses<'a>>,
}

/// Classes that were there before.
#[derive(Clone, Copy)]
pub struct BaseClasses<'a> {
    /// W_B.
    pub weights: &'a WeightMatrix,
    /// Their test examples.
    pub test: &'a Features,
    /// The classes of those, as rows of `weights`.
    pub test_labels: &'a [usize],
}

/// One episode at one number of shots: the clean examples of each novel class.
pub struct Shot {
    /// By class, as in [`FewShot::pools`].
    pub clean: Vec<Features>,
}

/// What a learned classifier reaches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// Novel test examples among the novel classes.
    pub novel: Accuracy,
    /// All test examples among base and novel classes, where there are base classes.
    pub all: Option<Accuracy>,
}

/// Most examples of other classes offered to models that learn from them.
const MOST_OTHERS: usize = 1000;

impl FewShot<'_> {
    /// The relevance of every pool. `finished` is told each class as it is done, from any thread.
    pub fn clean(
        &self,
        engine: &dyn Engine,
        method: &Method,
        shot: &Shot,
        seed: u64,
        finished: &(dyn Fn(usize) + Sync),
    ) -> Result<Vec<Relevance>> {
        self.check(shot)?;
        let streams = (0..self.pools.len()).map(|class| Stream::new(seed).branch(class as u64));
        let others: Vec<Features> = match method {
            Method::Linear(_) => streams
                .clone()
                .enumerate()
                .map(|(c, stream)| others(&shot.clean, c, stream.branch(1)))
                .collect(),
            _ => Vec::new(),
        };
        let mut jobs = Vec::with_capacity(self.pools.len());
        for (class, stream) in streams.enumerate() {
            let mut problem = ClassProblem::new(&shot.clean[class], &self.pools[class])?;
            if let Some(others) = others.get(class) {
                problem = problem.with_others(others)?;
            }
            jobs.push(Job { problem, seed: stream.bits(0) });
        }
        engine.relevance(method, &jobs, &|class, _| finished(class))
    }

    /// A classifier from the clean examples and, with `relevance`, the pools.
    pub fn learn(
        &self,
        kind: &ClassifierKind,
        shot: &Shot,
        relevance: Option<&[Relevance]>,
        seed: u64,
    ) -> Result<WeightMatrix> {
        self.check(shot)?;
        let dim = self.test.dim();
        let nothing = Features::empty(dim);
        let class = |c: usize| match relevance {
            Some(relevance) => {
                WeightedClass::new(&shot.clean[c], self.pools[c].features(), relevance[c].noisy())
            }
            None => WeightedClass::new(&shot.clean[c], &nothing, &[]),
        };
        let classes = (0..self.pools.len()).map(class).collect::<Result<Vec<_>>>()?;
        match kind {
            ClassifierKind::Prototype => {
                let scale = self.base.map_or(Cosine::default().scale, |base| base.weights.scale());
                prototypes(&classes, dim, scale)
            }
            ClassifierKind::Cosine(settings) => settings.train(&classes, dim, seed),
        }
    }

    /// Accuracy on novel and, where there are base classes, on all classes.
    pub fn test(&self, novel: &WeightMatrix) -> Result<Learned> {
        let all = self.base.map(|base| {
            let n_base = base.weights.weights().len();
            let labels: Vec<usize> =
                base.test_labels.iter().copied().chain(self.test_labels.iter().map(|c| n_base + c)).collect();
            accuracy(&base.weights.with_novel(novel)?, &base.test.stack(self.test)?, &labels)
        });
        Ok(Learned { novel: accuracy(novel, self.test, self.test_labels)?, all: all.transpose()? })
    }

    fn check(&self, shot: &Shot) -> Result<()> {
        if shot.clean.len() == self.pools.len() {
            Ok(())
        } else {
            Err(Error::Length { what: "clean sets", expected: self.pools.len(), found: shot.clean.len() })
        }
    }
}

/// Clean examples of the classes other than `class`, at most a thousand, drawn at random.
pub fn others(clean: &[Features], class: usize, stream: Stream) -> Features {
    let dim = clean[class].dim();
    let rows: Vec<&[f32]> = clean
        .iter()
        .enumerate()
        .filter(|(c, _)| *c != class)
        .flat_map(|(_, features)| features.rows())
        .collect();
    let chosen = stream.choose(rows.len(), MOST_OTHERS);
    let data = chosen.iter().flat_map(|&i| rows[i].iter().copied()).collect();
    Features::new(data, dim).expect("rows of features are finite")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Cpu;
    use crate::relevance::Beta;
    use crate::synthetic::Recipe;

    #[test]
    fn cleaned_pools_beat_untreated_ones_and_few_clean_examples_on_generated_noise() {
        let recipe = Recipe { n_classes: 10, n_clean: 1, largest_pool: 200, ..Recipe::default() };
        let task = recipe.generate(3);
        let (clean, pools): (Vec<_>, Vec<_>) =
            task.classes.into_iter().map(|c| (c.clean, NoisyPool::with_graph(c.noisy))).unzip();
        let shot = Shot { clean };
        let few_shot =
            FewShot { pools: &pools, test: &task.test, test_labels: &task.test_labels, base: None };
        let reach = |method: Option<&Method>, kind: &ClassifierKind| {
            let relevance = method.map(|method| few_shot.clean(&Cpu, method, &shot, 0, &|_| ()).unwrap());
            let learned = few_shot.learn(kind, &shot, relevance.as_deref(), 0).unwrap();
            few_shot.test(&learned).unwrap().novel.top_1
        };
        let prototype = ClassifierKind::Prototype;
        let gcn = reach(Some(&Method::gcn()), &prototype);
        let untreated = reach(Some(&Method::Beta(Beta::default())), &prototype);
        let clean_only = reach(None, &prototype);
        assert!(gcn > untreated && gcn > clean_only, "{gcn}, {untreated}, {clean_only}");
        assert!(reach(Some(&Method::gcn()), &ClassifierKind::Cosine(Cosine::default())) > untreated);
    }

    #[test]
    fn all_classes_are_tested_together_with_the_base_ones() {
        let row = |values: &[f32]| Features::new(values.to_vec(), 3).unwrap();
        let weights = WeightMatrix::new(row(&[1.0, 0.0, 0.0]), 10.0).unwrap();
        let base = BaseClasses { weights: &weights, test: &row(&[1.0, 0.1, 0.0]), test_labels: &[0] };
        let pools = [NoisyPool::new(Features::empty(3)), NoisyPool::new(Features::empty(3))];
        let test = row(&[0.0, 1.0, 0.1, 0.9, 0.0, 0.2]);
        let few_shot = FewShot { pools: &pools, test: &test, test_labels: &[0, 1], base: Some(base) };
        let shot = Shot { clean: vec![row(&[0.0, 1.0, 0.0]), row(&[0.0, 0.0, 1.0])] };
        let learned = few_shot.learn(&ClassifierKind::Prototype, &shot, None, 0).unwrap();
        let reached = few_shot.test(&learned).unwrap();
        assert_eq!(reached.novel.top_1, 1.0);
        assert!((reached.all.unwrap().top_1 - 2.0 / 3.0).abs() < 1e-9); // the last one looks like the base class
    }
}
