//! The results of the cells of a table.

use std::collections::HashMap;

use labelsieve::classifier::WeightMatrix;
use labelsieve::evaluation::{Accuracy, TestSets};
use labelsieve_files::work::Result;
use serde::{Deserialize, Serialize};

use super::Source;

/// The accuracy of one cell: one setting in one episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    pub novel_top_1: f64,
    pub novel_top_5: f64,
    pub all_top_1: Option<f64>,
    pub all_top_5: Option<f64>,
    /// Top-1 of each novel class.
    class_top_1: Vec<f64>,
}

impl CellResult {
    /// Measures the weights of the novel classes on the test sets.
    pub fn new(tests: &TestSets, weights: &WeightMatrix) -> Result<CellResult> {
        let accuracy = tests.measure(weights)?;
        Ok(CellResult::from_accuracy(&accuracy.novel, accuracy.all.as_ref()))
    }

    /// A result from measured accuracies; `all` is over base and novel classes together.
    pub fn from_accuracy(novel: &Accuracy, all: Option<&Accuracy>) -> CellResult {
        CellResult {
            novel_top_1: novel.top_1,
            novel_top_5: novel.top_5,
            all_top_1: all.map(|all| all.top_1),
            all_top_5: all.map(|all| all.top_5),
            class_top_1: novel.classes.iter().map(|c| c.top_1 as f64 / c.n.max(1) as f64).collect(),
        }
    }
}

/// Top-1 of each class, averaged over episodes.
pub fn class_top_1(cells: &[CellResult]) -> Vec<f64> {
    let n_classes = cells.first().map_or(0, |cell| cell.class_top_1.len());
    let mean = |c: usize| cells.iter().map(|cell| cell.class_top_1[c]).sum::<f64>() / cells.len() as f64;
    (0..n_classes).map(mean).collect()
}

/// Accuracy of every setting and episode.
#[derive(Default)]
pub struct Cells(pub(super) HashMap<String, Vec<CellResult>>);

impl Cells {
    /// The episodes of a setting.
    pub fn of(&self, shot: usize, source: &Source) -> &[CellResult] {
        self.0.get(&setting_key(shot, source)).map_or(&[], Vec::as_slice)
    }
}

pub(super) fn setting_key(shot: usize, source: &Source) -> String {
    format!("{shot} {}", source.key())
}
