//! EfficientNet-Lite0 as a file: the network that photos are embedded with when none is chosen.
//!
//! A crate of its own, because registries limit the size of each. Trained on ImageNet-1k by others: [`ATTRIBUTION`].

#![warn(missing_docs)]

/// What it is called.
pub const NAME: &str = "efficientnet-lite0";

/// The weights, as a file that `labelsieve embed --model` reads; `tools/efficientnet/convert.py` made it.
pub const NETWORK: &[u8] = include_bytes!("../data/efficientnet-lite0.safetensors");

/// Whose work it is, the licence, and what was changed.
pub const ATTRIBUTION: &str = include_str!("../data/ATTRIBUTION.md");
