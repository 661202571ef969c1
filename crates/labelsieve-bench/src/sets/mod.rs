//! Sets of classes with candidates whose truth is known, for `labelsieve-bench review` and `labelsieve-bench relevance`.

pub mod generated;
pub mod icons;
pub mod photos;

use std::path::PathBuf;
use std::sync::Arc;

use labelsieve::Features;
use labelsieve::evaluation::draw_clean;
use labelsieve_files::work::{Error, Result};
use labelsieve_numerics::random::Stream;

/// A set of classes and the features of all their examples.
pub struct KnownSet {
    /// What people call it.
    pub name: String,
    /// One row per example, of whatever kind.
    pub features: Arc<Features>,
    /// W_B: one row per class that the network was trained on; none where it is not known.
    pub base: Arc<Features>,
    /// In alphabetical order, or in one that says nothing about them.
    pub classes: Vec<KnownClass>,
    /// The files that it was read from, which decide whether an earlier run was about the same set.
    pub made_from: Vec<PathBuf>,
}

/// One class; examples are rows of the features.
#[derive(Clone)]
pub struct KnownClass {
    pub name: String,
    /// Examples that clean ones are drawn from.
    pub labelled: Vec<usize>,
    /// The candidates, and whether they belong to the class.
    pub candidates: Vec<usize>,
    pub relevant: Vec<bool>,
    pub test: Vec<usize>,
}

impl KnownSet {
    /// `most` clean examples of every class, in the order in which they join.
    pub fn draw(&self, most: usize, stream: Stream) -> Result<Vec<Vec<usize>>> {
        let sizes: Vec<usize> = self.classes.iter().map(|class| class.labelled.len()).collect();
        if let Some(short) = sizes.iter().position(|&size| size < most) {
            return Err(Error::input(
                format!(
                    "class `{}` has {} examples to draw clean ones from, too few for {most}",
                    self.classes[short].name, sizes[short]
                ),
                "lower --shots",
            ));
        }
        let drawn = draw_clean(&sizes, most, stream).into_iter().zip(&self.classes);
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
    /// The candidates but for these clean examples, and whether they are relevant.
    pub fn without(&self, clean: &[usize]) -> (Vec<usize>, Vec<bool>) {
        self.candidates.iter().zip(&self.relevant).filter(|(row, _)| !clean.contains(row)).unzip()
    }
}
