//! Examples: features with ids and classes, in every layout that people have.

pub mod class_texts;
pub mod clip_retrieval;
pub mod feature_file;
pub mod feature_part;
pub mod table;
