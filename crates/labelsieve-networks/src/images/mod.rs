//! From encoded images to batches for a network.
//!
//! ```text
//! bytes ──decode──► RgbImage ──Dataset──► augment (training) │ View (evaluation) ──► Batch ──Prefetch──► network
//! ```
//!
//! Nothing here depends on the number of threads, and no input ends the process: what cannot be decoded, or not in a
//! gigabyte of memory, is listed.

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
pub use dataset::{Cause, Dataset, DatasetOptions, Encoded, OnDamage, Skipped, Storage, Unreadable};
pub(crate) use decode::decode_for;
pub use decode::{DecodeError, DecodeLimits, decode};
pub use jitter::Jitter;
pub use loader::Prefetch;
pub use processing::{Filter, Margins, Processing, Scaled};
pub use resize::{Region, Scaler, View, resize};
pub use rgb::RgbImage;
