//! From files to what the method works on: tables of examples joined into classes, images, networks.

pub mod base;
pub mod class_text;
pub mod classifier;
pub mod decided;
pub mod pools;
pub mod scope;
pub mod swapped;
