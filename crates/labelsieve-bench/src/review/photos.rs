//! The novel classes of a photo benchmark, as a set to review.

use std::path::Path;

use labelsieve_cuda::Device;
use labelsieve_pipeline::{Context, Monitor, Result};

use super::set::{ReviewClass, ReviewSet};
use crate::photos::candidates::CandidateSet;
use crate::photos::config::{Backbone, Config};
use crate::photos::draws::labelled;
use crate::photos::embedding;
use crate::photos::features::FeatureTable;
use crate::photos::photo_set::PhotoSet;

/// Where the photos of a configuration and their features are.
pub struct Source<'a> {
    pub config: &'a Path,
    /// Folder of the photo files.
    pub data: &'a Path,
    /// Features of all photos; without, the first backbone of the configuration makes them in `folder`.
    pub features: Option<&'a Path>,
    pub folder: &'a Path,
    pub device: Device,
}

/// Reads a set; the candidates are those of the broadest rule, which brings the most noise.
pub fn read(source: &Source, monitor: &dyn Monitor) -> Result<ReviewSet> {
    let config = Config::read(source.config)?;
    let mut photos = PhotoSet::read(&config.photos, source.data)?;
    let sets = CandidateSet::all(&config.candidates, &photos, source.data, monitor)?;
    let mut candidates = sets.into_iter().next_back().context("a configuration has candidates")?;
    let backbone = config.backbones.first().context("the configuration has no backbone")?;
    let table = match (source.features, backbone.features.as_deref(), &backbone.network) {
        (Some(features), _, _) | (None, Some(features), _) => features.to_path_buf(),
        (None, None, network) => {
            let network = network.as_deref().context("a backbone has features or a network")?;
            let images = embedding::images_of(&photos, &config.photos);
            embedding::features(network, &backbone.name, images, source.device, source.folder, monitor)?
        }
    };
    let table = FeatureTable::open(&table, &photos)?;
    let has: Vec<bool> = (0..photos.ids.len()).map(|photo| table.has(photo)).collect();
    photos.leave_out(&has)?;
    candidates.leave_out(&has);
    let features =
        table.read(&Backbone { network: None, base_classifier: None, ..backbone.clone() }, &photos)?;
    let classes = photos.novel.iter().zip(candidates.pools).map(|(class, pool)| ReviewClass {
        name: class.display.clone(),
        labelled: labelled(class, config.clean).to_vec(),
        candidates: pool.photos,
        relevant: pool.relevant,
        test: class.test.clone(),
    });
    let name = source.config.file_stem().map_or(config.title, |stem| stem.to_string_lossy().into_owned());
    Ok(ReviewSet { name, features: features.features, classes: classes.collect() })
}
