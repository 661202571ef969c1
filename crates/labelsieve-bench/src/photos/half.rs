//! Half of the novel classes as a benchmark task.

use labelsieve::Features;
use labelsieve_files::work::Result;

use super::candidates::{CandidateSet, Pool};
use super::draws::Draws;
use super::features::BackboneFeatures;
use super::photo_set::PhotoSet;
use crate::protocol::Task;

/// The data that both halves share.
#[derive(Clone, Copy)]
pub struct PhotoContext<'a> {
    pub photos: &'a PhotoSet,
    pub draws: &'a Draws,
    pub candidates: &'a CandidateSet,
    pub backbone: &'a BackboneFeatures,
}

/// The classes to tune on, or the classes to report.
pub struct Half<'a> {
    pub context: PhotoContext<'a>,
    /// Positions among the novel classes.
    pub classes: Vec<usize>,
    journal_name: String,
    title: String,
    /// Whether the test on all classes is included.
    base: BaseClasses,
}

/// The classes to tune on, if any, and the classes to report.
#[derive(Clone, Copy)]
pub struct Halves<'a> {
    pub tuning: Option<&'a Half<'a>>,
    pub report: &'a Half<'a>,
}

/// Whether base classes are tested together with the novel ones.
#[derive(Clone, Copy, PartialEq)]
enum BaseClasses {
    Tested,
    LeftOut,
}

impl<'a> Half<'a> {
    pub fn new(context: PhotoContext<'a>, classes: Vec<usize>, name: &str) -> Half<'a> {
        let journal_name = format!("{} {name}", context.candidates.name);
        let title = format!("{}, {name} classes", context.candidates.name);
        Half { context, classes, journal_name, title, base: BaseClasses::Tested }
    }

    /// The half without the test on all classes, which tuning does not use.
    pub fn novel_only(self) -> Half<'a> {
        Half { base: BaseClasses::LeftOut, ..self }
    }

    /// The candidates of a class of this half.
    pub fn candidates(&self, class: usize) -> &'a Pool {
        &self.context.candidates.pools[self.classes[class]]
    }

    /// The clean photos of a class of this half.
    pub fn clean_photos(&self, class: usize, episode: usize, k: usize) -> &'a [usize] {
        self.context.draws.clean(episode, self.classes[class], k)
    }

    /// The name of a class of this half.
    pub fn name(&self, class: usize) -> &'a str {
        &self.context.photos.novel[self.classes[class]].display
    }

    fn select(&self, photos: &[usize]) -> Features {
        self.context.backbone.features.select(photos)
    }

    fn tests<'b>(
        &self,
        classes: impl Iterator<Item = &'b super::photo_set::ClassPhotos>,
    ) -> (Features, Vec<usize>) {
        let mut photos = Vec::new();
        let mut labels = Vec::new();
        for (label, class) in classes.enumerate() {
            photos.extend_from_slice(&class.test);
            labels.extend(std::iter::repeat_n(label, class.test.len()));
        }
        (self.select(&photos), labels)
    }
}

impl Task for Half<'_> {
    fn journal_name(&self) -> &str {
        &self.journal_name
    }

    fn title(&self) -> &str {
        &self.title
    }

    fn dim(&self) -> usize {
        self.context.backbone.features.dim()
    }

    fn pool_sizes(&self) -> Vec<usize> {
        (0..self.classes.len()).map(|class| self.candidates(class).photos.len()).collect()
    }

    fn pool(&self, class: usize) -> Result<Features> {
        Ok(self.select(&self.candidates(class).photos))
    }

    fn clean(&self, episode: usize, k: usize) -> Result<Vec<Features>> {
        Ok((0..self.classes.len()).map(|class| self.select(self.clean_photos(class, episode, k))).collect())
    }

    fn removed(&self, class: usize, episode: usize, k: usize) -> Vec<usize> {
        let clean = self.clean_photos(class, episode, k);
        let pool = self.candidates(class).photos.iter().enumerate();
        pool.filter(|(_, photo)| clean.contains(photo)).map(|(place, _)| place).collect()
    }

    fn truth(&self, class: usize) -> Option<&[bool]> {
        Some(&self.candidates(class).relevant)
    }

    fn background(&self) -> Result<Features> {
        let base = self.context.photos.base.iter().flat_map(|class| class.train.iter().copied());
        Ok(self.select(&base.collect::<Vec<_>>()))
    }

    fn base_sets(&self) -> Result<Vec<Features>> {
        Ok(self.context.photos.base.iter().map(|class| self.select(&class.train)).collect())
    }

    fn novel_test(&self) -> Result<(Features, Vec<usize>)> {
        Ok(self.tests(self.classes.iter().map(|&class| &self.context.photos.novel[class])))
    }

    fn base_test(&self) -> Result<Option<(Features, Vec<usize>)>> {
        let base = &self.context.photos.base;
        let tested = self.base == BaseClasses::Tested && !base.is_empty();
        Ok(tested.then(|| self.tests(base.iter())))
    }

    fn base_weights(&self) -> Result<Vec<f32>> {
        let weights = self.context.backbone.base.weights();
        Ok(weights.block(0..weights.len()).to_vec())
    }

    fn scale(&self) -> f32 {
        self.context.backbone.base.scale()
    }
}
