//! Images per second on the CPU, for a training step and for features: one line of JSON per network. With photos on the
//! command line, one more line says how many of them become features in a second, decoding included.
//!
//! `benches/vision/run` compares them with PyTorch.

use std::time::{Duration, Instant};

use labelsieve_vision::images::{DecodeLimits, Encoded, View};
use labelsieve_vision::{
    Architecture, Batch, CpuLearners, Learners, Preparation, ScaleRule, Sgd, Snapshot, Stem, Targets,
    prepare, unit_features,
};

fn main() {
    networks();
    let files: Vec<Vec<u8>> =
        std::env::args().skip(1).map(|path| std::fs::read(path).expect("a file")).collect();
    if !files.is_empty() {
        photos(&files);
    }
}

fn networks() {
    for (architecture, size, images) in [
        (Architecture::ResNet10, 224, 8),
        (Architecture::ResNet10, 64, 64),
        (Architecture::ConvNet128, 84, 32),
        (Architecture::EfficientNetLite0, 224, 32),
    ] {
        let network = architecture.network(size, size, Stem::for_images(size, size)).expect("a usual size");
        let mut learner =
            CpuLearners.learner(&network, &Snapshot::initial(&network, 100, 0)).expect("a new network");
        let pixels = (0..images * size * size * 3).map(|i| ((i * 2_654_435_761) >> 7) as u8).collect();
        let batch = Batch::new(size, size, pixels).expect("whole images");
        let classes: Vec<u32> = (0..images as u32).collect();
        let weights = vec![1.0 / images as f32; images];
        let sgd = Sgd { rate: 1e-4, momentum: 0.9, decay: 5e-4, scale: ScaleRule::Learned };
        let train = per_second(images, || {
            let targets = Targets { classes: &classes, weights: &weights, split: 0 };
            learner.step(&batch, targets, &sgd).expect("a step");
        });
        let embed = per_second(images, || {
            learner.features(&batch).expect("features");
        });
        println!(
            r#"{{"network": "{architecture}", "size": {size}, "batch": {images}, "train": {train:.1}, "embed": {embed:.1}}}"#
        );
    }
}

/// From files to features, as `labelsieve embed` does it: photos are decoded ahead of the network, on the same cores.
fn photos(files: &[Vec<u8>]) {
    const BATCH: usize = 32;
    let (size, n) = ((224, 224), files.len());
    let network = Architecture::EfficientNetLite0.network(size.0, size.1, Stem::Photo).expect("a usual size");
    let mut learner =
        CpuLearners.learner(&network, &Snapshot::initial(&network, 0, 0)).expect("a new network");
    let preparation = Preparation { size, view: View::Centre, limits: DecodeLimits::default(), batch: BATCH };
    let decoded = || {
        let encoded =
            |(i, bytes): (usize, Vec<u8>)| Encoded { id: i.to_string(), label: None, bytes: Ok(bytes) };
        let source = files.to_vec().into_iter().enumerate().map(encoded);
        prepare(source, preparation).expect("a thread").map(|batch| batch.expect("photos").batch)
    };
    let decode = per_second(n, || {
        assert_eq!(decoded().map(|batch| batch.map_or(0, |batch| batch.len())).sum::<usize>(), n)
    });
    let photos = per_second(n, || {
        for batch in decoded().flatten() {
            unit_features(learner.as_mut(), &batch).expect("features");
        }
    });
    println!(
        r#"{{"network": "{}", "size": {}, "batch": {BATCH}, "photos": {photos:.1}, "decode": {decode:.1}}}"#,
        Architecture::EfficientNetLite0,
        size.0
    );
}

/// Images per second of the best of three stretches of two seconds, after one call to warm up.
fn per_second(images: usize, mut work: impl FnMut()) -> f64 {
    work();
    let stretch = |work: &mut dyn FnMut()| {
        let (start, mut calls) = (Instant::now(), 0);
        while start.elapsed() < Duration::from_secs(2) {
            work();
            calls += 1;
        }
        (calls * images) as f64 / start.elapsed().as_secs_f64()
    };
    (0..3).map(|_| stretch(&mut work)).fold(0.0, f64::max)
}
