//! What a method reaches in one draw.

use std::time::Instant;

use labelsieve::classifier::{Cosine, WeightedClass};
use labelsieve::evaluation::{Calibration, accuracy, roc_auc};
use labelsieve_files::work::Result;
use serde::{Deserialize, Serialize};

use super::score::{ClassScores, score};
use super::trial::{Ground, Trial};
use crate::protocol::Source;

/// One draw with one method.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cell {
    /// Accuracy of prototypes on the test examples, among the classes of the half.
    pub top_1: f64,
    pub top_5: f64,
    /// Mean over the classes with relevant and irrelevant candidates; none for what is no method.
    pub auc: Option<f64>,
    /// Of the candidates of all classes; none for what is no method.
    pub calibration: Option<Calibration>,
    /// Seconds that scoring all classes took, with the graphs where the method reads them.
    pub seconds: f64,
}

impl Cell {
    pub fn measure(ground: &Ground, trial: &Trial, source: &Source) -> Result<Cell> {
        let start = Instant::now();
        let scores = score(ground, trial, source)?;
        let seconds = start.elapsed().as_secs_f64() + graph_seconds(ground, source)?;
        let weighted = (0..scores.len())
            .map(|c| WeightedClass::new(&trial.clean[c], trial.pools[c].features(), &scores[c].relevance))
            .collect::<labelsieve::Result<Vec<_>>>()?;
        let (features, labels) = &ground.test;
        let matrix = ground.engine.prototypes(&weighted, features.dim(), Cosine::default().scale)?;
        let reached = accuracy(&matrix, features, labels)?;
        let is_method = matches!(source, Source::Scored(_));
        Ok(Cell {
            top_1: reached.top_1,
            top_5: reached.top_5,
            auc: is_method.then(|| mean_auc(trial, &scores)).flatten(),
            calibration: is_method.then(|| calibration(trial, &scores)),
            seconds,
        })
    }
}

/// Graphs are made once for all methods, and belong to the time of each that reads them.
fn graph_seconds(ground: &Ground, source: &Source) -> Result<f64> {
    Ok(match source {
        Source::Scored(method) if method.build()?.uses_graph() => ground.graph_seconds,
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
