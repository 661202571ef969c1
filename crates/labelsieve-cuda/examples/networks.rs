//! Images per second of training steps and of embedding: `cargo run --release -p labelsieve-cuda --example networks`.
//!
//! Batches start as bytes in the host's memory and features end there, as in `pretrain` and `embed`; decoding is not
//! included. `-- f32` measures with images of `f32` instead of bf16, `-- bf16 vit` only networks with `vit` in their names. Prints
//! one line per measurement: network, what, images per second.

use std::time::Instant;

use labelsieve_cuda::{ActivationPrecision, Cuda};
use labelsieve_networks::transformer::VisionTransformer;
use labelsieve_networks::transformer::families::describe;
use labelsieve_networks::{
    Architecture, Batch, Embedder, Learner, Learners, ScaleRule, Sgd, Snapshot, Stem, Targets,
};
use labelsieve_numerics::random::Stream;

#[path = "../tests/golden/vit.rs"]
#[expect(dead_code, reason = "tests use the rest")]
mod vit;

const N_CLASSES: usize = 100;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let precision = match std::env::args().nth(1).as_deref() {
        None | Some("bf16") => ActivationPrecision::Bf16,
        Some("f32") => ActivationPrecision::F32,
        Some(other) => return Err(format!("precision `{other}`: expected bf16 or f32").into()),
    };
    let only = std::env::args().nth(2).unwrap_or_default();
    let start = Instant::now();
    let cuda = Cuda::open(0)?;
    eprintln!("{}, opened in {:.2} s", cuda.name(), start.elapsed().as_secs_f64());
    let learners = cuda.learners(precision)?;
    eprintln!("networks ready after {:.2} s", start.elapsed().as_secs_f64());
    for (name, architecture, size, stem, n) in [
        ("resnet10-224", Architecture::ResNet10, 224, Stem::Photo, 128),
        ("convnet128-84", Architecture::ConvNet128, 84, Stem::Small, 256),
        ("resnet10-64", Architecture::ResNet10, 64, Stem::Small, 256),
        ("resnet50-224", Architecture::ResNet50, 224, Stem::Photo, 128),
        ("efficientnet-lite0-224", Architecture::EfficientNetLite0, 224, Stem::Photo, 128),
    ] {
        if !name.contains(&only) {
            continue;
        }
        let network = architecture.network(size, size, stem)?;
        let mut learner = learners.learner(&network, &Snapshot::initial(&network, N_CLASSES, 2))?;
        let first = Instant::now();
        let batch = noise(n, size)?;
        let made = first.elapsed().as_secs_f64();
        train(learner.as_mut(), &batch, 1)?;
        let first = first.elapsed().as_secs_f64() - made;
        let since_start = start.elapsed().as_secs_f64();
        eprintln!("{name}: first step {first:.2} s, {since_start:.2} s after the start");
        println!("{name} train {:.0}", rate(|| train(learner.as_mut(), &batch, 20), 20 * n)?);
        learner.features(&batch)?;
        println!("{name} embed {:.0}", rate(|| embed(&mut *learner, &batch, 20), 20 * n)?);
    }
    let golden = vit::published(); // their sizes; weights are made up
    for (name, case, n) in
        [("vit-s14-224", "dinov2-small", 256), ("vit-b16-224", "vit-base-patch16-224", 256)]
    {
        if !name.contains(&only) {
            continue;
        }
        let case = golden.cases.iter().find(|found| found.name == case).ok_or("no such network")?;
        let tensors = vit::Formula(case.tensors.clone());
        let described = describe(&case.config, &tensors)?;
        let parts = (&described.vit, &described.names);
        let normalisation = golden.normalisation();
        let operations = cuda.transformer_operations(precision)?;
        let mut network = VisionTransformer::read(operations, parts, &tensors, case.size, &normalisation)?;
        let batch = noise(n, case.size.0)?;
        embed(&mut network, &batch, 3)?;
        println!("{name} embed {:.0}", rate(|| embed(&mut network, &batch, 20), 20 * n)?);
    }
    Ok(())
}

/// Images per second of the fastest of five runs.
fn rate(
    mut run: impl FnMut() -> labelsieve_networks::Result<()>,
    n_images: usize,
) -> labelsieve_networks::Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        run()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(n_images as f64 / best)
}

fn train(learner: &mut dyn Learner, batch: &Batch, steps: usize) -> labelsieve_networks::Result<()> {
    let n = batch.len();
    let classes: Vec<u32> = (0..n).map(|i| (i % N_CLASSES) as u32).collect();
    let weights = vec![1.0 / n as f32; n];
    let targets = Targets { classes: &classes, weights: &weights, split: 0 };
    let sgd = Sgd { rate: 0.01, momentum: 0.9, decay: 5e-4, scale: ScaleRule::Learned };
    for _ in 0..steps {
        learner.step(batch, targets, &sgd)?;
    }
    learner.tally().map(|_| ()) // waits for the device
}

fn embed(network: &mut dyn Embedder, batch: &Batch, times: usize) -> labelsieve_networks::Result<()> {
    for _ in 0..times {
        network.features(batch)?;
    }
    Ok(())
}

fn noise(n: usize, size: usize) -> labelsieve_networks::Result<Batch> {
    let stream = Stream::new(1);
    let pixels = (0..n * size * size * 3).map(|i| (128.0 + 50.0 * stream.normal(i as u64)) as u8).collect();
    Batch::new(size, size, pixels)
}
