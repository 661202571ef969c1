//! EfficientNet-Lite0 as a file: the default network for embedding photos.
//!
//! A crate of its own, because registries limit the size of each. Trained on ImageNet-1k by others: [`ATTRIBUTION`].

#![warn(missing_docs)]

/// Its name.
pub const NAME: &str = "efficientnet-lite0";

/// The weights as a weight file of this project, made by `tools/efficientnet/convert.py`.
pub const NETWORK: &[u8] = include_bytes!("../data/efficientnet-lite0.safetensors");

/// Authors, licence and changes.
pub const ATTRIBUTION: &str = include_str!("../data/ATTRIBUTION.md");
