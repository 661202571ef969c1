//! The contract of relevance models, checked on all of them.

use std::sync::Arc;

use labelsieve_numerics::random::Stream;

use super::*;
use crate::decision::Decision;
use crate::features::Features;
use crate::graph::NoisyPool;
use crate::in_memory::InMemory;
use crate::model::{ClassProblem, Relevance};

fn all_methods() -> Vec<Method> {
    let names = ["gcn", "mlp", "label-propagation", "similarity", "linear", "beta", "mixture", "auto"];
    names.iter().map(|name| serde_json::from_str(&format!(r#"{{"method": "{name}"}}"#)).unwrap()).collect()
}

fn random_features(n: usize, dim: usize, seed: u64) -> Features {
    let stream = Stream::new(seed);
    Features::new((0..n * dim).map(|i| stream.normal(i as u64)).collect(), dim).unwrap()
}

/// With examples of other classes, each of which is a class of its own as well.
fn beside<'a>(problem: ClassProblem<'a>, others: &'a Features) -> ClassProblem<'a> {
    problem.with_others(others).unwrap().with_other_classes(others).unwrap()
}

fn score(method: &Method, clean: &Features, noisy: &Features, seed: u64) -> Relevance {
    let pool = NoisyPool::new(noisy.clone());
    let others = random_features(5, clean.dim(), 99);
    let problem = beside(ClassProblem::new(clean, &pool).unwrap(), &others);
    method.build().unwrap().relevance(&problem, seed).unwrap()
}

#[track_caller]
fn check(clean: &Features, noisy: &Features) {
    for method in all_methods() {
        let relevance = score(&method, clean, noisy, 0);
        assert_eq!(relevance.noisy().len(), noisy.len(), "{}", method.name());
        // `Relevance::new` refuses NaN and anything outside [0, 1].
        let counts = relevance.reciprocal_neighbours().map_or(noisy.len(), <[u32]>::len);
        assert_eq!(counts, noisy.len(), "{}", method.name());
        let probabilities = relevance.probability().map_or(noisy.len(), <[f32]>::len);
        assert_eq!(probabilities, noisy.len(), "{}", method.name());
    }
}

#[test]
fn every_model_is_defined_at_the_edges() {
    let dim = 6;
    let some = random_features(9, dim, 1);
    let identical = Features::new([0.2f32, 0.4, 0.1, 0.3, 0.5, 0.6].repeat(70), dim).unwrap();
    let zeros = Features::new(vec![0.0; 5 * dim], dim).unwrap();
    let opposite = Features::new(vec![1., 0., 0., 0., 0., 0., -1., 0., 0., 0., 0., 0.], dim).unwrap();
    for clean in [some.select(&[0]), some.clone(), identical.select(&[0, 1]), zeros.select(&[0]), opposite] {
        for noisy in [
            Features::empty(dim),
            some.select(&[3]),
            some.clone(),
            identical.clone(),
            zeros.clone(),
            random_features(400, dim, 2),
        ] {
            check(&clean, &noisy);
        }
    }
    check(&random_features(130, dim, 3), &some); // more clean than noisy
}

#[test]
fn out_of_core_every_model_gives_the_bits_that_it_gives_in_memory() {
    // Twelve other classes that point one way with the examples: `auto` centres its features.
    let shifted = |n: usize, seed: u64, shift: f32| {
        let stream = Stream::new(seed);
        let value = |i: usize| stream.normal(i as u64) + if i.is_multiple_of(20) { shift } else { 0.0 };
        Features::new((0..n * 20).map(value).collect(), 20).unwrap()
    };
    let decide = |i: usize| [None, None, Some(Decision::Accept), Some(Decision::Reject)][i % 4];
    for (shift, memory) in [(0.0, 0), (6.0, 0), (0.0, 200_000), (6.0, 1 << 40)] {
        let clean = shifted(3, 1, shift);
        let noisy = shifted(1500, 2, shift);
        let others = shifted(12, 3, shift);
        let decisions: Vec<Option<Decision>> = (0..noisy.len()).map(decide).collect();
        for method in all_methods() {
            let score = |pool: &NoisyPool| {
                let problem = beside(ClassProblem::new(&clean, pool).unwrap(), &others);
                let problem = problem.with_decisions(&decisions).unwrap();
                method.build().unwrap().relevance(&problem, 7).unwrap()
            };
            let expected = score(&NoisyPool::new(noisy.clone()));
            let found = score(&NoisyPool::out_of_core(noisy.clone(), Arc::new(InMemory(memory))));
            assert_eq!(found, expected, "{} in {memory} bytes", method.name());
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_bits_at_any_number_of_threads() {
    let clean = random_features(3, 20, 4);
    let noisy = random_features(1500, 20, 5);
    for method in all_methods() {
        let with_threads = |n| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
            pool.install(|| score(&method, &clean, &noisy, 7))
        };
        let alone = with_threads(1);
        assert_eq!(alone, with_threads(2), "{}", method.name());
        assert_eq!(alone, with_threads(5), "{}", method.name());
    }
}

#[test]
fn learned_models_change_with_the_seed() {
    let clean = random_features(3, 20, 4);
    let noisy = random_features(60, 20, 5);
    for method in [Method::gcn(), Method::Mlp(Mlp::default())] {
        assert_ne!(score(&method, &clean, &noisy, 0), score(&method, &clean, &noisy, 1));
    }
}

/// Classes without exact ties: everywhere, in clusters, and larger than one unit of work.
fn classes_without_ties() -> Vec<(Features, Features)> {
    let clusters = |n: usize, dim: usize, seed: u64| {
        let centres = Stream::new(seed).branch(1);
        let noise = Stream::new(seed);
        let value = |i: usize| {
            let row = i / dim;
            let column = i % dim;
            centres.normal((row % 7 * dim + column) as u64) + 0.5 * noise.normal(i as u64)
        };
        Features::new((0..n * dim).map(value).collect(), dim).unwrap()
    };
    vec![
        (random_features(1, 6, 10), random_features(90, 6, 11)),
        (clusters(5, 32, 12), clusters(400, 32, 13)),
        (clusters(20, 64, 14), clusters(2500, 64, 15)),
    ]
}

#[test]
fn the_order_of_noisy_rows_decides_nothing() {
    for (clean, noisy) in classes_without_ties() {
        let order = Stream::new(16).choose(noisy.len(), noisy.len());
        for method in all_methods() {
            let before = score(&method, &clean, &noisy, 3);
            let after = score(&method, &clean, &noisy.select(&order), 3);
            let gap = |(place, &row): (usize, &usize)| (after.noisy()[place] - before.noisy()[row]).abs();
            let largest = order.iter().enumerate().map(gap).fold(0.0, f32::max);
            eprintln!("{}, {} rows: {largest:.1e}", method.name(), noisy.len());
            assert!(largest <= 1e-4, "{}, {} rows: {largest}", method.name(), noisy.len());
        }
    }
}

#[test]
fn the_order_of_clean_rows_decides_nothing() {
    for (clean, noisy) in classes_without_ties() {
        let order = Stream::new(17).choose(clean.len(), clean.len());
        for method in all_methods() {
            let before = score(&method, &clean, &noisy, 3);
            let after = score(&method, &clean.select(&order), &noisy, 3);
            let gaps = before.noisy().iter().zip(after.noisy()).map(|(a, b)| (a - b).abs());
            let largest = gaps.fold(0.0, f32::max);
            assert!(largest <= 1e-4, "{}, {} rows: {largest}", method.name(), noisy.len());
        }
    }
}

#[test]
fn the_negatives_of_a_class_depend_neither_on_the_order_of_classes_nor_on_that_of_their_examples() {
    let sets: Vec<Features> = (0..6).map(|c| random_features(250, 5, 20 + c)).collect();
    let drawn = others(&sets, 2, Stream::new(1));
    assert_eq!(drawn.len(), 1000);
    let backwards = |set: &Features| set.select(&(0..set.len()).rev().collect::<Vec<_>>());
    let turned: Vec<Features> = sets.iter().rev().map(backwards).collect();
    assert_eq!(others(&turned, 3, Stream::new(1)), drawn);
    assert_ne!(others(&sets, 2, Stream::new(2)), drawn);
    assert!(drawn.rows().all(|row| sets[2].rows().all(|own| own != row)), "the class itself was drawn");
}

#[test]
fn a_graph_made_in_advance_changes_nothing() {
    let clean = random_features(4, 12, 6);
    let noisy = random_features(300, 12, 7);
    let ready = NoisyPool::with_graph(noisy.clone());
    let others = random_features(5, 12, 99);
    let problem = beside(ClassProblem::new(&clean, &ready).unwrap(), &others);
    for method in all_methods() {
        let model = method.build().unwrap();
        if model.uses_graph() {
            assert_eq!(model.relevance(&problem, 3).unwrap(), score(&method, &clean, &noisy, 3));
        }
    }
}

#[test]
fn the_order_of_other_classes_decides_nothing() {
    for (clean, noisy) in classes_without_ties() {
        let pool = NoisyPool::new(noisy);
        let others = random_features(30, clean.dim(), 27);
        let turned = others.select(&(0..30).rev().collect::<Vec<_>>());
        for method in all_methods().into_iter().filter(Method::uses_other_classes) {
            let model = method.build().unwrap();
            let score = |others: &Features| {
                let problem = ClassProblem::new(&clean, &pool).unwrap().with_other_classes(others).unwrap();
                model.relevance(&problem, 3).unwrap()
            };
            let before = score(&others);
            let after = score(&turned);
            let gaps = before.noisy().iter().zip(after.noisy()).map(|(a, b)| (a - b).abs());
            let largest = gaps.fold(0.0, f32::max);
            assert!(largest <= 1e-4, "{}, {} rows: {largest}", method.name(), before.noisy().len());
        }
    }
}

#[test]
fn other_classes_move_the_models_that_use_them_and_no_other() {
    let clean = random_features(3, 20, 4);
    let noisy = random_features(300, 20, 5);
    let pool = NoisyPool::new(noisy.clone());
    let examples = random_features(5, 20, 99);
    let without = ClassProblem::new(&clean, &pool).unwrap().with_others(&examples).unwrap();
    for method in all_methods() {
        let alone = method.build().unwrap().relevance(&without, 7).unwrap();
        let moved = score(&method, &clean, &noisy, 7).noisy() != alone.noisy();
        assert_eq!(moved, method.uses_other_classes(), "{}", method.name());
    }
}

#[test]
fn examples_like_the_clean_ones_score_above_the_rest() {
    let dim = 16;
    let stream = Stream::new(8);
    let row = |centre: usize, i: usize| -> Vec<f32> {
        (0..dim)
            .map(|c| f32::from(u8::from(c == centre)) + 0.15 * stream.normal((i * dim + c) as u64))
            .collect()
    };
    let clean = Features::new([row(0, 0), row(0, 1)].concat(), dim).unwrap();
    let noisy = Features::new((0..120).flat_map(|i| row(i % 2, 2 + i)).collect(), dim).unwrap();
    for method in all_methods().into_iter().filter(|method| method.name() != "beta") {
        let relevance = score(&method, &clean, &noisy, 0);
        let mean = |first: usize| relevance.noisy().iter().skip(first).step_by(2).sum::<f32>() / 60.0;
        assert!(mean(0) > mean(1), "{}: {} against {}", method.name(), mean(0), mean(1));
    }
}

#[test]
fn what_a_model_cannot_use_is_refused_with_a_reason() {
    let clean = random_features(1, 3, 0);
    let pool = NoisyPool::new(random_features(2, 3, 1));
    let problem = ClassProblem::new(&clean, &pool).unwrap();
    let error = Linear::default().relevance(&problem, 0).unwrap_err();
    assert_eq!(error.to_string(), "linear needs examples of other classes, found none");
    let narrow = NoisyPool::new(random_features(2, 2, 1));
    let error = ClassProblem::new(&clean, &narrow).err().unwrap();
    assert_eq!(error.to_string(), "the noisy set has 2 columns, but the clean set has 3");
    assert!(ClassProblem::new(&Features::empty(3), &pool).is_err());
}

/// Two accepted, two rejected and an unsure one in every seven, the rest undecided.
fn some_decisions(n: usize) -> Vec<Option<Decision>> {
    use Decision::{Accept, Reject, Unsure};
    let pattern = [None, Some(Accept), Some(Reject), None, Some(Unsure), Some(Reject), Some(Accept)];
    pattern.into_iter().cycle().take(n).collect()
}

fn score_decided(
    method: &Method,
    clean: &Features,
    noisy: &Features,
    decisions: &[Option<Decision>],
) -> Relevance {
    let pool = NoisyPool::new(noisy.clone());
    let others = random_features(5, clean.dim(), 99);
    let problem = beside(ClassProblem::new(clean, &pool).unwrap(), &others);
    let problem = problem.with_decisions(decisions).unwrap();
    method.build().unwrap().relevance(&problem, 3).unwrap()
}

#[test]
fn accepted_examples_have_relevance_1_and_rejected_ones_0() {
    let noisy = random_features(60, 6, 21);
    let all = |decision| vec![Some(decision); noisy.len()];
    for k in [1, 4] {
        let clean = random_features(k, 6, 20);
        for decisions in
            [some_decisions(60), all(Decision::Accept), all(Decision::Reject), all(Decision::Unsure)]
        {
            for method in all_methods() {
                let relevance = score_decided(&method, &clean, &noisy, &decisions);
                for numbers in [relevance.noisy(), relevance.probability().unwrap_or_default()] {
                    for (row, (&found, decision)) in numbers.iter().zip(&decisions).enumerate() {
                        let expected = decision.and_then(Decision::relevance).unwrap_or(found);
                        assert_eq!(found, expected, "{}, row {row}", method.name());
                    }
                }
            }
        }
    }
}

#[test]
fn empty_and_unsure_decisions_change_no_bit() {
    let clean = random_features(3, 20, 22);
    let noisy = random_features(300, 20, 23);
    for method in all_methods() {
        let without = score(&method, &clean, &noisy, 3);
        for nothing in [None, Some(Decision::Unsure)] {
            let with = score_decided(&method, &clean, &noisy, &vec![nothing; noisy.len()]);
            assert_eq!(with, without, "{}", method.name());
        }
    }
}

#[test]
fn decisions_move_the_others_but_not_the_graph() {
    let clean = random_features(2, 20, 24);
    let noisy = random_features(200, 20, 25);
    let decisions = some_decisions(noisy.len());
    for method in all_methods().into_iter().filter(|method| method.name() != "beta") {
        let before = score(&method, &clean, &noisy, 3);
        let after = score_decided(&method, &clean, &noisy, &decisions);
        let undecided = (0..noisy.len()).filter(|&row| decisions[row].is_none());
        let moved = undecided.filter(|&row| before.noisy()[row] != after.noisy()[row]).count();
        assert!(moved > 40, "{}: {moved}", method.name());
        assert_eq!(before.reciprocal_neighbours(), after.reciprocal_neighbours(), "{}", method.name());
    }
}

#[test]
fn decisions_travel_with_their_rows() {
    for (clean, noisy) in classes_without_ties() {
        let decisions = some_decisions(noisy.len());
        let order = Stream::new(26).choose(noisy.len(), noisy.len());
        let moved: Vec<_> = order.iter().map(|&row| decisions[row]).collect();
        for method in all_methods() {
            let before = score_decided(&method, &clean, &noisy, &decisions);
            let after = score_decided(&method, &clean, &noisy.select(&order), &moved);
            let gap = |(place, &row): (usize, &usize)| (after.noisy()[place] - before.noisy()[row]).abs();
            let largest = order.iter().enumerate().map(gap).fold(0.0, f32::max);
            assert!(largest <= 1e-4, "{}, {} rows: {largest}", method.name(), noisy.len());
        }
    }
}

#[test]
fn decisions_for_another_number_of_examples_are_refused() {
    let clean = random_features(1, 3, 0);
    let pool = NoisyPool::new(random_features(2, 3, 1));
    let problem = ClassProblem::new(&clean, &pool).unwrap();
    for found in [0, 1, 3] {
        let error = problem.with_decisions(&vec![None; found]).err().unwrap();
        assert_eq!(error.to_string(), format!("decisions: expected 2 values, found {found}"));
    }
}
