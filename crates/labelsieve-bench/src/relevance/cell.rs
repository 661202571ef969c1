//! The results of a method in one draw.

use std::time::Instant;

use labelsieve::classifier::{Cosine, WeightedClass};
use labelsieve::evaluation::{Calibration, accuracy, roc_auc};
use labelsieve_files::work::Result;
use serde::{Deserialize, Serialize};

use super::classifiers::{self, ClassifierCell, ClassifierName};
use super::score::{ClassScores, score};
use super::trial::{SetContext, Trial};
use crate::protocol::Source;

/// One method in one draw.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cell {
    /// Accuracy of prototypes on the test examples, among the classes of the half.
    pub top_1: f64,
    pub top_5: f64,
    /// Area under the ROC curve, mean over the classes with relevant and irrelevant candidates; `None` for references.
    pub auc: Option<f64>,
    /// Calibration over the candidates of all classes; `None` for references.
    pub calibration: Option<Calibration>,
    /// Seconds for scoring all classes, including the graphs if the method uses them.
    pub seconds: f64,
    /// Other classifiers than prototypes on the same scores.
    #[serde(default)]
    pub classifiers: Vec<ClassifierCell>,
}

impl Cell {
    pub fn measure(
        context: &SetContext,
        trial: &Trial,
        source: &Source,
        classifiers: &[ClassifierName],
    ) -> Result<Cell> {
        let start = Instant::now();
        let scores = score(context, trial, source)?;
        let seconds = start.elapsed().as_secs_f64() + graph_seconds(context, source)?;
        let weighted = (0..scores.len())
            .map(|c| WeightedClass::new(&trial.clean[c], trial.pools[c].features(), &scores[c].relevance))
            .collect::<labelsieve::Result<Vec<_>>>()?;
        let (features, labels) = &context.test;
        let matrix = context.engine.prototypes(&weighted, features.dim(), Cosine::default().scale)?;
        let accuracy = accuracy(&matrix, features, labels)?;
        let is_method = matches!(source, Source::Scored(_));
        Ok(Cell {
            top_1: accuracy.top_1,
            top_5: accuracy.top_5,
            auc: is_method.then(|| mean_auc(trial, &scores)).flatten(),
            calibration: is_method.then(|| calibration(trial, &scores)),
            seconds,
            classifiers: classifiers::measure(context, trial, &scores, classifiers)?,
        })
    }
}

/// The time of the graphs, which are built once for all methods and count for each that uses them.
fn graph_seconds(context: &SetContext, source: &Source) -> Result<f64> {
    Ok(match source {
        Source::Scored(method) if method.build()?.uses_graph() => context.graph_seconds,
        _ => 0.0,
    })
}

fn mean_auc(trial: &Trial, scores: &[ClassScores]) -> Option<f64> {
    let areas = scores.iter().zip(&trial.relevant);
    let areas: Vec<f64> = areas.filter_map(|(scores, truth)| roc_auc(&scores.relevance, truth)).collect();
    (!areas.is_empty()).then(|| areas.iter().sum::<f64>() / areas.len() as f64)
}

fn calibration(trial: &Trial, scores: &[ClassScores]) -> Calibration {
    let mut calibration = Calibration::default();
    scores
        .iter()
        .zip(&trial.relevant)
        .for_each(|(scores, truth)| calibration.add(scores.probability(), truth));
    calibration
}
