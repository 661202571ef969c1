//! Networks on the GPU against those on the CPU. Every test skips with a message without a GPU or cuDNN.

use labelsieve_cuda::{ActivationPrecision, Cuda, CudaLearners};
use labelsieve_networks::{
    Architecture, Batch, CpuLearners, Distance, Learners, Network, Prototypical, Role, ScaleRule, Sgd,
    Snapshot, Stem, Tally, Targets,
};
use labelsieve_numerics::random::Stream;

fn learners(precision: ActivationPrecision) -> Option<CudaLearners> {
    match Cuda::open(0).and_then(|cuda| cuda.learners(precision)) {
        Ok(learners) => Some(learners),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

macro_rules! learners_or_skip {
    ($precision:expr) => {
        match learners($precision) {
            Some(learners) => learners,
            None => return,
        }
    };
}

const SGD: Sgd = Sgd { rate: 0.05, momentum: 0.9, decay: 5e-4, scale: ScaleRule::Learned };

/// The start of a training, moved a little so that no channel of a normalisation is like another.
fn start(network: &Network, n_classes: usize, seed: u64) -> Snapshot {
    let mut snapshot = Snapshot::initial(network, n_classes, seed);
    let stream = Stream::new(seed).branch(u64::MAX);
    for (parameter, range) in snapshot.tensors(network).unwrap() {
        let is_weight = matches!(parameter.role, Role::Convolution | Role::Depthwise | Role::ClassWeights);
        if !is_weight && parameter.role != Role::ClassScale {
            for i in range {
                snapshot.values[i] += 0.1 * stream.normal(i as u64).abs();
            }
        }
    }
    snapshot
}

/// Images of noise on waves: neighbouring pixels are alike, as in photos.
fn images(n_images: usize, (height, width): (usize, usize), seed: u64) -> Batch {
    let stream = Stream::new(seed);
    let pixel = |i: usize| {
        let image = i / (height * width * 3);
        let row = i / (width * 3) % height;
        let column = i / 3 % width;
        let tilt = stream.normal((1 << 40) + (image * 3 + i % 3) as u64);
        let wave = (tilt * row as f32 + column as f32 * 0.3).sin();
        (128.0 + 60.0 * wave + 25.0 * stream.normal(i as u64)).clamp(0.0, 255.0) as u8
    };
    Batch::new(height, width, (0..n_images * height * width * 3).map(pixel).collect()).unwrap()
}

/// ‖a - b‖ / ‖b‖.
fn distance(a: impl IntoIterator<Item = f32>, b: impl IntoIterator<Item = f32>) -> f64 {
    let square = |value: f32| f64::from(value) * f64::from(value);
    let mut difference = 0.0;
    let mut length = 0.0;
    for (a, b) in a.into_iter().zip(b) {
        difference += square(a - b);
        length += square(b);
    }
    (difference / length).sqrt()
}

/// The largest distance of any parameter's change since `before`, with its name.
fn change_distance(
    network: &Network,
    before: &Snapshot,
    found: &Snapshot,
    expected: &Snapshot,
) -> (f64, String) {
    let distances = before.tensors(network).unwrap().into_iter().map(|(parameter, range)| {
        let change = |after: &Snapshot| {
            let numbers = after.values[range.clone()].iter().zip(&before.values[range.clone()]);
            numbers.map(|(after, before)| after - before).collect::<Vec<f32>>()
        };
        (distance(change(found), change(expected)), parameter.name)
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
fn cases() -> Vec<(Architecture, Network, usize)> {
    let case = |a: Architecture, h, w, stem, n| (a, a.network(h, w, stem).unwrap(), n);
    vec![
        case(Architecture::ConvNet128, 16, 16, Stem::Small, 5),
        case(Architecture::ConvNet128, 20, 35, Stem::Small, 2),
        case(Architecture::ResNet10, 32, 32, Stem::Small, 3),
        case(Architecture::ResNet10, 48, 37, Stem::Photo, 4),
        case(Architecture::ResNet18, 64, 64, Stem::Photo, 5),
        case(Architecture::ResNet50, 64, 64, Stem::Photo, 4),
        case(Architecture::EfficientNetLite0, 96, 65, Stem::Photo, 6),
        case(Architecture::EfficientNetLite0, 64, 128, Stem::Photo, 5),
    ]
}

#[test]
fn steps_on_episodes_agree_with_the_cpu() {
    let learners = learners_or_skip!(ActivationPrecision::F32);
    for distance in [Distance::Euclidean, Distance::Cosine] {
        let rule = Prototypical { ways: 2, shots: 1, queries: 2, distance };
        for network in [
            Architecture::ConvNet128.network(16, 16, Stem::Small).unwrap(),
            Architecture::ResNet10.network(32, 32, Stem::Small).unwrap(),
        ] {
            let before = start(&network, 0, 1);
            let size = (network.input().height, network.input().width);
            let batch = images(rule.batch(), size, 3);
            let step = |learners: &dyn Learners| {
                let mut learner = learners.learner(&network, &before).unwrap();
                learner.step_on_features(&batch, &rule, &Sgd { rate: 1e-3, ..SGD }).unwrap();
                (learner.tally().unwrap(), learner.snapshot().unwrap())
            };
            let (found, after) = step(&learners);
            let (expected, on_cpu) = step(&CpuLearners);
            assert!(
                (found.loss - expected.loss).abs() < 1e-3 * expected.loss.max(1.0),
                "{found:?}, {expected:?}"
            );
            assert_eq!((found.images, found.steps), (4, 1));
            let (largest, name) = change_distance(&network, &before, &after, &on_cpu);
            assert!(largest < 2e-2, "{distance:?}, {name}: {largest}");
            assert_eq!(after, step(&learners).1, "a step repeats itself");
        }
    }
}

#[test]
fn features_agree_with_the_cpu() {
    for precision in [ActivationPrecision::F32, ActivationPrecision::Bf16] {
        let learners = learners_or_skip!(precision);
        for (architecture, network, n) in cases() {
            let tolerance = match (precision, architecture) {
                (ActivationPrecision::F32, _) => 1e-5,
                (ActivationPrecision::Bf16, Architecture::EfficientNetLite0) => 5e-2, // fifty layers, few numbers in each
                (ActivationPrecision::Bf16, _) => 2e-2,
            };
            let snapshot = start(&network, 0, 1);
            let size = (network.input().height, network.input().width);
            let mut learner = learners.learner(&network, &snapshot).unwrap();
            let mut on_cpu = CpuLearners.learner(&network, &snapshot).unwrap();
            for n in [n, 1] {
                let batch = images(n, size, n as u64);
                let found = learner.features(&batch).unwrap();
                let expected = on_cpu.features(&batch).unwrap();
                assert_eq!(found.len(), expected.len());
                let found = distance(found, expected);
                eprintln!("{precision:?} {architecture} {size:?} n = {n}: {found:.1e}");
                assert!(found < tolerance, "{precision:?} {architecture} {size:?} n = {n}: {found:.1e}");
            }
        }
    }
}

/// Each step starts from the CPU's snapshot: errors of several steps would grow too fast to say anything.
///
/// A number within rounding of zero may pass a ReLU on one device and not on the other. That changes the gradients of its layer,
/// of n numbers, by some 1/√n: up to a few percent here. So every step has a wide bound, and the best of three a narrow one;
/// of fifty layers, some ReLU differs in most steps. With bf16 many differ, and small batches magnify that through the
/// normalisations, in PyTorch as much as here: all gradients together still have to point the same way.
#[test]
fn steps_agree_with_the_cpu() {
    for precision in [ActivationPrecision::F32, ActivationPrecision::Bf16] {
        let learners = learners_or_skip!(precision);
        let mut failures = Vec::new();
        for (architecture, network, n) in cases() {
            let (loss_bound, every_bound, best_bound) = match (precision, architecture) {
                (ActivationPrecision::F32, Architecture::ResNet50 | Architecture::EfficientNetLite0) => {
                    (3e-5, 0.1, 0.02)
                }
                (ActivationPrecision::F32, _) => (3e-5, 0.1, 1e-3),
                (ActivationPrecision::Bf16, Architecture::ResNet50 | Architecture::EfficientNetLite0) => {
                    (0.05, 2.0, 0.5)
                }
                (ActivationPrecision::Bf16, _) => (0.02, 0.5, 0.3),
            };
            let mut before = start(&network, 7, 2);
            let mut best = f64::INFINITY;
            for (step, split) in [0, 3, 0].into_iter().enumerate() {
                let (after, distances) = step_of_both(&learners, &network, &before, n, step as u64, split);
                let report = format!("{precision:?} {architecture} n = {n}, step {step}: {distances}");
                eprintln!("{report}");
                let distance = match precision {
                    ActivationPrecision::F32 => distances.worst.0,
                    ActivationPrecision::Bf16 => distances.momentum,
                };
                if distances.loss > loss_bound || distance > every_bound {
                    failures.push(report);
                }
                best = best.min(distance);
                before = after;
            }
            if best > best_bound {
                failures.push(format!("{precision:?} {architecture}: at best {best:.1e}"));
            }
        }
        assert!(failures.is_empty(), "{failures:#?}");
    }
}

/// Relative differences of a GPU's step from the CPU's.
struct Distances {
    loss: f64,
    /// Of all momenta together.
    momentum: f64,
    /// Of the parameter whose change differs most.
    worst: (f64, String),
}

impl std::fmt::Display for Distances {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let Distances { loss, momentum, worst: (worst, name) } = self;
        write!(f, "loss {loss:.1e}, momentum {momentum:.1e}, worst {name} {worst:.1e}")
    }
}

/// The same step on both devices: what the CPU makes of it, and how far the GPU is from that.
fn step_of_both(
    learners: &CudaLearners,
    network: &Network,
    before: &Snapshot,
    n: usize,
    seed: u64,
    split: usize,
) -> (Snapshot, Distances) {
    let mut learner = learners.learner(network, before).unwrap();
    let mut on_cpu = CpuLearners.learner(network, before).unwrap();
    let batch = images(n, (network.input().height, network.input().width), 10 + seed);
    let (classes, weights) = targets(n);
    let targets = Targets { classes: &classes, weights: &weights, split };
    learner.step(&batch, targets, &SGD).unwrap();
    on_cpu.step(&batch, targets, &SGD).unwrap();
    let tally = learner.tally().unwrap();
    let wanted = on_cpu.tally().unwrap();
    assert_eq!((tally.images, tally.steps), (wanted.images, wanted.steps));
    let found = learner.snapshot().unwrap();
    let expected = on_cpu.snapshot().unwrap();
    let distances = Distances {
        loss: (tally.loss / wanted.loss - 1.0).abs(),
        momentum: distance(found.momentum.iter().copied(), expected.momentum.iter().copied()),
        worst: change_distance(network, before, &found, &expected),
    };
    if distances.loss < 1e-4 {
        assert_eq!(tally.correct, wanted.correct);
    }
    (expected, distances)
}

#[test]
fn a_zero_row_and_a_fixed_scale_are_treated_as_by_the_cpu() {
    let learners = learners_or_skip!(ActivationPrecision::F32);
    let network = Architecture::ConvNet128.network(16, 16, Stem::Small).unwrap();
    let mut before = start(&network, 7, 4);
    let class_weights =
        before.tensors(&network).unwrap().into_iter().find(|(p, _)| p.role == Role::ClassWeights);
    let rows = class_weights.unwrap().1;
    before.values[rows.start..rows.start + network.dim()].fill(0.0); // class 0
    before.momentum.fill(0.01);
    let (classes, weights) = targets(5);
    let targets = Targets { classes: &classes, weights: &weights, split: 0 };
    let sgd = Sgd { rate: 1e-14, decay: 0.0, scale: ScaleRule::Fixed, ..SGD }; // a zero row has gradients of 10¹² and more
    let after = |learner: &mut dyn labelsieve_networks::Learner| {
        learner.step(&images(5, (16, 16), 1), targets, &sgd).unwrap();
        (learner.tally().unwrap(), learner.snapshot().unwrap())
    };
    let (tally, found) = after(learners.learner(&network, &before).unwrap().as_mut());
    let (wanted, expected) = after(CpuLearners.learner(&network, &before).unwrap().as_mut());
    assert_eq!(tally.correct, wanted.correct);
    assert!((tally.loss / wanted.loss - 1.0).abs() < 1e-5, "{tally:?} {wanted:?}");
    assert_eq!(found.momentum.last(), Some(&0.01));
    let moved = distance(found.momentum, expected.momentum);
    assert!(moved < 1e-3, "{moved:.1e}");
}

/// Six steps with batches of several sizes; with `breaks`, through a snapshot before each.
fn train(learners: &CudaLearners, network: &Network, breaks: bool) -> Snapshot {
    let mut snapshot = start(network, 7, 3);
    let mut learner = learners.learner(network, &snapshot).unwrap();
    for (step, n) in [6, 6, 2, 9, 6, 1].into_iter().enumerate() {
        if breaks {
            snapshot = learner.snapshot().unwrap();
            learner = learners.learner(network, &snapshot).unwrap();
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
    for precision in [ActivationPrecision::Bf16, ActivationPrecision::F32] {
        let learners = learners_or_skip!(precision);
        for architecture in
            [Architecture::ResNet10, Architecture::ConvNet128, Architecture::EfficientNetLite0]
        {
            let network = architecture.network(64, 64, Stem::Small).unwrap();
            let unbroken = train(&learners, &network, false);
            assert!(
                unbroken == train(&learners, &network, false),
                "{architecture} {precision:?}: a second run"
            );
            assert!(
                unbroken == train(&learners, &network, true),
                "{architecture} {precision:?}: a resumed run"
            );
        }
    }
}

#[test]
fn training_learns() {
    let learners = learners_or_skip!(ActivationPrecision::Bf16);
    let network = Architecture::ResNet10.network(32, 32, Stem::Small).unwrap();
    let mut learner = learners.learner(&network, &start(&network, 4, 5)).unwrap();
    // Class c is tinted with its own colour.
    let batch = |seed: u64| {
        let mut pixels = images(32, (32, 32), seed).pixels().to_vec();
        for (i, byte) in pixels.iter_mut().enumerate() {
            let class = i / (32 * 32 * 3) % 4;
            let channel = i % 3;
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
fn a_loss_that_is_no_number_shows_in_one_tally_alone() {
    let learners = learners_or_skip!(ActivationPrecision::Bf16);
    let network = Architecture::ConvNet128.network(16, 16, Stem::Small).unwrap();
    let mut learner = learners.learner(&network, &start(&network, 7, 1)).unwrap();
    let (classes, mut weights) = targets(4);
    weights[0] = f32::NAN;
    let targets = Targets { classes: &classes, weights: &weights, split: 0 };
    learner.step(&images(4, (16, 16), 0), targets, &SGD).unwrap();
    let tally = learner.tally().unwrap();
    assert!(tally.loss.is_nan() && tally.steps == 1, "{tally:?}");
    assert_eq!(learner.tally().unwrap(), Tally::default());
}

#[test]
fn what_does_not_fit_is_refused_as_by_the_cpu() {
    let learners = learners_or_skip!(ActivationPrecision::Bf16);
    let network = Architecture::ConvNet128.network(32, 32, Stem::Small).unwrap();
    let snapshot = start(&network, 7, 1);
    let short = Snapshot { values: snapshot.values[1..].to_vec(), ..snapshot.clone() };
    let refused = learners.learner(&network, &short).err().unwrap();
    assert_eq!(Some(refused), CpuLearners.learner(&network, &short).err());
    let mut learner = learners.learner(&network, &snapshot).unwrap();
    let mut on_cpu = CpuLearners.learner(&network, &snapshot).unwrap();
    let wrong_size = images(2, (16, 16), 0);
    assert!(learner.features(&wrong_size).is_err());
    assert_eq!(learner.features(&wrong_size), on_cpu.features(&wrong_size));
    let batch = images(2, (32, 32), 0);
    for (classes, weights, split) in [
        (&[0, 1, 2][..], &[0.5, 0.5][..], 0),
        (&[0, 1][..], &[0.5][..], 0),
        (&[0, 7][..], &[0.5, 0.5][..], 0),
        (&[0, 1][..], &[0.5, 0.5][..], 8),
    ] {
        let targets = Targets { classes, weights, split };
        assert!(learner.step(&batch, targets, &SGD).is_err());
        assert_eq!(learner.step(&batch, targets, &SGD), on_cpu.step(&batch, targets, &SGD));
    }
    let nothing = Batch::new(32, 32, Vec::new()).unwrap();
    assert_eq!(learner.features(&nothing).unwrap(), [0f32; 0]);
    learner.step(&nothing, Targets { classes: &[], weights: &[], split: 0 }, &SGD).unwrap();
    assert_eq!(learner.tally().unwrap(), Tally::default());
}
