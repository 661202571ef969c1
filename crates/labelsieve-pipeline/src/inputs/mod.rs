//! From files to what the method works on: tables of examples joined into classes, images, networks.

pub mod base;
pub mod built_in;
pub mod class_text;
pub mod classifier;
pub mod copies;
pub mod decisions;
pub mod embedder;
pub(crate) mod hub_folder;
mod hub_images;
pub mod images;
pub mod left_out;
pub mod network;
pub mod network_fingerprint;
pub mod onnx;
pub mod pools;
pub mod same_network;
pub mod scope;
pub mod swapped;
pub mod tables;
