//! Half of the novel classes as a benchmark task.

use labelsieve::Features;
use labelsieve_files::work::Result;

use super::candidates::{CandidateSet, Pool};
use super::draws::Draws;
use super::features::BackboneFeatures;
use super::photo_set::PhotoSet;
use crate::protocol::Task;

/// Everything that both halves share.
#[derive(Clone, Copy)]
pub struct Ground<'a> {
    pub photos: &'a PhotoSet,
    pub draws: &'a Draws,
    pub candidates: &'a CandidateSet,
    pub backbone: &'a BackboneFeatures,
}

/// The classes to tune on, or those to report.
pub struct Half<'a> {
    pub ground: Ground<'a>,
    /// Positions among the novel classes.
    pub classes: Vec<usize>,
    journal_name: String,
    title: String,
    /// Whether base classes compete too.
    base: BaseClasses,
}

/// Whether base classes are tested together with the novel ones.
#[derive(Clone, Copy, PartialEq)]
enum BaseClasses {
    Tested,
    LeftOut,
}

impl<'a> Half<'a> {
    pub fn new(ground: Ground<'a>, classes: Vec<usize>, name: &str) -> Half<'a> {
        let journal_name = format!("{} {name}", ground.candidates.name);
        let title = format!("{}, {name} classes", ground.candidates.name);
        Half { ground, classes, journal_name, title, base: BaseClasses::Tested }
    }

    /// Without the test on all classes, which decides no setting.
    pub fn novel_only(self) -> Half<'a> {
        Half { base: BaseClasses::LeftOut, ..self }
    }

    /// The candidates of a class of this half.
    pub fn candidates(&self, class: usize) -> &'a Pool {
        &self.ground.candidates.pools[self.classes[class]]
    }

    /// The clean photos of a class of this half.
    pub fn clean_photos(&self, class: usize, episode: usize, k: usize) -> &'a [usize] {
        self.ground.draws.clean(episode, self.classes[class], k)
    }

    /// The name of a class of this half.
    pub fn name(&self, class: usize) -> &'a str {
        &self.ground.photos.novel[self.classes[class]].display
    }

    fn select(&self, photos: &[usize]) -> Features {
        self.ground.backbone.features.select(photos)
    }

    fn tests<'b>(
        &self,
        classes: impl Iterator<Item = &'b super::photo_set::ClassPhotos>,
    ) -> (Features, Vec<usize>) {
        let (mut photos, mut labels) = (Vec::new(), Vec::new());
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
        self.ground.backbone.features.dim()
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
        let base = self.ground.photos.base.iter().flat_map(|class| class.train.iter().copied());
        Ok(self.select(&base.collect::<Vec<_>>()))
    }

    fn base_sets(&self) -> Result<Vec<Features>> {
        Ok(self.ground.photos.base.iter().map(|class| self.select(&class.train)).collect())
    }

    fn novel_test(&self) -> Result<(Features, Vec<usize>)> {
        Ok(self.tests(self.classes.iter().map(|&class| &self.ground.photos.novel[class])))
    }

    fn base_test(&self) -> Result<Option<(Features, Vec<usize>)>> {
        let base = &self.ground.photos.base;
        let tested = self.base == BaseClasses::Tested && !base.is_empty();
        Ok(tested.then(|| self.tests(base.iter())))
    }

    fn base_weights(&self) -> Result<Vec<f32>> {
        let weights = self.ground.backbone.base.weights();
        Ok(weights.block(0..weights.len()).to_vec())
    }

    fn scale(&self) -> f32 {
        self.ground.backbone.base.scale()
    }
}
