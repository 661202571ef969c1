//! Pictures, and a small network to look at them.

use std::io::Cursor;
use std::path::Path;

use image::{DynamicImage, ImageFormat, Rgb, RgbImage};
use labelsieve_files::{NetworkFile, NetworkMetadata, Precision};
use labelsieve_networks::{Architecture, Snapshot, Stem, weights};

/// A network of the repository.
pub const TINY_RESNET10: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/tiny-resnet10.safetensors");

/// Copies [`TINY_RESNET10`] into a folder, where its path is the same for every checkout.
pub fn copy_small_network(folder: &Path) {
    std::fs::copy(TINY_RESNET10, folder.join("tiny-resnet10.safetensors")).expect("disk space");
}

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

/// A picture of a class, at a random position with a little noise.
pub fn picture(class: &str, i: u32) -> Vec<u8> {
    let drawn = RgbImage::from_fn(16, 16, |x, y| {
        let across = (x + i) / 2 % 2;
        let down = (y + i / 3) / 2 % 2;
        let light = match class {
            "columns" => 130 * across,
            "rows" => 130 * down,
            "checks" => 130 * (across ^ down),
            _ => 65,
        };
        Rgb([(40 + light + (x * 7 + y * 13 + i * 31) % 32) as u8; 3])
    });
    encoded(&drawn.into(), ImageFormat::Png)
}

/// `n` pictures of each class below a folder of its name; `first` makes them others than those of other folders.
pub fn draw(folder: &Path, name: &str, classes: &[&str], n: u32, first: u32) {
    for class in classes {
        for i in first..first + n {
            write(folder, &format!("{name}/{class}/{i:03}.png"), &picture(class, i));
        }
    }
}

/// Pictures of base classes to learn from and to check on.
pub fn base_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    draw(folder.path(), "base", &["columns", "rows"], 12, 0);
    draw(folder.path(), "checked", &["columns", "rows"], 10, 100);
    folder
}
