//! Arrays: reading and writing NumPy files, and matrices that are larger than memory.
//!
//! [`npy`] and [`npy_dictionary`] parse headers, [`array_file`] reads elements, [`npz`] archives. A [`matrix`] reads rows on
//! demand, from a file, from memory or memory-mapped ([`mapped`]); [`scratch`] is temporary space on disk.

pub mod array_file;
pub mod byte_source;
pub mod mapped;
pub mod matrix;
pub mod npy;
pub mod npy_dictionary;
pub mod npy_write;
pub mod npz;
pub mod scratch;
