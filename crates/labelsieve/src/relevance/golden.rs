//! The models against PyTorch, SciPy and NumPy, and the gradient against finite differences.

use labelsieve_numerics::random::Stream;
use serde_json::Value;

use super::network::{Cell, Network, Weights};
use super::pool_rows::PoolRows;
use super::units::{Dropout, HIDDEN};
use super::*;
use crate::decision::Decision;
use crate::features::Features;
use crate::golden::{assert_close, count, features, numbers, read};
use crate::graph::{Affinity, Neighbours, NoisyPool, Propagation};
use crate::model::ClassProblem;
use crate::model::Job;

fn rows(range: std::ops::Range<usize>) -> Vec<usize> {
    range.collect()
}

fn weights(case: &Value) -> Weights {
    Weights(["w1", "b1", "w2", "b2"].iter().flat_map(|name| numbers(&case[name])).collect())
}

/// p of all rows with these weights, clean rows first.
fn forward(network: &mut Network, weights: &Weights, dropout: Dropout) -> Vec<f32> {
    network.cells[0].weights = weights.clone();
    network.forward(&[dropout]);
    network.probabilities(0)
}

/// Trains from the given weights without dropout and compares loss and probabilities along the way.
fn check_training(case: &Value, propagation: Propagation, clean: &Features, noisy: &Features) {
    let k = count(&case["n_clean"]);
    let lambda = case["lambda"].as_f64().unwrap() as f32;
    let pool = NoisyPool::new(noisy.clone());
    let problem = ClassProblem::new(clean, &pool).unwrap();
    let (shared, own) = PoolRows::of_one(clean, &NoisyPool::new(noisy.clone()), propagation).unwrap();
    let cells = vec![Cell::new(own, weights(case))];
    let mut network = Network::new(&shared, cells, &[loss_weights(&problem, lambda)]);
    let first_loss = cleaning_loss(&forward(&mut network, &weights(case), Dropout::none()), k, lambda);
    assert_close(&[first_loss], &numbers(&case["losses"])[..1], 1e-5);
    let training = Training { dropout: 0.0, ..Training::default() };
    training.run(&mut network, &[Stream::new(0)], &[Job { problem, seed: 0 }]);
    assert_close(&network.probabilities(0), &numbers(&case["probabilities"]), 1e-4);
}

#[test]
fn gcn_agrees_with_pytorch_after_100_iterations() {
    let golden = read("gcn");
    let all_clean = features(&golden["clean"]);
    let noisy = features(&golden["noisy"]);
    for case in golden["cases"].as_array().unwrap() {
        let clean = all_clean.select(&rows(0..count(&case["n_clean"])));
        let neighbours = Neighbours::exact(&clean.stack(&noisy).unwrap(), count(&case["neighbours"]));
        let propagation = Propagation::new(Affinity::reciprocal(&neighbours));
        check_training(case, propagation, &clean, &noisy);
    }
}

#[test]
fn mlp_agrees_with_pytorch_after_100_iterations() {
    let golden = read("mlp");
    let all_clean = features(&golden["clean"]);
    let noisy = features(&golden["noisy"]);
    for case in golden["cases"].as_array().unwrap() {
        let clean = all_clean.select(&rows(0..count(&case["n_clean"])));
        check_training(case, Propagation::Identity(clean.len() + noisy.len()), &clean, &noisy);
    }
}

#[test]
fn with_dropout_the_mean_over_seeds_agrees_with_pytorch_to_sampling_error() {
    let golden = read("gcn_dropout");
    let all = features(&golden["features"]);
    let k = count(&golden["n_clean"]);
    let clean = all.select(&rows(0..k));
    let pool = NoisyPool::with_graph(all.select(&rows(k..all.len())));
    let problem = ClassProblem::new(&clean, &pool).unwrap();
    let lambda = golden["lambda"].as_f64().map(|l| l as f32);
    let model = Method::Gcn(Gcn { lambda, ..Gcn::default() }).build().unwrap();
    let expected = numbers(&golden["mean"]);
    let deviation = numbers(&golden["deviation"]);
    let their_seeds = golden["n_seeds"].as_f64().unwrap() as f32;
    // 20 seeds would still accept a network without any dropout in two of three draws; 400 never do.
    for (seeds, max_errors) in [(20, 4.0), (400, 5.0)] {
        let mut mean = vec![0f32; expected.len()];
        for seed in 0..seeds {
            let relevance = model.relevance(&problem, seed).unwrap();
            mean.iter_mut().zip(relevance.noisy()).for_each(|(m, r)| *m += r / seeds as f32);
        }
        let error_of_mean = (1.0 / seeds as f32 + 1.0 / their_seeds).sqrt();
        for (i, ((found, expected), deviation)) in mean.iter().zip(&expected).zip(&deviation).enumerate() {
            let allowed = max_errors * deviation * error_of_mean;
            assert!((found - expected).abs() < allowed, "row {i}: {found} against {expected} ± {allowed}");
        }
    }
}

#[test]
fn label_propagation_agrees_with_a_dense_solve() {
    let golden = read("label_propagation");
    let k = count(&golden["n_clean"]);
    for case in golden["cases"].as_array().unwrap() {
        let all = features(&case["features"]);
        let clean = all.select(&rows(0..k));
        let pool = NoisyPool::new(all.select(&rows(k..all.len())));
        let model =
            LabelPropagation { neighbours: count(&case["neighbours"]), ..LabelPropagation::default() };
        let found = model.relevance(&ClassProblem::new(&clean, &pool).unwrap(), 0).unwrap();
        let expected: Vec<f32> = numbers(&case["r_f64"])[k..].iter().map(|r| r.min(1.0)).collect();
        assert_close(found.noisy(), &expected, 1e-5);
    }
}

#[test]
fn similarity_agrees_with_numpy() {
    let golden = read("similarity");
    let all = features(&golden["features"]);
    let k = count(&golden["n_clean"]);
    let clean = all.select(&rows(0..k));
    let pool = NoisyPool::new(all.select(&rows(k..all.len())));
    let found = Similarity {}.relevance(&ClassProblem::new(&clean, &pool).unwrap(), 0).unwrap();
    assert_close(found.noisy(), &numbers(&golden["relevance_f64"]), 1e-6);
}

#[test]
fn mixture_agrees_with_numpy() {
    let golden = read("mixture");
    let number = |name: &str| golden[name].as_f64().unwrap() as f32;
    let rounds = count(&golden["rounds"]);
    let neighbours = count(&golden["neighbours"]);
    let model = Mixture { contrast: number("contrast"), pull: number("pull"), rounds, neighbours };
    for case in golden["cases"].as_array().unwrap() {
        let all = features(&case["features"]);
        let k = count(&case["n_clean"]);
        let clean = all.select(&rows(0..k));
        let pool = NoisyPool::new(all.select(&rows(k..all.len())));
        let mut decisions = vec![None; all.len() - k];
        for (name, decision) in [("accepted", Decision::Accept), ("rejected", Decision::Reject)] {
            case[name].as_array().unwrap().iter().for_each(|row| decisions[count(row)] = Some(decision));
        }
        let others = features(&case["other_classes"]);
        let problem = ClassProblem::new(&clean, &pool).unwrap().with_other_classes(&others).unwrap();
        let found = model.relevance(&problem.with_decisions(&decisions).unwrap(), 0).unwrap();
        assert_close(found.noisy(), &numbers(&case["relevance_f64"]), 1e-5);
    }
}

#[test]
fn linear_agrees_with_a_tight_minimiser_of_scipy() {
    for case in read("logistic")["cases"].as_array().unwrap() {
        let clean = features(&case["positive"]);
        let others = features(&case["negative"]);
        let pool = NoisyPool::new(features(&case["rows"]));
        let problem = ClassProblem::new(&clean, &pool).unwrap().with_others(&others).unwrap();
        let found = Linear::default().relevance(&problem, 0).unwrap();
        assert_close(found.noisy(), &numbers(&case["probabilities_f64"]), 1e-4);
    }
}

#[test]
fn eq_2_on_a_graph_of_two_examples() {
    // Two rows at 60 degrees: Ã = [2/3 1/3; 1/3 2/3]. One hidden unit reads the first column, doubled by Θ₂.
    let all = Features::new(vec![1.0, 0.0, 0.5, 0.75f32.sqrt()], 2).unwrap();
    let propagation = Propagation::new(Affinity::reciprocal(&Neighbours::exact(&all, 1)));
    let mut weights = Weights((0..Weights::len(2)).map(|_| 0.0).collect());
    weights.0[0] = 1.0; // Θ₁[0, 0]
    weights.0[2 * HIDDEN] = 0.25; // b₁[0]
    weights.0[3 * HIDDEN] = 2.0; // Θ₂[0]
    weights.0[4 * HIDDEN] = -2.0; // b₂
    let (shared, own) =
        PoolRows::of_one(&all.select(&[0]), &NoisyPool::new(all.select(&[1])), propagation).unwrap();
    let mut network = Network::new(&shared, vec![Cell::new(own, weights.clone())], &[vec![1.0, -1.0]]);
    let found = forward(&mut network, &weights, Dropout::none());
    // Ã V Θ₁ + b₁ = (5/6 + 1/4, 2/3 + 1/4) = (13/12, 11/12), times 2 and averaged: (37/18, 35/18), minus 2.
    let sigmoid = |a: f32| 1.0 / (1.0 + (-a).exp());
    assert_close(&found, &[sigmoid(1.0 / 18.0), sigmoid(-1.0 / 18.0)], 1e-6);
}

#[test]
fn the_gradient_agrees_with_finite_differences() {
    let golden = read("gcn");
    let clean = features(&golden["clean"]).select(&rows(0..3));
    let noisy = features(&golden["noisy"]);
    let neighbours = Neighbours::exact(&clean.stack(&noisy).unwrap(), 8);
    let propagation = Propagation::new(Affinity::reciprocal(&neighbours));
    // Every fourth noisy row is accepted and the one after it rejected, or nothing is decided.
    let some = [Some(Decision::Accept), Some(Decision::Reject), None, Some(Decision::Unsure)];
    let some: Vec<_> = some.into_iter().cycle().take(noisy.len()).collect();
    let pool = NoisyPool::new(noisy.clone());
    let undecided = ClassProblem::new(&clean, &pool).unwrap();
    let all_weights = [undecided, undecided.with_decisions(&some).unwrap()].map(|p| loss_weights(&p, 0.7));
    let dropouts = [Dropout::none(), Dropout::new(0.5, Stream::new(2))];
    for (loss_weights, dropout) in all_weights.iter().flat_map(|w| dropouts.map(|dropout| (w, dropout))) {
        let weights = Weights::random(clean.dim(), Stream::new(7)); // no unit of these sits at its kink
        let (shared, own) =
            PoolRows::of_one(&clean, &NoisyPool::new(noisy.clone()), propagation.clone()).unwrap();
        let cells = vec![Cell::new(own, weights.clone())];
        let mut network = Network::new(&shared, cells, std::slice::from_ref(loss_weights));
        forward(&mut network, &weights, dropout);
        network.backward(&[dropout]);
        let gradient = network.cells[0].gradient.clone();
        let mut loss = |i: usize, step: f32| {
            let mut moved = weights.clone();
            moved.0[i] += step;
            weighted_loss(&forward(&mut network, &moved, dropout), loss_weights)
        };
        for (i, &derivative) in gradient.iter().enumerate() {
            let h = 4e-4; // small, so that few units cross the kink of their ReLU
            let numeric = (loss(i, h) - loss(i, -h)) / (2.0 * h);
            assert!((derivative - numeric).abs() < 1.5e-3, "parameter {i}: {derivative} against {numeric}");
        }
        assert!(gradient.iter().any(|g| g.abs() > 0.05), "a gradient of zeros proves nothing");
    }
}
