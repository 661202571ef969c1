//! Networks on the GPU against a plain `f64` version. Every test skips with a message without a GPU or cuDNN.

mod reference;

use labelsieve_cuda::{Cuda, CudaNetworks, Precision};
use labelsieve_vision::{
    Architecture, Batch, Error, Network, Networks, ScaleRule, Sgd, Snapshot, Stem, Targets,
};
use reference::{Reference, images, start};

fn networks(precision: Precision) -> Option<CudaNetworks> {
    match Cuda::open(0).and_then(|cuda| cuda.networks(precision)) {
        Ok(networks) => Some(networks),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

macro_rules! networks_or_skip {
    ($precision:expr) => {
        match networks($precision) {
            Some(networks) => networks,
            None => return,
        }
    };
}

const SGD: Sgd = Sgd { rate: 0.05, momentum: 0.9, decay: 5e-4, scale: ScaleRule::Learned };

/// ‖a - b‖ / ‖b‖.
fn distance(a: &[f32], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let square = |value: f64| value * value;
    let difference: f64 = a.iter().zip(b).map(|(&a, &b)| square(f64::from(a) - b)).sum();
    (difference / b.iter().copied().map(square).sum::<f64>()).sqrt()
}

/// The largest distance of any parameter's change since `before`, with its name.
fn change_distance(
    network: &Network,
    before: &Snapshot,
    found: &Snapshot,
    expected: &Reference,
) -> (f64, String) {
    let mut from = 0;
    let distances =
        network.parameters(before.n_classes).into_iter().zip(&expected.values).map(|(parameter, values)| {
            let range = from..from + parameter.len();
            from = range.end;
            let change: Vec<f32> = range.clone().map(|i| found.values[i] - before.values[i]).collect();
            let wanted: Vec<f64> = range.zip(values).map(|(i, v)| v - f64::from(before.values[i])).collect();
            (distance(&change, &wanted), parameter.name)
        });
    distances.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap()
}

fn targets(n: usize) -> (Vec<u32>, Vec<f32>) {
    (
        (0..n).map(|i| (i * 3 % 7) as u32).collect(),
        (0..n).map(|i| (1.0 + i as f32 % 3.0) / (2 * n) as f32).collect(),
    )
}

/// Networks, sizes and batches that have something odd about them.
fn cases() -> Vec<(Network, usize)> {
    let network = |a: Architecture, h, w, stem| a.network(h, w, stem).unwrap();
    vec![
        (network(Architecture::ConvNet128, 16, 16, Stem::Small), 5),
        (network(Architecture::ConvNet128, 20, 35, Stem::Small), 2),
        (network(Architecture::ResNet10, 32, 32, Stem::Small), 3),
        (network(Architecture::ResNet10, 48, 37, Stem::Photo), 4),
        (network(Architecture::ResNet18, 32, 32, Stem::Photo), 5),
        (network(Architecture::ResNet50, 32, 32, Stem::Photo), 2),
    ]
}

#[test]
fn features_agree_with_the_plain_version() {
    for (precision, tolerance) in [(Precision::F32, 2e-5), (Precision::Bf16, 3e-2)] {
        let networks = networks_or_skip!(precision);
        for (network, n) in cases() {
            let snapshot = start(&network, 0, 1);
            let size = (network.input().height, network.input().width);
            let mut learner = networks.learner(&network, &snapshot).unwrap();
            let mut reference = Reference::new(&network, &snapshot);
            for n in [n, 1] {
                let batch = images(n, size, n as u64);
                let found = distance(&learner.features(&batch).unwrap(), &reference.features(&batch));
                eprintln!("{precision:?} {size:?} n = {n}: {found:.1e}");
                assert!(found < tolerance, "{precision:?} {size:?} n = {n}: {found:.1e}");
            }
        }
    }
}

#[test]
fn steps_agree_with_the_plain_version() {
    // Behind a ReLU or a max-pool a rounding error can send a slope elsewhere, so single parameters move apart.
    for (precision, tolerance) in [(Precision::F32, 2e-3), (Precision::Bf16, 0.35)] {
        let networks = networks_or_skip!(precision);
        for (network, n) in cases() {
            let before = start(&network, 7, 2);
            let size = (network.input().height, network.input().width);
            let mut learner = networks.learner(&network, &before).unwrap();
            let mut reference = Reference::new(&network, &before);
            let (classes, weights) = targets(n);
            let n_steps = if precision == Precision::F32 { 3 } else { 1 };
            for (step, split) in [0, 3, 0].into_iter().enumerate().take(n_steps) {
                let batch = images(n, size, 10 + step as u64);
                let targets = Targets { classes: &classes, weights: &weights, split };
                learner.step(&batch, targets, &SGD).unwrap();
                reference.step(&batch, targets, &SGD);
            }
            let (tally, expected) = (learner.tally().unwrap(), reference.tally);
            let (found, name) = change_distance(&network, &before, &learner.snapshot().unwrap(), &reference);
            let momentum: Vec<f64> = reference.momentum.concat();
            let momentum = distance(&learner.snapshot().unwrap().momentum, &momentum);
            let loss = (tally.loss / expected.loss - 1.0).abs();
            let report = format!(
                "{precision:?} {size:?} n = {n}: loss {loss:.1e}, momentum {momentum:.1e}, worst {name} {found:.1e}"
            );
            eprintln!("{report}");
            assert!(found < tolerance && loss < tolerance && momentum < tolerance, "{report}");
            assert_eq!((tally.images, tally.steps), (expected.images, expected.steps));
            if precision == Precision::F32 {
                assert_eq!(tally.correct, expected.correct, "{report}");
            }
        }
    }
}

/// Six steps with batches of several sizes; with `breaks`, through a snapshot before each.
fn train(networks: &CudaNetworks, network: &Network, breaks: bool) -> Snapshot {
    let mut snapshot = start(network, 7, 3);
    let mut learner = networks.learner(network, &snapshot).unwrap();
    for (step, n) in [6, 6, 2, 9, 6, 1].into_iter().enumerate() {
        if breaks {
            snapshot = learner.snapshot().unwrap();
            learner = networks.learner(network, &snapshot).unwrap();
        }
        let (classes, weights) = targets(n);
        let batch = images(n, (network.input().height, network.input().width), step as u64);
        let targets = Targets { classes: &classes, weights: &weights, split: 0 };
        learner.step(&batch, targets, &SGD).unwrap();
        if !breaks {
            learner.features(&batch).unwrap(); // must not change anything
        }
    }
    learner.snapshot().unwrap()
}

#[test]
fn training_repeats_itself_exactly_and_a_resumed_run_equals_the_unbroken_one() {
    for precision in [Precision::Bf16, Precision::F32] {
        let networks = networks_or_skip!(precision);
        for architecture in [Architecture::ResNet10, Architecture::ConvNet128] {
            let network = architecture.network(64, 64, Stem::Small).unwrap();
            let unbroken = train(&networks, &network, false);
            assert!(
                unbroken == train(&networks, &network, false),
                "{architecture} {precision:?}: a second run"
            );
            assert!(
                unbroken == train(&networks, &network, true),
                "{architecture} {precision:?}: a resumed run"
            );
        }
    }
}

#[test]
fn training_learns() {
    let networks = networks_or_skip!(Precision::Bf16);
    let network = Architecture::ResNet10.network(32, 32, Stem::Small).unwrap();
    let mut learner = networks.learner(&network, &start(&network, 4, 5)).unwrap();
    // Class c is tinted with its own colour.
    let batch = |seed: u64| {
        let mut pixels = images(32, (32, 32), seed).pixels().to_vec();
        for (i, byte) in pixels.iter_mut().enumerate() {
            let (class, channel) = (i / (32 * 32 * 3) % 4, i % 3);
            *byte = if class == channel { byte.saturating_add(60) } else { *byte / 2 };
        }
        Batch::new(32, 32, pixels).unwrap()
    };
    let classes: Vec<u32> = (0..32).map(|i| i % 4).collect();
    let targets = Targets { classes: &classes, weights: &[1.0 / 32.0; 32], split: 0 };
    let sgd = Sgd { rate: 0.02, ..SGD };
    let mut epoch = |from: u64| {
        (from..from + 10).for_each(|seed| learner.step(&batch(seed), targets, &sgd).unwrap());
        learner.tally().unwrap()
    };
    let first = epoch(0);
    let last = [epoch(10), epoch(20), epoch(30)][2];
    eprintln!("{first:?} {last:?}");
    assert_eq!((first.images, first.steps), (320, 10));
    assert!(last.loss < 0.5 * first.loss && last.correct > 300, "{first:?} {last:?}");
}

#[test]
fn a_diverged_training_says_in_which_step() {
    let networks = networks_or_skip!(Precision::Bf16);
    let network = Architecture::ConvNet128.network(16, 16, Stem::Small).unwrap();
    let mut learner = networks.learner(&network, &start(&network, 7, 1)).unwrap();
    let (classes, mut weights) = targets(4);
    for weight in [0.5, f32::NAN, 0.5] {
        weights[0] = weight;
        let targets = Targets { classes: &classes, weights: &weights, split: 0 };
        learner.step(&images(4, (16, 16), 0), targets, &SGD).unwrap();
    }
    assert_eq!(learner.tally(), Err(Error::Diverged { step: 2 }));
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let networks = networks_or_skip!(Precision::Bf16);
    let network = Architecture::ConvNet128.network(32, 32, Stem::Small).unwrap();
    let snapshot = start(&network, 7, 1);
    let short = Snapshot { values: snapshot.values[1..].to_vec(), ..snapshot.clone() };
    let refused = |result: labelsieve_vision::Result<()>| result.err().unwrap().to_string();
    assert!(refused(networks.learner(&network, &short).map(|_| ())).starts_with("parameters: expected"));
    let mut learner = networks.learner(&network, &snapshot).unwrap();
    let wrong_size = images(2, (16, 16), 0);
    assert_eq!(
        refused(learner.features(&wrong_size).map(|_| ())),
        "size of the images: expected 32×32, found 16×16"
    );
    let batch = images(2, (32, 32), 0);
    for (classes, weights, split, expected) in [
        (&[0, 1, 2][..], &[0.5, 0.5][..], 0, "classes of a batch: expected 2, found 3"),
        (&[0, 1][..], &[0.5][..], 0, "weights of a batch: expected 2, found 1"),
        (&[0, 7][..], &[0.5, 0.5][..], 0, "class of an image: expected a number below 7, found 7"),
        (&[0, 1][..], &[0.5, 0.5][..], 8, "split of the classes: expected at most 7, found 8"),
    ] {
        assert_eq!(refused(learner.step(&batch, Targets { classes, weights, split }, &SGD)), expected);
    }
    assert_eq!(learner.features(&Batch::new(32, 32, Vec::new()).unwrap()).unwrap(), []);
}
