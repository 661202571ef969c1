//! Every level of the machine in one process: features and training steps of small networks.
//!
//! `cargo test -p labelsieve-networks --test levels -- --nocapture` prints the largest differences found.

use std::sync::{Mutex, PoisonError};

use labelsieve_networks::{
    Architecture, Batch, Covariance, CpuLearners, Learners, Network, Pca, ScaleRule, Sgd, Snapshot, Stem,
    Targets,
};
use labelsieve_numerics::level::Level;
use labelsieve_numerics::random::Stream;

/// The results of `work` at each level, the plain one first. The level is global, so tests take turns.
fn at_every_level<T>(work: impl Fn() -> T) -> Vec<(Level, T)> {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let before = Level::current();
    let results = Level::available()
        .into_iter()
        .map(|level| {
            level.make_current();
            (level, work())
        })
        .collect();
    before.make_current();
    results
}

/// The largest difference from the plain level, in shares of the length of the plain numbers.
fn difference(what: &str, results: &[(Level, Vec<f32>)]) -> f64 {
    let length = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>().sqrt();
    let plain = &results[0].1;
    let whole = length(&mut plain.iter().map(|&v| f64::from(v)));
    let mut worst = 0f64;
    for (level, found) in &results[1..] {
        assert_eq!(found.len(), plain.len());
        let apart = length(&mut found.iter().zip(plain).map(|(&a, &b)| f64::from(a) - f64::from(b)));
        println!("{what}: {level} differs from plain by {:.1e} of the length", apart / whole);
        worst = worst.max(apart / whole);
    }
    worst
}

fn networks() -> Vec<(&'static str, Network)> {
    [
        ("ConvNet-128, 20×20", Architecture::ConvNet128.network(20, 20, Stem::Small)),
        ("ResNet-10, 24×24", Architecture::ResNet10.network(24, 24, Stem::Small)),
        ("ResNet-10, 40×48, photo stem", Architecture::ResNet10.network(40, 48, Stem::Photo)),
    ]
    .map(|(name, network)| (name, network.unwrap()))
    .into()
}

fn batch(network: &Network, images: usize) -> Batch {
    let stream = Stream::new(8);
    let input = network.input();
    let pixels = (0..images * input.len()).map(|i| (stream.bits(i as u64) >> 56) as u8).collect();
    Batch::new(input.height, input.width, pixels).unwrap()
}

#[test]
fn features_agree_to_rounding_and_have_the_same_bits_wherever_products_are_fused() {
    for (name, network) in networks() {
        let results = at_every_level(|| {
            let mut learner = CpuLearners.learner(&network, &Snapshot::initial(&network, 0, 3)).unwrap();
            learner.features(&batch(&network, 3)).unwrap()
        });
        assert!(difference(&format!("features, {name}"), &results) < 1e-5);
        let fused = &results[1..];
        assert!(fused.windows(2).all(|pair| pair[0].1 == pair[1].1), "{name}");
    }
}

/// Without momentum and decay a step is the gradient, times minus the learning rate.
#[test]
fn gradients_of_all_parameters_agree_to_rounding() {
    let images = 5;
    for (name, network) in networks() {
        let start = Snapshot::initial(&network, 4, 3);
        let results = at_every_level(|| {
            let mut learner = CpuLearners.learner(&network, &start).unwrap();
            let classes: Vec<u32> = (0..images).map(|i| i % 4).collect();
            let targets = Targets { classes: &classes, weights: &[0.2; 5], split: 0 };
            let sgd = Sgd { rate: 1.0, momentum: 0.0, decay: 0.0, scale: ScaleRule::Learned };
            learner.step(&batch(&network, images as usize), targets, &sgd).unwrap();
            let end = learner.snapshot().unwrap();
            end.momentum // the gradient itself: the velocity after one step
        });
        assert!(results[0].1.iter().any(|gradient| gradient.abs() > 1e-3), "{name}: a gradient of zeros");
        assert!(difference(&format!("gradients, {name}"), &results) < 1e-3);
    }
}

#[test]
fn principal_components_agree_to_rounding() {
    let stream = Stream::new(2);
    let dim = 70;
    let rows: Vec<f32> = (0..300 * dim).map(|i| stream.normal(i as u64) / (1.0 + (i % dim) as f32)).collect();
    let results = at_every_level(|| {
        let mut covariance = Covariance::new(dim);
        covariance.add(&rows).unwrap();
        Pca::fit(covariance, 6).unwrap().apply(&rows).unwrap()
    });
    assert!(difference("projections", &results) < 1e-5);
}
