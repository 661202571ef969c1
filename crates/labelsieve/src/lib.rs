//! Relevance of web-collected examples from a few verified ones.

pub mod matching;
