//! The built-in EfficientNet-Lite0 against the PyTorch package that its weights come from, at every level of the machine and on a
//! GPU: `tools/efficientnet/golden.py` made the expected numbers.

use std::path::Path;

use labelsieve_cuda::{ActivationPrecision, Cuda};
use labelsieve_networks::opening::network::{NetworkPart, open_network};
use labelsieve_networks::{Batch, CpuLearners, Learners, centre_features, unit_features};
use labelsieve_numerics::level::Level;

#[derive(serde::Deserialize)]
struct Case {
    height: usize,
    width: usize,
    /// Every eighth number of the feature of each image, of unit length.
    unit: Vec<Vec<f32>>,
    /// The same once the centre was subtracted.
    centred: Vec<Vec<f32>>,
}

/// As `pattern` in `golden.py`.
fn pattern(image: usize, height: usize, width: usize) -> impl Iterator<Item = u8> {
    (0..height * width * 3).map(move |i| {
        let (y, x, c) = (i / 3 / width, i / 3 % width, i % 3);
        let edge = if x > width / 2 { 90 } else { 0 };
        ((y * 7 + x * 5 * (c + 1) + edge + c * 40 + image * 31) / (1 + 2 * image) % 256) as u8
    })
}

fn check(found: &[f32], expected: &[Vec<f32>], what: &str) {
    let dim = found.len() / expected.len();
    let mut worst = 0f32;
    for (found, expected) in found.chunks_exact(dim).zip(expected) {
        assert_eq!(found.len().div_ceil(8), expected.len());
        let differences =
            found.iter().step_by(8).zip(expected).map(|(found, expected)| (found - expected).abs());
        worst = differences.fold(worst, f32::max);
    }
    println!("{what}: differs by at most {worst:.1e}");
    assert!(worst < 1e-4, "{what}: {worst:e}");
}

/// Compares the features that `learners` make with PyTorch's.
fn check_all(learners: &dyn Learners, place: &str) {
    let cases: Vec<Case> = serde_json::from_str(include_str!("golden/efficientnet.json")).unwrap();
    for Case { height, width, unit, centred } in &cases {
        let model = Path::new("efficientnet-lite0");
        let opened = open_network(model, NetworkPart::Features, Some((*height, *width))).unwrap();
        let mut learner = learners.learner(&opened.network, &opened.snapshot).unwrap();
        let pixels = (0..unit.len()).flat_map(|image| pattern(image, *height, *width)).collect();
        let batch = Batch::new(*height, *width, pixels).unwrap();
        let mut features = unit_features(learner.as_mut(), &batch).unwrap();
        check(&features, unit, &format!("{place}, {height}×{width}"));
        centre_features(&mut features, opened.centre.as_ref().unwrap());
        check(&features, centred, &format!("{place}, {height}×{width}, centred"));
    }
}

#[test]
fn features_are_those_of_pytorch_at_every_level() {
    for level in Level::available() {
        level.make_current(); // the other test does not ask for it
        check_all(&CpuLearners, &level.to_string());
    }
}

#[test]
fn features_are_those_of_pytorch_on_a_gpu() {
    match Cuda::open(0).and_then(|cuda| cuda.learners(ActivationPrecision::F32)) {
        Ok(learners) => check_all(&learners, "GPU"),
        Err(error) => eprintln!("skipped: {error}"),
    }
}
