//! Examples: features with ids and classes, in every supported layout.
//!
//! [`table`] reads them, from NumPy files, Parquet or the folders of [`clip_retrieval`]; [`feature_file`] writes them. A
//! [`feature_part`] is one of several files to merge; [`class_texts`] are class names as examples.

pub mod class_texts;
pub mod clip_retrieval;
pub mod feature_file;
pub mod feature_part;
pub mod table;
