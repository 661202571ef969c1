//! The icons of the demo: real, noisy data with known labels in 800 kB, and a network that embeds them.
//!
//! 32 ambiguous words match the names of some 3,400 icons; [`icons`] reads them, each with a part (clean example, noisy
//! pool or test) and the truth, set by looking at the drawing. [`draw`] turns one into pixels. How the sample was made, and the
//! rule it was labelled by, are described in `tools/icons/README.md`; whose icons these are in [`ATTRIBUTION`].

mod drawing;
mod error;
mod sample;

pub use drawing::{Picture, draw};
pub use error::{IconError, Result};
pub use sample::{Icon, Part, icons, read_icons};

/// The words, each with the intended sense, as a class file for `match`.
pub const CLASSES: &str = include_str!("../data/classes.toml");

/// The icon sets, their authors and licences.
pub const ATTRIBUTION: &str = include_str!("../data/ATTRIBUTION.md");

/// The network that turns icons of 48×48 pixels into features, as a weight file. Its model card is in `models/README.md`.
pub const NETWORK: &[u8] = include_bytes!("../data/icons-convnet128.safetensors");
