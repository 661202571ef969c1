//! Loading and saving of the classifiers of the compared systems.

use std::path::Path;

use labelsieve::classifier::Confidence;
use labelsieve::{Classifier, Features};
use labelsieve_files::DataError;
use labelsieve_files::work::{Context, Error, Result};
use labelsieve_jobs::inputs::classifier::{LoadedClassifier, load_classifier as load_weights};
use labelsieve_jobs::train::{LearnedModel, ModelDescription};

use super::episodes::{model_of, tensors_of};
use super::{ModelTensor, SavedModel};
use crate::classifier::{DiffusionClassifier, EpisodicClassifier, Fusion, LinearClassifier, SparseLabels};

/// Reads a classifier of any kind from disk: class weights, or one of the compared systems.
pub fn load_classifier(path: &Path) -> Result<LoadedClassifier> {
    let refused = match load_weights(path) {
        Ok(weights) => return Ok(weights),
        Err(refused) => refused,
    };
    // A file of neither kind was most likely meant as class weights, so that error is reported.
    let Ok(saved) = SavedModel::load(path) else { return Err(refused) };
    let classifier =
        classifier_of(path, &saved).with_context(|| format!("cannot use `{}`", path.display()))?;
    if classifier.n_classes() != saved.classes.len() {
        let expected = format!("{} names", classifier.n_classes());
        return Err(DataError::malformed(path, "classes", expected, saved.classes.len().to_string()).into());
    }
    let SavedModel { classes, dim, backbone, network, .. } = saved;
    // Its scores are cosines, logits or masses; their softmax is no probability of anything, but ranks alike.
    let confidence = Confidence::new(1.0, Vec::new());
    Ok(LoadedClassifier { classes, dim, backbone, network, classifier, n_base: 0, confidence })
}

fn classifier_of(path: &Path, saved: &SavedModel) -> Result<Box<dyn Classifier + Send + Sync>> {
    let numbers = |name: &str| Ok::<_, Error>(saved.tensor(path, name)?.values.clone());
    let linear = || -> Result<LinearClassifier> {
        Ok(LinearClassifier::new(numbers("weight")?, numbers("bias")?, saved.dim)?)
    };
    Ok(match saved.kind.as_str() {
        LINEAR => Box::new(linear()?),
        DIFFUSION => Box::new(diffusion_of(path, saved)?),
        FUSION => {
            let weight = numbers("share")?.first().copied().unwrap_or(f32::NAN);
            Box::new(Fusion::new(diffusion_of(path, saved)?, linear()?, weight)?)
        }
        MATCHING => Box::new(EpisodicClassifier::new(model_of(path, saved)?, numbers("class_vectors")?)?),
        kind => {
            let expected = [LINEAR, DIFFUSION, FUSION, MATCHING].map(|kind| format!("`{kind}`")).join(" or ");
            return Err(DataError::malformed(path, "`kind`", expected, format!("`{kind}`")).into());
        }
    })
}

/// The kinds of models that are classifiers.
const LINEAR: &str = "linear";
const DIFFUSION: &str = "diffusion";
const FUSION: &str = "diffusion with logistic regression";
const MATCHING: &str = "classes by episodes";

/// A classifier that is not made of class weights.
pub enum Model {
    /// Logistic regression.
    Linear(LinearClassifier),
    /// A diffusion.
    Diffusion(DiffusionClassifier),
    /// A diffusion combined with logistic regression.
    Fusion(Fusion),
    /// Classes as represented by an episodic system.
    Matching(EpisodicClassifier),
}

impl LearnedModel for Model {
    fn save(&self, description: ModelDescription, path: &Path) -> Result<()> {
        let (kind, tensors) = parts_of(self);
        let ModelDescription { classes, dim, backbone, network, settings } = description;
        let saved = SavedModel { kind: kind.to_owned(), classes, dim, backbone, network, settings, tensors };
        Ok(saved.save(path)?)
    }
}

/// The kind and the tensors of a model, as they are written.
fn parts_of(model: &Model) -> (&'static str, Vec<ModelTensor>) {
    match model {
        Model::Linear(linear) => (LINEAR, linear_tensors(linear)),
        Model::Diffusion(diffusion) => (DIFFUSION, diffusion_tensors(diffusion)),
        Model::Fusion(fusion) => {
            let mut tensors = diffusion_tensors(fusion.diffusion());
            tensors.extend(linear_tensors(fusion.logistic()));
            tensors.push(tensor("share", vec![1], vec![fusion.weight()]));
            (FUSION, tensors)
        }
        Model::Matching(matching) => {
            let dim = matching.model().sizes().dim;
            let mut tensors = tensors_of(matching.model());
            let vectors = matching.classes().to_vec();
            tensors.push(tensor("class_vectors", vec![vectors.len() / dim, dim], vectors));
            (MATCHING, tensors)
        }
    }
}

fn linear_tensors(linear: &LinearClassifier) -> Vec<ModelTensor> {
    let weights = linear.weights().to_vec();
    let biases = linear.biases().to_vec();
    let k = biases.len();
    vec![tensor("weight", vec![k, weights.len() / k.max(1)], weights), tensor("bias", vec![k], biases)]
}

/// The labels are stored as the count per row, then the classes and masses of all rows. Counts and classes are small integers,
/// which `f32` represents exactly.
fn diffusion_tensors(diffusion: &DiffusionClassifier) -> Vec<ModelTensor> {
    let rows = diffusion.rows();
    let labels = diffusion.labels();
    let counts: Vec<f32> = labels.offsets.windows(2).map(|pair| (pair[1] - pair[0]) as f32).collect();
    let classes: Vec<f32> = labels.classes.iter().map(|&class| class as f32).collect();
    vec![
        tensor("rows", vec![rows.len(), rows.dim()], rows.block(0..rows.len()).to_vec()),
        tensor("label_counts", vec![counts.len()], counts),
        tensor("label_classes", vec![classes.len()], classes),
        tensor("label_masses", vec![labels.masses.len()], labels.masses),
        tensor("neighbours", vec![1], vec![diffusion.neighbours() as f32]),
        tensor("n_classes", vec![1], vec![labels.n_classes as f32]),
    ]
}

fn diffusion_of(path: &Path, saved: &SavedModel) -> Result<DiffusionClassifier> {
    let whole = |name: &str| -> Result<Vec<usize>> {
        let values = &saved.tensor(path, name)?.values;
        if let Some(at) =
            values.iter().position(|value| *value < 0.0 || value.fract() != 0.0 || *value > 1.6e7)
        {
            let place = format!("tensor `{name}`, number {at}");
            return Err(DataError::malformed(path, place, "an integer", values[at].to_string()).into());
        }
        Ok(values.iter().map(|&value| value as usize).collect())
    };
    let mut offsets = vec![0];
    for count in whole("label_counts")? {
        offsets.push(offsets[offsets.len() - 1] + count);
    }
    let labels = SparseLabels {
        n_classes: whole("n_classes")?.first().copied().unwrap_or(0),
        offsets,
        classes: whole("label_classes")?.into_iter().map(|class| class as u32).collect(),
        masses: saved.tensor(path, "label_masses")?.values.clone(),
    };
    let rows = Features::new(saved.tensor(path, "rows")?.values.clone(), saved.dim)?;
    Ok(DiffusionClassifier::new(rows, labels, whole("neighbours")?.first().copied().unwrap_or(0))?)
}

fn tensor(name: &str, shape: Vec<usize>, values: Vec<f32>) -> ModelTensor {
    ModelTensor { name: name.to_owned(), shape, values }
}
