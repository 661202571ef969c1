//! Classifiers from their files.

use std::path::Path;

use labelsieve::classifier::WeightMatrix;
use labelsieve::{Classifier, Features};
use labelsieve_files::SavedClassifier;
use labelsieve_files::work::Result;

/// A classifier, and what its file says of it.
pub struct LoadedClassifier {
    /// Its classes, in the order of scores.
    pub classes: Vec<String>,
    /// Numbers per feature.
    pub dim: usize,
    /// The network that made the features, as the user calls it.
    pub backbone: Option<String>,
    /// The network that made the features: what it is and a digest of it.
    pub network: Option<String>,
    /// The classifier.
    pub classifier: Box<dyn Classifier + Send + Sync>,
    /// Its class weights, where it is made of such.
    pub weights: Option<SavedClassifier>,
}

/// Reads class weights from disk.
pub fn load_weights(path: &Path) -> Result<(SavedClassifier, WeightMatrix)> {
    let saved = SavedClassifier::load(path)?;
    let weights = Features::new(saved.weight.clone(), saved.dim)?;
    let matrix = WeightMatrix::new(weights, saved.scale)?;
    Ok((saved, matrix))
}

/// How a job reads the classifier of features in a file.
pub type ReadClassifier = fn(&Path) -> Result<LoadedClassifier>;

/// Reads a classifier that `train` has written.
pub fn load_classifier(path: &Path) -> Result<LoadedClassifier> {
    let (saved, matrix) = load_weights(path)?;
    Ok(LoadedClassifier {
        classes: saved.classes.clone(),
        dim: saved.dim,
        backbone: saved.backbone.clone(),
        network: saved.network.clone(),
        classifier: Box::new(matrix),
        weights: Some(saved),
    })
}
