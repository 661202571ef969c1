//! Classifiers from their files.

use std::path::Path;

use labelsieve::classifier::discriminant::Within;
use labelsieve::classifier::{Confidence, FittedDiscriminant, WeightMatrix};
use labelsieve::{Classifier, Features};
use labelsieve_files::work::Result;
use labelsieve_files::{SavedClassifier, SavedConfidence, SavedDiscriminant};

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
    /// The leading classes that are base classes.
    pub n_base: usize,
    /// Turns its scores into probabilities and typicality.
    pub confidence: Confidence,
}

/// How a job reads the classifier of features in a file.
pub type ReadClassifier = fn(&Path) -> Result<LoadedClassifier>;

/// Reads a classifier that `train` has written.
pub fn load_classifier(path: &Path) -> Result<LoadedClassifier> {
    let saved = SavedClassifier::load(path)?;
    let (classifier, temperature): (Box<dyn Classifier + Send + Sync>, f32) = match discriminant_of(&saved)? {
        Some(discriminant) => (Box::new(discriminant), 1.0),
        None => (Box::new(matrix_of(&saved)?), saved.scale),
    };
    let confidence = match saved.confidence {
        Some(saved) => Confidence::new(saved.temperature, saved.distances),
        None => Confidence::new(temperature, Vec::new()),
    };
    Ok(LoadedClassifier {
        classes: saved.classes,
        dim: saved.dim,
        backbone: saved.backbone,
        network: saved.network,
        classifier,
        n_base: saved.n_base,
        confidence,
    })
}

/// The class weights of a file.
pub fn matrix_of(saved: &SavedClassifier) -> Result<WeightMatrix> {
    let weights = Features::new(saved.weight.clone(), saved.dim)?;
    Ok(WeightMatrix::new(weights, saved.scale)?)
}

/// The discriminant of a file, if it holds one.
pub fn discriminant_of(saved: &SavedClassifier) -> Result<Option<FittedDiscriminant>> {
    let Some(found) = &saved.discriminant else { return Ok(None) };
    let wide = |values: &[f32]| values.iter().map(|&value| f64::from(value)).collect::<Vec<f64>>();
    let covariance = wide(&found.covariance);
    let within = match &found.basis {
        None => Within::of_matrix(covariance, saved.dim),
        Some(basis) => Within::in_span(wide(basis), covariance, saved.dim),
    };
    Ok(Some(FittedDiscriminant::new(wide(&saved.weight), within, found.n_pooled, found.shrinkage)?))
}

/// A discriminant as a file holds it, beside its means.
pub fn saved_discriminant(model: &FittedDiscriminant) -> SavedDiscriminant {
    let narrow = |values: &[f64]| values.iter().map(|&value| value as f32).collect::<Vec<f32>>();
    SavedDiscriminant {
        covariance: narrow(model.within().matrix()),
        basis: model.within().basis().map(narrow),
        shrinkage: model.gamma(),
        n_pooled: model.n_pooled(),
    }
}

/// The confidence of a classifier, as a file holds it.
pub fn saved_confidence(confidence: &Confidence) -> SavedConfidence {
    SavedConfidence { temperature: confidence.temperature(), distances: confidence.distances().to_vec() }
}
