//! From encoded images to batches for a network.
//!
//! ```text
//! bytes ──decode──► RgbImage ──Dataset──► augment (training) │ View (evaluation) ──► Batch ──Prefetch──► network
//! ```
//!
//! Results do not depend on the number of threads. Images that cannot be decoded, or not within a gigabyte of memory, are
//! listed as skipped.

mod augment;
mod browser;
mod budget;
mod dataset;
mod decode;
mod jitter;
mod jpeg;
mod loader;
mod processing;
mod resize;
mod rgb;

pub use augment::{Augmentation, Crop, RandomCrop};
pub use browser::BrowserImage;
pub(crate) use dataset::next_chunk;
pub use dataset::{Cause, Dataset, DatasetOptions, Encoded, OnDamage, SkippedImage, Storage, Unreadable};
pub(crate) use decode::decode_for;
pub use decode::{DecodeError, DecodeLimits, decode};
pub use jitter::Jitter;
pub use loader::Prefetch;
pub use processing::{Filter, Margins, Processing, ScaledSize};
pub use resize::{Region, Scaler, View, resize};
pub use rgb::RgbImage;
