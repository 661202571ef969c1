//! The contract of classifiers, checked on all those of `contract_learners`: here on ours, and in `labelsieve-bench` on the
//! systems that the paper compares with.

use labelsieve::Features;
use labelsieve::classifier::WeightedClass;
use labelsieve::evaluation::accuracy;
use labelsieve::synthetic::{Recipe, SyntheticTask};

use super::contract_learners::{DIM, all};

/// Classes with candidates to learn, and base classes of the same kind.
fn task() -> (SyntheticTask, Vec<Features>) {
    let recipe =
        Recipe { dim: DIM, n_classes: 8, n_clean: 3, largest_pool: 60, n_test: 20, ..Recipe::default() };
    let base = Recipe { n_clean: 12, largest_pool: 0, n_test: 1, ..recipe }.generate(21);
    (recipe.generate(20), base.classes.into_iter().map(|class| class.clean).collect())
}

fn weighted<'a>(task: &'a SyntheticTask, weights: &'a [Vec<f32>]) -> Vec<WeightedClass<'a>> {
    let classes = task.classes.iter().zip(weights);
    classes.map(|(class, weights)| WeightedClass::new(&class.clean, &class.noisy, weights).unwrap()).collect()
}

fn truth(task: &SyntheticTask) -> Vec<Vec<f32>> {
    let weight = |relevant: &bool| if *relevant { 1.0 } else { 0.1 };
    task.classes.iter().map(|class| class.truth.iter().map(weight).collect()).collect()
}

#[test]
fn every_classifier_does_better_than_chance_and_the_same_at_any_number_of_threads() {
    let (task, base) = task();
    let weights = truth(&task);
    let classes = weighted(&task, &weights);
    for (name, learn) in all(&base) {
        let with_threads = |n: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
            pool.install(|| {
                let learned = learn(&classes, 7);
                let reached = accuracy(learned.as_ref(), &task.test, &task.test_labels).unwrap().top_1;
                (learned.scores(&task.test).values, reached)
            })
        };
        let (scores, reached) = with_threads(1);
        assert_eq!(scores, with_threads(3).0, "{name}");
        assert_eq!(scores.len(), task.test.len() * 8, "{name}");
        assert!(scores.iter().all(|score| score.is_finite()), "{name}");
        assert!(reached > 0.3, "{name}: {reached}"); // one in eight by chance
    }
}

#[test]
fn an_example_has_the_scores_that_it_has_alone() {
    let (task, base) = task();
    let weights = truth(&task);
    let classes = weighted(&task, &weights);
    for (name, learn) in all(&base) {
        let learned = learn(&classes, 1);
        let together = learned.scores(&task.test);
        for row in [0, 57, 159] {
            let alone = learned.scores(&task.test.select(&[row])).values;
            for (alone, together) in alone.iter().zip(&together.values[row * 8..]) {
                assert!((alone - together).abs() < 1e-4, "{name}, {row}: {alone}, {together}");
            }
        }
        assert!(learned.scores(&Features::empty(DIM)).values.is_empty(), "{name}");
    }
}

#[test]
fn every_classifier_is_defined_at_the_edges() {
    let (task, base) = task();
    let none = Features::empty(DIM);
    let zero = Features::new(vec![0.0; DIM], DIM).unwrap();
    let one = task.classes[0].clean.select(&[0]);
    let class = |clean| WeightedClass::new(clean, &none, &[]).unwrap();
    for (name, learn) in all(&base) {
        for classes in [vec![class(&one)], vec![class(&one), class(&one)], vec![class(&zero), class(&one)]] {
            let learned = learn(&classes, 0);
            assert_eq!(learned.n_classes(), classes.len(), "{name}");
            for queries in [&one, &zero, &task.test] {
                let scores = learned.scores(queries);
                assert_eq!(scores.values.len(), queries.len() * classes.len(), "{name}");
                assert!(scores.values.iter().all(|score| score.is_finite()), "{name}: {scores:?}");
            }
        }
    }
}
