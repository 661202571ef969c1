//! Classifiers from their files.

use std::path::Path;

use labelsieve::Features;
use labelsieve::classifier::WeightMatrix;
use labelsieve_data::SavedClassifier;

use crate::error::Result;

/// Reads a classifier from disk.
pub fn load_classifier(path: &Path) -> Result<(SavedClassifier, WeightMatrix)> {
    let saved = SavedClassifier::load(path)?;
    let weights = Features::new(saved.weight.clone(), saved.dim)?;
    let matrix = WeightMatrix::new(weights, saved.scale)?;
    Ok((saved, matrix))
}
