//! The decoded photos, for fine-tuning.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use labelsieve_files::work::{Monitor, Result};
use labelsieve_networks::image_files::{ImageColumns, ImageSource};
use labelsieve_networks::images::{Dataset, DatasetOptions, Encoded};
use labelsieve_networks::opening::image_input::{encoded, is_bad_file, warn_of_skipped};

use super::prepare::BenchmarkInputs;

/// Every photo of a base or novel class, and every candidate.
pub struct Pictures {
    pub images: Arc<Dataset>,
    /// The position of each photo among the images; unreadable ones are missing.
    place: HashMap<usize, usize>,
}

impl Pictures {
    pub fn decode(inputs: &BenchmarkInputs, monitor: &dyn Monitor) -> Result<Pictures> {
        let photos = &inputs.photos;
        let columns = &inputs.config.photos;
        let of_classes = photos.base.iter().chain(&photos.novel).flat_map(|c| c.train.iter().chain(&c.test));
        let candidates = inputs.candidates.iter().flat_map(|set| &set.pools).flat_map(|pool| &pool.photos);
        let wanted: HashSet<usize> = of_classes.chain(candidates).copied().collect();
        let by_id: HashMap<&str, usize> =
            wanted.into_iter().map(|photo| (photos.ids[photo].as_str(), photo)).collect();
        let image_columns = ImageColumns {
            id: Some(columns.id.clone()),
            image: Some(columns.image.clone()),
            ..ImageColumns::default()
        };
        let progress = monitor.progress(by_id.len() as u64, "photos");
        progress.set_message("decoding");
        let source = ImageSource::open(&photos.files, &image_columns)?.images()?.map(encoded);
        let chosen = source.filter(|image| by_id.contains_key(image.id.as_str()) || is_bad_file(image));
        // A dataset requires a label, but the class of a photo depends on the pool it is used in.
        let labelled = chosen.map(|image| Encoded { label: Some("photo".to_owned()), ..image });
        let images = Dataset::decode(labelled.inspect(|_| progress.inc(1)), &DatasetOptions::default());
        progress.finish();
        warn_of_skipped(images.skipped(), monitor);
        let place = images.ids().iter().enumerate().map(|(row, id)| (by_id[id.as_str()], row)).collect();
        Ok(Pictures { images: Arc::new(images), place })
    }

    /// The position of a photo among the images.
    pub fn place(&self, photo: usize) -> Option<usize> {
        self.place.get(&photo).copied()
    }
}
