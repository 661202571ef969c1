//! Opens models of every kind: built-in networks, weight files, folders from the hub and ONNX files.
//!
//! ```text
//! model ──► embedder.rs ─┬─► onnx/           an ONNX file                        ─┐
//!                       ├─► hub_folder.rs   a folder of transformers, timm, OpenCLIP ├─► OpenedEmbedder
//!                       └─► network.rs      a built-in network or weight file       ─┘
//! ```
//!
//! `image_input.rs` feeds images to them, `network_fingerprint.rs` identifies their features.

pub mod built_in;
pub mod embedder;
pub mod hub_folder;
mod hub_images;
pub mod image_input;
pub mod network;
pub mod network_fingerprint;
pub mod onnx;
