//! Tensors: safetensors files of classifiers and networks.

pub mod classifier_file;
pub mod network_file;
pub mod tensor_file;
pub mod tensor_shards;
