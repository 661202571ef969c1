//! Images per second on the CPU. `benches/vision/run` compares them with PyTorch.
//!
//! Reads lines of `WORK NETWORK SIZE BATCH`, and answers each with images per second: one call to warm up, then a stretch of
//! about [`STRETCH`]. WORK is `train`, `embed`, `photos` or `decode`; the last two are about the photos on the command line.

mod transformers;

use std::collections::HashMap;
use std::io::BufRead;
use std::time::{Duration, Instant};

use labelsieve_networks::images::{DecodeLimits, Encoded, View};
use labelsieve_networks::{
    Architecture, Batch, CpuLearners, Embedder, Learner, Learners, Preparation, ScaleRule, Sgd, Snapshot,
    Stem, Targets, prepare, unit_features,
};

const STRETCH: Duration = Duration::from_millis(1500);

fn main() {
    let photos: Vec<Vec<u8>> =
        std::env::args().skip(1).map(|path| std::fs::read(path).expect("a file")).collect();
    let mut works = HashMap::new();
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("a line");
        let Work { images, mut call } =
            works.remove(&line).unwrap_or_else(|| work(&line, &photos).expect("WORK NETWORK SIZE BATCH"));
        println!("{:.3}", per_second(images, &mut call));
        works.insert(line, Work { images, call });
    }
}

/// A repeatable piece of work and the number of images it covers.
struct Work {
    images: usize,
    call: Box<dyn FnMut()>,
}

fn work(line: &str, photos: &[Vec<u8>]) -> Option<Work> {
    let mut words = line.split(' ');
    let work = words.next()?;
    let network = words.next()?;
    let size = words.next()?.parse().ok()?;
    let images = words.next()?.parse().ok()?;
    Some(match work {
        "train" => Work { images, call: train(network, size, images) },
        "embed" => Work { images, call: embed(network, size, images) },
        "photos" => Work { images: photos.len(), call: features_of_photos(photos, network, size, images) },
        "decode" => Work { images: photos.len(), call: decode_only(photos, size, images) },
        _ => return None,
    })
}

fn learner(network: &str, size: usize, n_classes: usize) -> Box<dyn Learner> {
    let architecture: Architecture = network.parse().expect("a network");
    let network = architecture.network(size, size, Stem::for_images(size, size)).expect("a usual size");
    CpuLearners.learner(&network, &Snapshot::initial(&network, n_classes, 0)).expect("a new network")
}

fn embedder(network: &str, size: usize) -> Box<dyn Embedder> {
    match transformers::named(network, size) {
        Some(transformer) => Box::new(transformer),
        None => learner(network, size, 0),
    }
}

fn random_images(size: usize, images: usize) -> Batch {
    let pixels = (0..images * size * size * 3).map(|i| ((i * 2_654_435_761) >> 7) as u8).collect();
    Batch::new(size, size, pixels).expect("whole images")
}

fn train(network: &str, size: usize, images: usize) -> Box<dyn FnMut()> {
    let mut learner = learner(network, size, 100);
    let batch = random_images(size, images);
    let classes: Vec<u32> = (0..images as u32).collect();
    let weights = vec![1.0 / images as f32; images];
    let sgd = Sgd { rate: 1e-4, momentum: 0.9, decay: 5e-4, scale: ScaleRule::Learned };
    Box::new(move || {
        let targets = Targets { classes: &classes, weights: &weights, split: 0 };
        learner.step(&batch, targets, &sgd).expect("a step");
    })
}

fn embed(network: &str, size: usize, images: usize) -> Box<dyn FnMut()> {
    let mut embedder = embedder(network, size);
    let batch = random_images(size, images);
    Box::new(move || drop(embedder.features(&batch).expect("features")))
}

/// From files to features, as in `embed`: photos are decoded ahead of the network, on the same cores.
fn features_of_photos(photos: &[Vec<u8>], network: &str, size: usize, batch: usize) -> Box<dyn FnMut()> {
    let mut embedder = embedder(network, size);
    let photos = photos.to_vec();
    Box::new(move || {
        for batch in decoded(&photos, size, batch) {
            unit_features(embedder.as_mut(), &batch).expect("features");
        }
    })
}

fn decode_only(photos: &[Vec<u8>], size: usize, batch: usize) -> Box<dyn FnMut()> {
    let photos = photos.to_vec();
    Box::new(move || {
        let n: usize = decoded(&photos, size, batch).map(|batch| batch.len()).sum();
        assert_eq!(n, photos.len());
    })
}

fn decoded(photos: &[Vec<u8>], size: usize, batch: usize) -> impl Iterator<Item = Batch> {
    let encoded = |(i, bytes): (usize, Vec<u8>)| Encoded { id: i.to_string(), label: None, bytes: Ok(bytes) };
    let photos = photos.to_vec();
    let source = photos.into_iter().enumerate().map(encoded);
    let limits = DecodeLimits::default();
    let preparation = Preparation { size: (size, size), view: View::Centre, limits, batch };
    prepare(source, preparation).expect("a thread").filter_map(|prepared| prepared.expect("photos").batch)
}

fn per_second(images: usize, work: &mut dyn FnMut()) -> f64 {
    work();
    let start = Instant::now();
    let mut calls = 0;
    while start.elapsed() < STRETCH {
        work();
        calls += 1;
    }
    (calls * images) as f64 / start.elapsed().as_secs_f64()
}
