//! Sets of classes with candidates and ground truth, for `labelsieve-bench review` and `labelsieve-bench relevance`: photo sets of a
//! configuration (`photos`), the bundled icons (`icons`) and generated ones (`generated`).

pub mod generated;
pub mod icons;
pub mod photos;

use std::path::PathBuf;
use std::sync::Arc;

use labelsieve::Features;
use labelsieve::evaluation::draw_clean;
use labelsieve_files::work::{Error, Result, option, words};
use labelsieve_numerics::random::Stream;

/// A set of classes and the features of all their examples.
pub struct KnownSet {
    /// The name in results.
    pub name: String,
    /// One row per example: labelled, candidate or test.
    pub features: Arc<Features>,
    /// W_B: one row per class that the network was trained on; empty if unknown.
    pub base: Arc<Features>,
    /// In alphabetical or another order unrelated to their content.
    pub classes: Vec<KnownClass>,
    /// The files it was read from, which are part of the resume key.
    pub made_from: Vec<PathBuf>,
}

/// One class; examples are rows of the features.
#[derive(Clone)]
pub struct KnownClass {
    pub name: String,
    /// Examples that clean ones are drawn from.
    pub labelled: Vec<usize>,
    /// The candidates, and whether each belongs to the class.
    pub candidates: Vec<usize>,
    pub relevant: Vec<bool>,
    pub test: Vec<usize>,
}

impl KnownSet {
    /// `max_shots` clean examples of every class; the first k are those at k shots.
    pub fn draw(&self, max_shots: usize, stream: Stream) -> Result<Vec<Vec<usize>>> {
        let sizes: Vec<usize> = self.classes.iter().map(|class| class.labelled.len()).collect();
        if let Some(short) = sizes.iter().position(|&size| size < max_shots) {
            return Err(Error::input(
                format!(
                    "class `{}` has {} examples to draw clean ones from, too few for {max_shots}",
                    self.classes[short].name, sizes[short]
                ),
                words!["lower ", option("shots")],
            ));
        }
        let drawn = draw_clean(&sizes, max_shots, stream).into_iter().zip(&self.classes);
        Ok(drawn.map(|(places, class)| places.iter().map(|&place| class.labelled[place]).collect()).collect())
    }

    /// The test examples of all classes, and the class of each.
    pub fn test(&self) -> (Features, Vec<usize>) {
        let rows: Vec<usize> = self.classes.iter().flat_map(|class| class.test.iter().copied()).collect();
        let of_class = |(c, class): (usize, &KnownClass)| std::iter::repeat_n(c, class.test.len());
        (self.features.select(&rows), self.classes.iter().enumerate().flat_map(of_class).collect())
    }
}

impl KnownClass {
    /// The candidates without these clean examples, and whether each is relevant.
    pub fn without(&self, clean: &[usize]) -> (Vec<usize>, Vec<bool>) {
        self.candidates.iter().zip(&self.relevant).filter(|(row, _)| !clean.contains(row)).unzip()
    }
}
