//! The novel classes of a photo benchmark, as sets with ground truth.

use std::path::Path;
use std::sync::Arc;

use labelsieve_files::work::{Context, Error, Monitor, Result, option, words};
use labelsieve_numerics::Device;

use super::{KnownClass, KnownSet};
use crate::photos::candidates::{CandidateSet, Pool};
use crate::photos::config::{Backbone, CleanRule, Config};
use crate::photos::draws::labelled;
use crate::photos::embedding;
use crate::photos::features::FeatureTable;
use crate::photos::photo_set::{ClassPhotos, PhotoSet};

/// The files of a photo set.
pub struct Source<'a> {
    pub config: &'a Path,
    /// Folder of the photo files.
    pub data: &'a Path,
    /// The name of a backbone of the configuration; by default the first.
    pub backbone: Option<&'a str>,
    /// Features of all photos; by default the backbone makes them in `folder`.
    pub features: Option<&'a Path>,
    pub folder: &'a Path,
    pub device: Device,
}

/// Reads one set per matching rule, in the order of the configuration: the last is the broadest, with the most noise.
pub fn read(source: &Source, monitor: &dyn Monitor) -> Result<Vec<KnownSet>> {
    let config = Config::read(source.config)?;
    let mut photos = PhotoSet::read(&config.photos, source.data)?;
    let mut rules = CandidateSet::all(&config.candidates, &photos, source.data, monitor)?;
    let backbone = backbone(&config, source)?;
    let table = match (&backbone.features, &backbone.network) {
        (Some(features), _) => features.clone(),
        (None, network) => {
            let network = network.as_deref().context("the backbone has neither features nor a network")?;
            let images = embedding::images_of(&photos, &config.photos);
            embedding::features(network, &backbone.name, images, source.device, source.folder, monitor)?
        }
    };
    let mut made_from = vec![source.config.to_path_buf(), table.clone()];
    made_from.extend(config.candidates.pool.as_ref().map(|pool| source.data.join(pool)));
    made_from.extend(photos.files.iter().cloned());
    let table = FeatureTable::open(&table, &photos)?;
    let has: Vec<bool> = (0..photos.ids.len()).map(|photo| table.has(photo)).collect();
    photos.leave_out(&has)?;
    rules.iter_mut().for_each(|rule| rule.leave_out(&has));
    let found = table.read(&backbone, &photos)?;
    let features = Arc::new(found.features);
    let base = Arc::new(found.base.weights().clone());
    let title = source.config.file_stem().map_or(config.title, |stem| stem.to_string_lossy().into_owned());
    let only = rules.len() == 1;
    let set = |rule: CandidateSet| KnownSet {
        name: if only { title.clone() } else { format!("{title}-{}", rule.name) },
        features: Arc::clone(&features),
        base: Arc::clone(&base),
        classes: photos
            .novel
            .iter()
            .zip(rule.pools)
            .map(|(class, pool)| known(class, pool, config.clean))
            .collect(),
        made_from: made_from.clone(),
    };
    Ok(rules.into_iter().map(set).collect())
}

/// The requested backbone, with the precomputed features if given; these do not need a backbone, but its classifier is W_B.
fn backbone(config: &Config, source: &Source) -> Result<Backbone> {
    let features = source.features.map(Path::to_path_buf);
    let chosen = match source.backbone {
        None => config.backbones.first(),
        Some(name) => Some(config.backbone(name, source.config)?),
    };
    match (chosen.cloned(), features) {
        (Some(chosen), None) => Ok(chosen),
        (Some(chosen), features) => Ok(Backbone { features, ..chosen }),
        (None, features @ Some(_)) => Ok(Backbone {
            name: "features".to_owned(),
            network: None,
            features,
            made_by: None,
            base_classifier: None,
            note: String::new(),
        }),
        (None, None) => Err(Error::input(
            format!("`{}` names no backbones", source.config.display()),
            words!["add a `[[backbone]]` to it, or give ", option("features")],
        )),
    }
}

fn known(class: &ClassPhotos, pool: Pool, rule: CleanRule) -> KnownClass {
    KnownClass {
        name: class.display.clone(),
        labelled: labelled(class, rule).to_vec(),
        candidates: pool.photos,
        relevant: pool.relevant,
        test: class.test.clone(),
    }
}
