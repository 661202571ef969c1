//! Networks against PyTorch: `golden/make_golden.py` says how the expected numbers were made.

use labelsieve_networks::{
    Architecture, Batch, CpuLearners, Learners, ScaleRule, Sgd, Snapshot, Stem, Targets,
};
use labelsieve_numerics::level::Level;
use labelsieve_numerics::random::Stream;

#[derive(serde::Deserialize)]
struct Case {
    name: String,
    height: usize,
    width: usize,
    n_classes: usize,
    images: usize,
    seed: u64,
    rate: f32,
    /// Every 37th number of all features in evaluation mode, before and after the steps.
    before: Vec<f32>,
    after: Vec<f32>,
    losses: Vec<f64>,
    scale: f32,
}

/// At every level up to that of the process: the lower ones are those of other machines.
#[test]
fn networks_give_the_features_and_learn_the_weights_that_pytorch_does() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("golden/networks.json")).unwrap();
    assert_eq!(cases.len(), 6);
    let best = Level::current();
    for level in Level::available().into_iter().filter(|&level| level <= best) {
        level.make_current(); // this program has no other test that it could disturb
        println!("{level}");
        check(&cases);
    }
}

fn check(cases: &[Case]) {
    for case in cases {
        let (name, stem) = case.name.split_once(' ').unwrap();
        let stem = if stem == "small" { Stem::Small } else { Stem::Photo };
        let architecture: Architecture = name.parse().unwrap();
        let network = architecture.network(case.height, case.width, stem).unwrap();
        let mut learner =
            CpuLearners.learner(&network, &Snapshot::initial(&network, case.n_classes, case.seed)).unwrap();
        let stream = Stream::new(case.seed + 1);
        let n = case.images * case.height * case.width * 3;
        let pixels = (0..n).map(|i| (stream.bits(i as u64) >> 56) as u8).collect();
        let batch = Batch::new(case.height, case.width, pixels).unwrap();
        near(&learner.features(&batch).unwrap(), &case.before, 1e-4, &case.name);

        let classes: Vec<u32> = (0..case.images).map(|i| (i % case.n_classes) as u32).collect();
        let weights: Vec<f32> = (0..case.images).map(|i| 0.1 + 0.2 * (i % 3) as f32).collect();
        let targets = Targets { classes: &classes, weights: &weights, split: 0 };
        let sgd = Sgd { rate: case.rate, momentum: 0.9, decay: 5e-4, scale: ScaleRule::Learned };
        for expected in &case.losses {
            learner.step(&batch, targets, &sgd).unwrap();
            let found = learner.tally().unwrap().loss;
            assert!(
                (found - expected).abs() < 2e-3 * expected.abs(),
                "{}: loss {found}, {expected}",
                case.name
            );
        }
        // Steps through batches of a few images magnify rounding.
        near(&learner.features(&batch).unwrap(), &case.after, 2e-2, &case.name);
        let snapshot = learner.snapshot().unwrap();
        let scale = snapshot.values.last().unwrap();
        assert!((scale - case.scale).abs() < 1e-3, "{}: scale {scale}, {}", case.name, case.scale);

        let mut again = CpuLearners.learner(&network, &snapshot).unwrap();
        assert_eq!(again.features(&batch).unwrap(), learner.features(&batch).unwrap());
        again.step(&batch, targets, &sgd).unwrap();
        learner.step(&batch, targets, &sgd).unwrap();
        assert_eq!(again.snapshot().unwrap(), learner.snapshot().unwrap(), "{}", case.name);
    }
}

/// Largest difference at most `tolerance` of the largest number.
fn near(found: &[f32], expected: &[f32], tolerance: f32, name: &str) {
    let found: Vec<f32> = found.iter().step_by(37).copied().collect();
    assert_eq!(found.len(), expected.len(), "{name}");
    let largest = expected.iter().fold(0.0f32, |a, b| a.max(b.abs()));
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() <= tolerance * largest.max(1.0), "{name}, {i}: {found}, {expected}");
    }
}
