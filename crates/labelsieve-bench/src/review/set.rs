//! What a simulated review is run on: classes with candidates whose truth is known.

use labelsieve::Features;
use labelsieve::evaluation::draw_clean;
use labelsieve::random::Stream;
use labelsieve_pipeline::{Error, Result};

/// A set of classes and the features of all their examples.
pub struct ReviewSet {
    /// What people call it.
    pub name: String,
    /// One row per example, of whatever kind.
    pub features: Features,
    pub classes: Vec<ReviewClass>,
}

/// One class; examples are rows of the features.
pub struct ReviewClass {
    pub name: String,
    /// Examples that clean ones are drawn from.
    pub labelled: Vec<usize>,
    /// The candidates, and whether they belong to the class.
    pub candidates: Vec<usize>,
    pub relevant: Vec<bool>,
    pub test: Vec<usize>,
}

/// A class as one draw sees it.
pub struct DrawnClass {
    /// Clean examples, in the order in which they join.
    pub clean: Features,
    /// The candidates but for those drawn as clean examples.
    pub noisy: Features,
    pub relevant: Vec<bool>,
}

impl ReviewSet {
    /// The classes of one draw, with `most` clean examples each. Those leave the pools however many of them are used, so that
    /// figures for different numbers of clean examples are about the same candidates.
    pub fn draw(&self, most: usize, stream: Stream) -> Result<Vec<DrawnClass>> {
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
        let drawn = draw_clean(&sizes, most, stream);
        Ok(self.classes.iter().zip(drawn).map(|(class, places)| self.drawn(class, &places)).collect())
    }

    fn drawn(&self, class: &ReviewClass, places: &[usize]) -> DrawnClass {
        let clean: Vec<usize> = places.iter().map(|&place| class.labelled[place]).collect();
        let kept = class.candidates.iter().zip(&class.relevant).filter(|(row, _)| !clean.contains(row));
        let (rows, relevant): (Vec<usize>, Vec<bool>) = kept.unzip();
        DrawnClass { clean: self.features.select(&clean), noisy: self.features.select(&rows), relevant }
    }

    /// The test examples of all classes, and the class of each.
    pub fn test(&self) -> (Features, Vec<usize>) {
        let rows: Vec<usize> = self.classes.iter().flat_map(|class| class.test.iter().copied()).collect();
        let of_class = |(c, class): (usize, &ReviewClass)| std::iter::repeat_n(c, class.test.len());
        (self.features.select(&rows), self.classes.iter().enumerate().flat_map(of_class).collect())
    }
}
