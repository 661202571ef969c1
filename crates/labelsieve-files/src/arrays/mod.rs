//! Arrays: `.npy` and `.npz`, matrices of features, and rows that stay in their file or in scratch files.

pub mod array_file;
pub mod byte_source;
pub mod mapped;
pub mod matrix;
pub mod npy;
pub mod npy_dictionary;
pub mod npy_write;
pub mod npz;
pub mod scratch;
