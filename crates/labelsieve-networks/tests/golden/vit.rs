//! The golden files of vision transformers and the networks that they are about, for tests and benchmarks on every device.

use std::collections::BTreeMap;

use labelsieve_networks::transformer::{Normalisation, Tensors};
use labelsieve_networks::{Batch, Result};
use serde::Deserialize;

/// Tensors by name.
pub type Shapes = BTreeMap<String, Vec<usize>>;

/// A file by `make_vit.py`.
#[derive(Deserialize)]
pub struct Golden {
    pub mean: [f64; 3],
    pub deviation: [f64; 3],
    pub cases: Vec<Case>,
}

/// One network, an image size and the features that its library gives.
#[derive(Deserialize)]
pub struct Case {
    pub name: String,
    pub config: serde_json::Value,
    pub size: (usize, usize),
    pub tensors: Shapes,
    pub features: Vec<Vec<f64>>,
}

/// Numbers in [-1, 1) by name: FNV-1a of the name, then SplitMix64 by position.
fn uniform(name: &str, n: usize) -> impl Iterator<Item = f64> {
    let seed = name
        .bytes()
        .fold(0xCBF2_9CE4_8422_2325u64, |seed, byte| (seed ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3));
    (1..=n as u64).map(move |i| {
        let z = seed.wrapping_add(i.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 40) as f64 / 8_388_608.0 - 1.0
    })
}

/// Tensors by the formula of `make_vit.py`.
pub struct Formula(pub Shapes);

impl Tensors for Formula {
    fn shape(&self, name: &str) -> Option<Vec<usize>> {
        self.0.get(name).cloned()
    }

    fn values(&self, name: &str) -> Result<Vec<f32>> {
        let shape = &self.0[name];
        let per_row: usize = shape.iter().skip(1).product();
        let (base, scale) = match () {
            () if shape.len() >= 2 && shape[0] > 1 && !name.contains("position") => {
                (0.0, (3.0 / per_row as f64).sqrt())
            }
            () if shape.len() == 1 && name.ends_with("weight") => (1.0, 0.2),
            () if name.contains("lambda") || name.contains("gamma") => (0.5, 0.25),
            () => (0.0, 0.4),
        };
        Ok(uniform(name, shape.iter().product()).map(|u| (base + scale * u) as f32).collect())
    }
}

/// `n` images of made-up pixels.
pub fn images(n: usize, size: (usize, usize)) -> Batch {
    let (height, width) = size;
    let pixels = uniform("pixels", n * height * width * 3).map(|u| ((u + 1.0) * 128.0) as u8).collect();
    Batch::new(height, width, pixels).unwrap()
}

/// Small networks of every family, at several image sizes.
pub fn small() -> Golden {
    serde_json::from_str(include_str!("vit_small.json")).unwrap()
}

/// One network of the published size of each.
pub fn published() -> Golden {
    serde_json::from_str(include_str!("vit_real.json")).unwrap()
}

impl Golden {
    /// The normalisation of images.
    pub fn normalisation(&self) -> Normalisation {
        Normalisation { mean: self.mean, deviation: self.deviation, ..Normalisation::default() }
    }
}
