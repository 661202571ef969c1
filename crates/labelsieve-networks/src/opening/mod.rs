//! Whatever people name as a network, opened: built-in networks, weight files, folders of the hub, ONNX files; and their images.

pub mod built_in;
pub mod embedder;
pub mod hub_folder;
mod hub_images;
pub mod image_input;
pub mod network;
pub mod network_fingerprint;
pub mod onnx;
