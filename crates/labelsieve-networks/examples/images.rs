//! Images per second and core: decoding the files named on the command line, and augmenting images in memory. One line of
//! JSON. `benches/images/run` compares it with Pillow.

use std::time::{Duration, Instant};

use labelsieve_networks::images::{
    Augmentation, Crop, DecodeLimits, Jitter, RandomCrop, RgbImage, Scaler, View, decode,
};
use labelsieve_numerics::random::Stream;

fn main() {
    let files: Vec<Vec<u8>> =
        std::env::args().skip(1).map(|path| std::fs::read(path).expect("a file")).collect();
    let images: Vec<RgbImage> = if files.is_empty() {
        (0..64).map(|seed| noise(64, 64, seed)).collect()
    } else {
        files.iter().map(|file| decode(file, &DecodeLimits::default()).expect("an image")).collect()
    };
    let mut results = Vec::new();
    if !files.is_empty() {
        results
            .push(("decode", per_second(files.len(), |i| drop(decode(&files[i], &DecodeLimits::default())))));
    }
    let mut scaler = Scaler::default();
    for size in [64, 224] {
        let mut out = vec![0; 3 * size * size];
        let usual = Augmentation::usual(size, size);
        let crop = Augmentation {
            crop: Crop::Random(RandomCrop::default()),
            jitter: Jitter::NONE,
            ..Augmentation::none(size, size)
        };
        let mut run = |augmentation: &Augmentation| {
            per_second(images.len(), |i| {
                let stream = Stream::new(i as u64);
                augmentation.apply(&images[i], stream, &mut out, &mut scaler).expect("a view");
            })
        };
        results.push((if size == 64 { "crop 64" } else { "crop 224" }, run(&crop)));
        results.push((if size == 64 { "augment 64" } else { "augment 224" }, run(&usual)));
    }
    results.push((
        "view 224",
        per_second(images.len(), |i| drop(View::Centre.apply(&images[i], (224, 224), &mut scaler))),
    ));
    let fields: Vec<String> = results.iter().map(|(name, rate)| format!("\"{name}\": {rate:.0}")).collect();
    println!("{{{}}}", fields.join(", "));
}

fn noise(height: usize, width: usize, seed: u64) -> RgbImage {
    let stream = Stream::new(seed);
    let pixels = (0..3 * height * width).map(|i| stream.bits(i as u64) as u8).collect();
    RgbImage::new(height, width, pixels).expect("the size it has")
}

/// Calls per second of the best of three stretches of a second.
fn per_second(n: usize, mut work: impl FnMut(usize)) -> f64 {
    let mut stretch = || {
        let start = Instant::now();
        let mut calls = 0;
        while start.elapsed() < Duration::from_secs(1) {
            (0..n).for_each(&mut work);
            calls += n;
        }
        calls as f64 / start.elapsed().as_secs_f64()
    };
    (0..3).map(|_| stretch()).fold(0.0, f64::max)
}
