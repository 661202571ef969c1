//! Tables of results: relevance, predictions, ground truth.

pub mod prediction_file;
pub mod relevance_file;
pub mod truth_file;
