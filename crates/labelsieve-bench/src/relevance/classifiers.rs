//! Classifiers on the scores of a method, each measured on the same draw.

use clap::ValueEnum;
use labelsieve::classifier::discriminant::ClassSums;
use labelsieve::classifier::{Confidence, Cosine, Shrinkage, WeightedClass};
use labelsieve::evaluation::{Calibration, Interval, accuracy_of};
use labelsieve::{Classifier as _, Features};
use labelsieve_files::work::Result;
use labelsieve_jobs::train::{Classifier, ClassifierKind as _, Learned, LearnedClassifier, TrainingSet};
use labelsieve_numerics::Watch;
use serde::{Deserialize, Serialize};

use super::score::ClassScores;
use super::trial::{SetContext, Trial};
use crate::classifier::{DECAYS, Logistic};

/// Classifiers to learn from weighted candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ClassifierName {
    /// The weighted mean of each class (eq. 5)
    Prototype,
    /// A cosine classifier (eq. 6)
    Cosine,
    /// Logistic regression, its penalty chosen by cross-validation
    Logistic,
    /// Gaussian classes that share one covariance
    Discriminant,
    /// The same with the shrinkage of Ledoit and Wolf
    LedoitWolf,
    /// The same with the oracle approximating shrinkage
    Oas,
    /// The same with shrinkage by left-out examples alone
    LeftOut,
    /// The one that `labelsieve train` chooses
    Auto,
}

/// One classifier in one draw.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClassifierCell {
    pub classifier: String,
    pub top_1: f64,
    /// Expected error of the probability of the predicted class; `None` for classifiers without probabilities.
    pub calibration_error: Option<f64>,
}

/// One classifier over all draws.
#[derive(Serialize)]
pub struct ClassifierRow {
    pub classifier: String,
    pub top_1: Interval,
    /// The paired difference to cosine on the same draws, where that was measured.
    pub to_cosine: Option<Interval>,
    pub calibration_error: Option<Interval>,
}

impl ClassifierName {
    pub fn name(self) -> String {
        self.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
    }

    fn kind(self) -> Option<Classifier> {
        let of = |shrinkage| Some(Classifier::Discriminant { shrinkage });
        match self {
            ClassifierName::Prototype => Some(Classifier::Prototype),
            ClassifierName::Cosine => Some(Classifier::Cosine { batch_size: None, epochs: None }),
            ClassifierName::Logistic => None,
            ClassifierName::Discriminant => of(Shrinkage::Auto),
            ClassifierName::LedoitWolf => of(Shrinkage::LedoitWolf),
            ClassifierName::Oas => of(Shrinkage::Oas),
            ClassifierName::LeftOut => of(Shrinkage::LeftOut),
            ClassifierName::Auto => Some(Classifier::Auto { shrinkage: Shrinkage::Auto }),
        }
    }
}

/// Learns and tests classifiers from these scores: relevance for those of the paper and logistic regression, probability for the
/// discriminant, as `labelsieve train` does.
pub fn measure(
    context: &SetContext,
    trial: &Trial,
    scores: &[ClassScores],
    names: &[ClassifierName],
) -> Result<Vec<ClassifierCell>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let (features, labels) = &context.test;
    let dim = features.dim();
    let weighted = |weights: fn(&ClassScores) -> &[f32]| {
        let class =
            |c: usize| WeightedClass::new(&trial.clean[c], trial.pools[c].features(), weights(&scores[c]));
        (0..scores.len()).map(class).collect::<labelsieve::Result<Vec<_>>>()
    };
    let classes = weighted(|scores| &scores.relevance)?;
    let by_probability = ClassSums::of(&weighted(ClassScores::probability)?, dim)?;
    let mut by_relevance = ClassSums::of_means(dim, classes.len());
    classes.iter().try_for_each(|class| by_relevance.add(class))?;
    let set = TrainingSet {
        engine: context.engine,
        classes: &classes,
        by_relevance: &by_relevance,
        by_probability: Some(&by_probability),
        base: None,
        dim,
        scale: Cosine::default().scale,
        seed: trial.stream(0).bits(1),
        watch: Watch::unwatched(),
    };
    let mut cells = Vec::new();
    for name in names {
        let (scores, confidence) = match name.kind() {
            None => (logistic(&classes, dim)?.scores(features), Some(Confidence::new(1.0, Vec::new()))),
            Some(kind) => {
                let LearnedClassifier { learned, confidence, .. } = kind.learn(&(), &set)?;
                let scores = match learned {
                    Learned::Weights(weights) => weights.scores(features),
                    Learned::Discriminant(model) => model.scores(features),
                    Learned::Model(_) => unreachable!("these have weights or means"),
                };
                (scores, confidence)
            }
        };
        let calibration_error = confidence.and_then(|confidence| {
            let mut calibration = Calibration::default();
            for (row, (of_row, &label)) in scores.rows().zip(labels).enumerate() {
                let best = scores.best(row);
                calibration.add(&[confidence.probabilities(of_row)[best]], &[best == label]);
            }
            Some(calibration.reliability()?.expected_error)
        });
        let top_1 = accuracy_of(&scores, labels)?.top_1;
        cells.push(ClassifierCell { classifier: name.name(), top_1, calibration_error });
    }
    Ok(cells)
}

/// Logistic regression with the penalty of least loss in three folds of all examples.
fn logistic(classes: &[WeightedClass], dim: usize) -> Result<crate::classifier::LinearClassifier> {
    const FOLDS: usize = 3;
    const ITERATIONS: usize = 200;
    let mut best = (f64::INFINITY, DECAYS[0]);
    for decay in DECAYS {
        let settings = Logistic { decay, max_iterations: ITERATIONS };
        let mut loss = 0.0;
        for fold in 0..FOLDS {
            let parts: Vec<(Features, Features, Vec<f32>)> =
                classes.iter().map(|class| without_fold(class, fold, FOLDS)).collect();
            let rest = parts.iter().map(|(clean, noisy, weights)| WeightedClass::new(clean, noisy, weights));
            let learned = settings.train(&rest.collect::<labelsieve::Result<Vec<_>>>()?, dim)?;
            for (c, class) in classes.iter().enumerate() {
                let held_out: Vec<usize> = (fold..class.noisy().len()).step_by(FOLDS).collect();
                let probabilities = learned.probabilities(&class.noisy().select(&held_out));
                for (row, &i) in probabilities.rows().zip(&held_out) {
                    let weight = f64::from(class.relevance()[i]) / class.total();
                    loss -= weight * f64::from(row[c].max(f32::MIN_POSITIVE)).ln();
                }
            }
        }
        if loss < best.0 {
            best = (loss, decay);
        }
    }
    Ok(Logistic { decay: best.1, ..Logistic::default() }.train(classes, dim)?)
}

/// The clean examples, and the candidates outside a fold.
fn without_fold(class: &WeightedClass, fold: usize, n_folds: usize) -> (Features, Features, Vec<f32>) {
    let kept: Vec<usize> = (0..class.noisy().len()).filter(|i| i % n_folds != fold).collect();
    let weights = kept.iter().map(|&i| class.relevance()[i]).collect();
    (class.clean().clone(), class.noisy().select(&kept), weights)
}

/// The classifiers over the draws of a method, in the order in which they were asked for.
pub fn rows(draws: &[&[ClassifierCell]]) -> Vec<ClassifierRow> {
    let Some(first) = draws.first() else { return Vec::new() };
    let of = |at: usize, figure: fn(&ClassifierCell) -> Option<f64>| -> Vec<f64> {
        draws.iter().filter_map(|cells| figure(&cells[at])).collect()
    };
    let cosine = first.iter().position(|cell| cell.classifier == ClassifierName::Cosine.name());
    let row = |(at, cell): (usize, &ClassifierCell)| {
        let top_1 = of(at, |cell| Some(cell.top_1));
        let differences = cosine.filter(|&cosine| cosine != at).map(|cosine| {
            let of_cosine = of(cosine, |cell| Some(cell.top_1));
            top_1.iter().zip(of_cosine).map(|(a, b)| a - b).collect::<Vec<f64>>()
        });
        let errors = of(at, |cell| cell.calibration_error);
        ClassifierRow {
            classifier: cell.classifier.clone(),
            top_1: Interval::of(&top_1),
            to_cosine: differences.map(|differences| Interval::of(&differences)),
            calibration_error: (!errors.is_empty()).then(|| Interval::of(&errors)),
        }
    };
    first.iter().enumerate().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_to_cosine_are_paired_by_draw() {
        let cell = |classifier: &str, top_1| ClassifierCell {
            classifier: classifier.to_owned(),
            top_1,
            calibration_error: Some(0.1),
        };
        let draws = [[cell("cosine", 0.5), cell("auto", 0.6)], [cell("cosine", 0.7), cell("auto", 0.8)]];
        let draws: Vec<&[ClassifierCell]> = draws.iter().map(|draw| draw.as_slice()).collect();
        let found = rows(&draws);
        assert!(found[0].to_cosine.is_none());
        let gain = found[1].to_cosine.unwrap();
        assert!((gain.mean - 0.1).abs() < 1e-9 && gain.half_width.unwrap() < 1e-6, "{gain:?}");
    }
}
