//! The two test sets of the paper: new classes alone, and all classes together.

use serde::{Deserialize, Serialize};

use super::accuracy::{Accuracy, accuracy};
use crate::classifier::WeightMatrix;
use crate::error::Result;
use crate::features::Features;

/// Test examples of the novel classes and, if there are any, of the base classes.
pub struct TestSets {
    /// Test examples of the novel classes.
    pub novel: Features,
    /// Their classes, as rows of the classifier to be tested.
    pub novel_labels: Vec<usize>,
    /// The base classes, if there are any.
    pub base: Option<BaseTest>,
}

/// Base classes: their weights and test examples.
pub struct BaseTest {
    /// W_B.
    pub weights: WeightMatrix,
    /// Test examples.
    pub features: Features,
    /// Their classes, as rows of `weights`.
    pub labels: Vec<usize>,
}

/// The accuracy of a classifier of the novel classes on both test sets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestAccuracy {
    /// Novel test examples among the novel classes.
    pub novel: Accuracy,
    /// All test examples among base and novel classes, by W_A = [W_B, W].
    pub all: Option<Accuracy>,
}

impl TestSets {
    /// Tests the weights W of the novel classes.
    pub fn measure(&self, novel: &WeightMatrix) -> Result<TestAccuracy> {
        let all = self.base.as_ref().map(|base| {
            let n_base = base.weights.weights().len();
            let novel_labels = self.novel_labels.iter().map(|label| n_base + label);
            let labels: Vec<usize> = base.labels.iter().copied().chain(novel_labels).collect();
            accuracy(&base.weights.with_novel(novel)?, &base.features.stack(&self.novel)?, &labels)
        });
        Ok(TestAccuracy { novel: accuracy(novel, &self.novel, &self.novel_labels)?, all: all.transpose()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classifier::{Cosine, WeightedClass, prototypes};
    use crate::engine::{Cpu, Engine, Job};
    use crate::graph::NoisyPool;
    use crate::model::{ClassProblem, Relevance};
    use crate::relevance::{Beta, Method};
    use crate::synthetic::Recipe;

    #[test]
    fn weighted_pools_beat_untreated_ones_and_few_clean_examples_on_generated_noise() {
        let recipe = Recipe { n_classes: 10, n_clean: 1, largest_pool: 200, ..Recipe::default() };
        let task = recipe.generate(3);
        let tests = TestSets { novel: task.test, novel_labels: task.test_labels, base: None };
        let (clean, pools): (Vec<_>, Vec<_>) =
            task.classes.into_iter().map(|c| (c.clean, NoisyPool::with_graph(c.noisy))).unzip();
        let problems = clean.iter().zip(&pools).map(|(clean, pool)| ClassProblem::new(clean, pool).unwrap());
        let jobs: Vec<Job> = problems.map(|problem| Job { problem, seed: 0 }).collect();
        let relevance_of = |method: &Method| Cpu.relevance(method, &jobs, &|_, _| ()).unwrap();
        let gcn = relevance_of(&Method::gcn());
        let untreated = relevance_of(&Method::Beta(Beta { beta: 1.0 }));
        let none = relevance_of(&Method::Beta(Beta { beta: 0.0 }));
        let reach = |relevance: &[Relevance], cosine: Option<Cosine>| {
            let examples = clean.iter().zip(&pools).zip(relevance);
            let weighted: Vec<WeightedClass> = examples
                .map(|((clean, pool), r)| WeightedClass::new(clean, pool.features(), r.noisy()).unwrap())
                .collect();
            let learned = match cosine {
                Some(cosine) => cosine.train(&weighted, recipe.dim, 0),
                None => prototypes(&weighted, recipe.dim, 10.0),
            };
            tests.measure(&learned.unwrap()).unwrap().novel.top_1
        };
        let gcn_proto = reach(&gcn, None);
        let untreated = reach(&untreated, None);
        let clean_only = reach(&none, None);
        assert!(gcn_proto > untreated && gcn_proto > clean_only, "{gcn_proto}, {untreated}, {clean_only}");
        assert!(reach(&gcn, Some(Cosine::default())) > untreated);
    }

    #[test]
    fn all_classes_are_tested_together_with_the_base_ones() {
        let row = |values: &[f32]| Features::new(values.to_vec(), 3).unwrap();
        let weights = WeightMatrix::new(row(&[1.0, 0.0, 0.0]), 10.0).unwrap();
        let base = BaseTest { weights, features: row(&[1.0, 0.1, 0.0]), labels: vec![0] };
        let novel = row(&[0.0, 1.0, 0.1, 0.9, 0.0, 0.2]);
        let tests = TestSets { novel, novel_labels: vec![0, 1], base: Some(base) };
        let learned = WeightMatrix::new(row(&[0.0, 1.0, 0.0, 0.0, 0.0, 1.0]), 10.0).unwrap();
        let measured = tests.measure(&learned).unwrap();
        assert_eq!(measured.novel.top_1, 1.0);
        assert!((measured.all.unwrap().top_1 - 2.0 / 3.0).abs() < 1e-9); // the last one looks like the base class
    }
}
