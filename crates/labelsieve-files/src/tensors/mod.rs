//! Tensors: safetensors files of classifiers and networks.
//!
//! [`tensor_file`] reads and writes tensors with a JSON description and a checksum; the other modules define the kinds of
//! models. [`tensor_shards`] reads large models of other programs, one tensor at a time.

pub mod classifier_file;
pub mod network_file;
pub mod tensor_file;
pub mod tensor_shards;
