//! Every level of the machine in one process: what must be the same bits, and how far the rest may differ.
//!
//! `cargo test -p labelsieve --test levels -- --nocapture` prints the largest differences found.

mod every_level;

use every_level::{at_every_level, difference};
use labelsieve::classifier::{Cosine, WeightMatrix, WeightedClass, prototypes};
use labelsieve::graph::{Affinity, Neighbours, NoisyGraph, Propagation, closest_clean};
use labelsieve::relevance::{Gcn, Mlp, Training, others};
use labelsieve::synthetic::{Noise, Recipe, SyntheticTask};
use labelsieve::{ClassProblem, Classifier, Features, Method, NoisyPool};
use labelsieve_numerics::random::Stream;

#[track_caller]
fn assert_same_at_every_level<T: PartialEq>(what: &str, work: impl Fn() -> T) {
    let results = at_every_level(work);
    for (level, found) in &results[1..] {
        assert!(*found == results[0].1, "{what}: {level} differs from plain");
    }
}

/// Clusters, copies, rows of zeros and one row that comes again and again, in an odd number of columns.
fn awkward(n: usize, dim: usize) -> Features {
    let stream = Stream::new(n as u64);
    let value = |row: usize, column: usize| match row % 9 {
        0 => 0.0,
        1 => stream.normal(column as u64),
        2 => stream.branch(row as u64 / 27).normal(column as u64),
        _ => {
            stream.branch((row % 6) as u64).normal(column as u64)
                + 0.2 * stream.branch(1 << 30).normal((row * dim + column) as u64)
        }
    };
    Features::new((0..n * dim).map(|i| value(i / dim, i % dim)).collect(), dim).unwrap()
}

fn task() -> SyntheticTask {
    let recipe = Recipe {
        dim: 67,
        n_classes: 4,
        n_clean: 3,
        largest_pool: 500,
        noise: Noise::Clusters(3),
        ..Recipe::default()
    };
    recipe.generate(5)
}

#[test]
fn neighbours_and_graphs_are_the_same_bits_at_every_level() {
    for (n, dim, count) in [(2, 1, 5), (50, 3, 7), (333, 33, 50), (1500, 67, 50), (700, 512, 20)] {
        let features = awkward(n, dim);
        let clean = features.select(&(0..n.min(4)).collect::<Vec<_>>());
        let noisy = features.select(&(n.min(4)..n).collect::<Vec<_>>());
        assert_same_at_every_level(&format!("{n} rows of {dim}"), || {
            let neighbours = Neighbours::exact(&features, count);
            let affinity = Affinity::reciprocal(&neighbours);
            let inserted = NoisyGraph::new(&noisy, count).insert(&clean, &noisy);
            let propagated = Propagation::new(affinity.clone()).propagate(&clean, &noisy);
            (neighbours, affinity, inserted, propagated, closest_clean(&clean, &noisy))
        });
    }
}

#[test]
fn relevance_of_every_method_is_the_same_at_every_level() {
    let task = task();
    let short = Training { iterations: 37, dropout: 0.2, ..Training::default() };
    let mut methods = vec![
        Method::Gcn(Gcn { training: short, neighbours: 11, lambda: Some(0.7) }),
        Method::Mlp(Mlp { training: short, lambda: Some(0.7) }),
    ];
    for name in ["gcn", "mlp", "label-propagation", "similarity", "linear", "beta", "mixture", "auto"] {
        methods.push(serde_json::from_str(&format!(r#"{{"method": "{name}"}}"#)).unwrap());
    }
    let clean: Vec<Features> = task.classes.iter().map(|class| class.clean.clone()).collect();
    for method in methods {
        let relevance = || -> Vec<f32> {
            let score = |(c, class): (usize, &labelsieve::synthetic::SyntheticClass)| {
                let pool = NoisyPool::new(class.noisy.clone());
                let others = others(&clean, c, Stream::new(3));
                let problem = ClassProblem::new(&class.clean, &pool).unwrap().with_others(&others).unwrap();
                let problem = problem.with_other_classes(&others).unwrap();
                let relevance = method.build().unwrap().relevance(&problem, 11).unwrap();
                relevance.noisy().to_vec()
            };
            task.classes.iter().enumerate().flat_map(score).collect()
        };
        let largest = difference(&format!("relevance by {}", method.name()), relevance);
        // Neighbours decide who is connected: had one of them differed, the scores would be far apart.
        assert!(largest <= 1e-5, "{}: {largest:e}", method.name());
        assert_eq!(largest, 0.0, "{}: sums run in one order and are rounded alike everywhere", method.name());
    }
}

#[test]
fn classifiers_agree_to_rounding() {
    let task = task();
    let ones: Vec<Vec<f32>> = task.classes.iter().map(|class| vec![0.5; class.noisy.len()]).collect();
    let classes: Vec<WeightedClass> = task
        .classes
        .iter()
        .zip(&ones)
        .map(|(class, ones)| WeightedClass::new(&class.clean, &class.noisy, ones).unwrap())
        .collect();
    let cosine = Cosine { epochs: 5, batch_size: 64, ..Cosine::default() };
    let scores = |classifier: &WeightMatrix| classifier.scores(&task.test).values;
    let prototypes = || prototypes(&classes, 67, 10.0).unwrap();
    assert_same_at_every_level("prototypes", || prototypes().weights().clone());
    assert!(difference("scores of prototypes", || scores(&prototypes())) < 1e-5);
    let trained = || scores(&cosine.train(&classes, 67, 1).unwrap());
    assert!(difference("scores of the cosine classifier", trained) < 1e-4);
}
