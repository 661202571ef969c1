//! Pictures, and a small network to look at them.

use std::io::Cursor;
use std::path::Path;

use image::{DynamicImage, ImageFormat, Rgb, RgbImage};
use labelsieve_data::{NetworkFile, NetworkMetadata, Precision};
use labelsieve_vision::{Architecture, Snapshot, Stem, weights};

/// An untrained network for images of 16×16: nothing here asks whether features are any good.
pub fn write_model(path: &Path, seed: u64) {
    let network = Architecture::ConvNet128.network(16, 16, Stem::Photo).expect("a size");
    let snapshot = Snapshot::initial(&network, 0, seed);
    let metadata = NetworkMetadata {
        architecture: "convnet128".to_owned(),
        image_size: (16, 16),
        channel_mean: network.mean,
        channel_deviation: network.deviation,
        ..NetworkMetadata::default()
    };
    let tensors = weights::to_tensors(&network, &snapshot).expect("a valid snapshot");
    NetworkFile { tensors, metadata: Some(metadata) }.save(path, Precision::F32).expect("disk space");
}

pub fn drawn(seed: u32) -> RgbImage {
    RgbImage::from_fn(24, 20, |x, y| {
        Rgb([(x * 9 + seed * 31) as u8, (y * 11) as u8, (seed * 57 % 256) as u8])
    })
}

pub fn encoded(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).expect("an image");
    bytes.into_inner()
}

pub fn png(seed: u32) -> Vec<u8> {
    encoded(&drawn(seed).into(), ImageFormat::Png)
}

pub fn write(folder: &Path, name: &str, bytes: &[u8]) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("disk space");
    std::fs::write(path, bytes).expect("disk space");
}
