//! The features of all photos by one backbone, and its classifier of the base classes.

use std::path::{Path, PathBuf};

use labelsieve::Features;
use labelsieve::classifier::{Cosine, WeightMatrix, WeightedClass, prototypes};
use labelsieve_files::inputs::tables::rows_by_id;
use labelsieve_files::work::{Context, Error, Result};
use labelsieve_files::{ExampleTable, Ids, NetworkFile, SavedClassifier, TableColumns};
use labelsieve_networks::opening::network::read_network_file;

use super::config::Backbone;
use super::photo_set::PhotoSet;

/// The features of the photos by one backbone.
pub struct BackboneFeatures {
    /// One row per photo; zeros for photos without features, which take no part.
    pub features: Features,
    /// W_B.
    pub base: WeightMatrix,
    /// Whether W_B was learned with the backbone; otherwise it holds prototypes.
    pub base_is_learned: bool,
}

/// A table of features and the row of each photo.
pub struct FeatureTable {
    table: ExampleTable,
    rows: Vec<Option<usize>>,
}

impl FeatureTable {
    /// Opens features and finds every photo by its id; rows without ids are in the order of the photos.
    pub fn open(path: &Path, photos: &PhotoSet) -> Result<FeatureTable> {
        let table = ExampleTable::open(path, &TableColumns::default())?;
        let rows: Vec<Option<usize>> = match &table.ids {
            Ids::RowNumbers(n) if *n == photos.ids.len() => (0..*n).map(Some).collect(),
            Ids::RowNumbers(n) => {
                return Err(Error::input(
                    format!("`{}` has {n} rows without ids for {} photos", path.display(), photos.ids.len()),
                    "pass features with ids, e.g. from `labelsieve embed`",
                ));
            }
            Ids::Given(_) | Ids::WithTexts { .. } => {
                let by_id = rows_by_id(&table)?;
                photos.ids.iter().map(|id| by_id.get(id)).collect()
            }
        };
        if rows.iter().all(Option::is_none) {
            return Err(Error::input(
                format!("`{}` has no features of the photos, e.g. `{}`", path.display(), photos.ids[0]),
                "the ids of both must be the same",
            ));
        }
        Ok(FeatureTable { table, rows })
    }

    /// Whether a photo has features.
    pub fn has(&self, photo: usize) -> bool {
        self.rows[photo].is_some()
    }

    /// Reads the features of all photos.
    pub fn read(&self, backbone: &Backbone, photos: &PhotoSet) -> Result<BackboneFeatures> {
        let dim = self.table.features.cols().max(1);
        let present: Vec<usize> = self.rows.iter().filter_map(|row| *row).collect();
        let mut read = vec![0f32; present.len() * dim];
        self.table.features.read_rows(&present, &mut read)?;
        let mut data = vec![0f32; photos.ids.len() * dim];
        let places = self.rows.iter().enumerate().filter(|(_, row)| row.is_some()).map(|(photo, _)| photo);
        for (photo, row) in places.zip(read.chunks_exact(dim)) {
            data[photo * dim..(photo + 1) * dim].copy_from_slice(row);
        }
        let features = Features::new(data, dim)
            .with_context(|| format!("cannot use `{}`", self.table.path.display()))?;
        let classifier = BaseClassifier::of(backbone, dim)?;
        let base_is_learned = classifier.is_some();
        let base = match classifier {
            Some(classifier) => classifier.weights(photos, dim)?,
            None => base_prototypes(photos, &features)?,
        };
        Ok(BackboneFeatures { features, base, base_is_learned })
    }
}

/// A classifier of the base classes from a file.
pub struct BaseClassifier {
    path: PathBuf,
    classes: Vec<String>,
    pub dim: usize,
    /// One row per class, of any length.
    pub weight: Vec<f32>,
    scale: f32,
}

impl BaseClassifier {
    /// The classifier named by the configuration, or the one in the network's file if it fits features of this width.
    fn of(backbone: &Backbone, dim: usize) -> Result<Option<BaseClassifier>> {
        if let Some(path) = &backbone.base_classifier {
            let SavedClassifier { classes, dim, weight, scale, .. } = SavedClassifier::load(path)?;
            return Ok(Some(BaseClassifier { path: path.clone(), classes, dim, weight, scale }));
        }
        backbone.network.as_deref().map_or(Ok(None), |network| classifier_of(network, dim))
    }

    /// W_B in the order of the photos' base classes.
    fn weights(&self, photos: &PhotoSet, dim: usize) -> Result<WeightMatrix> {
        if self.dim != dim {
            return Err(Error::input(
                format!("`{}` has {} columns, but the features have {dim}", self.path.display(), self.dim),
                "classifier and features must come from the same backbone",
            ));
        }
        let mut weights = Vec::with_capacity(photos.base.len() * dim);
        for class in &photos.base {
            let row = self.classes.iter().position(|name| *name == class.class).ok_or_else(|| {
                Error::input(
                    format!("`{}` has no base class `{}`", self.path.display(), class.class),
                    "the classifier must cover the base classes of the photos",
                )
            })?;
            weights.extend_from_slice(&self.weight[row * dim..(row + 1) * dim]);
        }
        Ok(WeightMatrix::new(Features::new(weights, dim)?, self.scale)?)
    }
}

/// The classifier in a network's file, if there is one for features of this width.
pub fn classifier_of(network: &Path, dim: usize) -> Result<Option<BaseClassifier>> {
    let NetworkFile { tensors, metadata } = read_network_file(network)?;
    let tensor = |wanted: &str| tensors.iter().find(|(name, _, _)| name == wanted);
    let (Some((_, shape, weight)), Some((_, _, scale)), Some(metadata)) =
        (tensor("classifier.weight"), tensor("classifier.scale"), &metadata)
    else {
        return Ok(None);
    };
    let is_centred = tensor("centre.mean").is_some();
    if *shape != [metadata.classes.len(), dim] || scale.len() != 1 || is_centred {
        return Ok(None); // e.g. features reduced by PCA
    }
    let path = network.to_path_buf();
    let classes = metadata.classes.clone();
    let weight = weight.clone();
    Ok(Some(BaseClassifier { path, classes, dim, weight, scale: scale[0] }))
}

/// Prototypes of all training photos, for backbones without a classifier of the base classes.
fn base_prototypes(photos: &PhotoSet, features: &Features) -> Result<WeightMatrix> {
    let none = Features::empty(features.dim());
    let sets: Vec<Features> = photos.base.iter().map(|class| features.select(&class.train)).collect();
    let sets = sets.iter().map(|set| WeightedClass::new(set, &none, &[]));
    let sets = sets.collect::<labelsieve::Result<Vec<_>>>()?;
    Ok(prototypes(&sets, features.dim(), Cosine::default().scale)?)
}
