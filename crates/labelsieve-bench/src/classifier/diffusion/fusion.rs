//! The combination of a diffusion with logistic regression.

use labelsieve::{Classifier, Error, Features, Result, Scores, check};

use super::DiffusionClassifier;
use crate::classifier::LinearClassifier;

/// Weights of the logistic regression to choose from on validation classes.
pub const FUSION_WEIGHTS: [f32; 9] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];

/// Late fusion: (1 - w) · diffusion + w · logistic regression, both as distributions over classes. The logistic regression
/// is learned from the clean examples alone.
///
/// Decision: the paper of the diffusion averages the scores of both with a weight from validation, but does not
/// define the scores; ours are probabilities.
#[derive(Clone, Debug, PartialEq)]
pub struct Fusion {
    diffusion: DiffusionClassifier,
    logistic: LinearClassifier,
    weight: f32,
}

impl Fusion {
    /// Combines two classifiers of the same classes; `weight` is that of the logistic regression.
    pub fn new(diffusion: DiffusionClassifier, logistic: LinearClassifier, weight: f32) -> Result<Fusion> {
        check((0.0..=1.0).contains(&weight), "weight of the fusion", "a number in [0, 1]", weight)?;
        let expected = diffusion.n_classes();
        let found = logistic.n_classes();
        if expected != found {
            return Err(Error::Length { what: "classes of a fusion", expected, found });
        }
        Ok(Fusion { diffusion, logistic, weight })
    }

    /// The diffusion.
    pub fn diffusion(&self) -> &DiffusionClassifier {
        &self.diffusion
    }

    /// The logistic regression.
    pub fn logistic(&self) -> &LinearClassifier {
        &self.logistic
    }

    /// The weight of the logistic regression.
    pub fn weight(&self) -> f32 {
        self.weight
    }
}

impl Classifier for Fusion {
    fn n_classes(&self) -> usize {
        self.logistic.n_classes()
    }

    fn scores(&self, features: &Features) -> Scores {
        fuse(&self.diffusion.scores(features), &self.logistic.probabilities(features), self.weight)
    }
}

/// (1 - weight) · first + weight · second.
pub fn fuse(first: &Scores, second: &Scores, weight: f32) -> Scores {
    let values = first.values.iter().zip(&second.values);
    let values = values.map(|(first, second)| (1.0 - weight) * first + weight * second).collect();
    Scores { values, n_classes: first.n_classes }
}
