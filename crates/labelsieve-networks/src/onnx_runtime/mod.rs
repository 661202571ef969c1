//! Networks in ONNX files as [`Embedder`](crate::Embedder)s.
//!
//! ```text
//! library.rs: finds ONNX Runtime ──► model.rs: an open file ──input.rs, output.rs──► features
//! ```
//!
//! ONNX Runtime is a shared library that is loaded when the first model is opened; it is not needed for building.

mod error;
mod input;
mod library;
mod model;
mod output;
mod python_folders;

pub use error::{Error, Result};
pub use input::{Element, Input, Layout};
pub use library::{Library, VARIABLE, load, look_in};
pub use model::{Model, OnnxEmbedder};
