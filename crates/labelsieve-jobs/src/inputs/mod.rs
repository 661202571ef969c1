//! From files to the examples of each class.
//!
//! [`pools`] joins the tables of clean examples and candidates by class, with the texts of [`class_text`] and the base classes of
//! [`base`]; [`swapped`] rejects tables given the wrong way round, [`scope`] keeps the classes of one part, and [`decisions`]
//! joins decisions of people with the candidates.

pub mod base;
pub mod class_text;
pub mod classifier;
pub mod decisions;
pub mod pools;
pub mod scope;
pub mod swapped;
