//! A trained classifier as safetensors: `weight` (K×d) and `scale`, with everything else as JSON in the header.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Write;
use std::path::Path;

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use serde::{Deserialize, Serialize};

use crate::{AtomicFile, DataError, Result};

/// The one key of the header's metadata. A single key, because several would be written in random order.
const METADATA_KEY: &str = "labelsieve";

/// A linear classifier over unit features.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedClassifier {
    /// The class of each row of `weight`; no name occurs twice.
    pub classes: Vec<String>,
    /// The number of features, d.
    pub dim: usize,
    /// K×d, row after row; rows have length 1.
    pub weight: Vec<f32>,
    /// What cosines are multiplied by before the softmax.
    pub scale: f32,
    /// The network that made the features.
    pub backbone: Option<String>,
    /// How many of the leading classes are base classes.
    pub n_base: usize,
    /// The settings of the run that trained it.
    pub settings: serde_json::Value,
}

/// The part of a classifier that is written as JSON.
#[derive(Serialize, Deserialize)]
struct Header {
    classes: Vec<String>,
    dim: usize,
    backbone: Option<String>,
    n_base: usize,
    settings: serde_json::Value,
}

impl SavedClassifier {
    /// Writes the classifier; the file appears whole or not at all.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        self.check(path)?;
        let header = Header {
            classes: self.classes.clone(),
            dim: self.dim,
            backbone: self.backbone.clone(),
            n_base: self.n_base,
            settings: self.settings.clone(),
        };
        let json = serde_json::to_string(&header).map_err(undecodable(path))?;
        let weight: Vec<u8> = self.weight.iter().flat_map(|value| value.to_le_bytes()).collect();
        let scale = self.scale.to_le_bytes();
        let tensors = [
            ("weight", TensorView::new(Dtype::F32, vec![self.classes.len(), self.dim], &weight)),
            ("scale", TensorView::new(Dtype::F32, vec![1], &scale)),
        ];
        let mut views = Vec::with_capacity(tensors.len());
        for (name, view) in tensors {
            views.push((name, view.map_err(undecodable(path))?));
        }
        let metadata = HashMap::from([(METADATA_KEY.to_owned(), json)]);
        let bytes = safetensors::serialize(views, Some(metadata)).map_err(undecodable(path))?;
        let mut file = AtomicFile::create(path)?;
        file.write_all(&bytes).map_err(DataError::io("write", path))?;
        file.commit()
    }

    /// Reads a classifier and checks shapes, names and numbers.
    pub fn load(path: impl AsRef<Path>) -> Result<SavedClassifier> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(DataError::io("read", path))?;
        check_offsets(path, &bytes)?;
        let (_, metadata) = SafeTensors::read_metadata(&bytes).map_err(undecodable(path))?;
        let json =
            metadata.metadata().as_ref().and_then(|pairs| pairs.get(METADATA_KEY)).ok_or_else(|| {
                let expected = format!("metadata `{METADATA_KEY}` of a saved classifier");
                DataError::malformed(path, "safetensors header", expected, "none")
            })?;
        let header: Header = serde_json::from_str(json).map_err(|error| {
            let place = format!("metadata `{METADATA_KEY}`");
            DataError::malformed(path, place, "the description of a classifier", error.to_string())
        })?;
        let tensors = SafeTensors::deserialize(&bytes).map_err(undecodable(path))?;
        let weight = read_f32(path, &tensors, "weight", &[header.classes.len(), header.dim])?;
        let scale = read_f32(path, &tensors, "scale", &[1])?;
        let classifier = SavedClassifier {
            classes: header.classes,
            dim: header.dim,
            weight,
            scale: scale[0],
            backbone: header.backbone,
            n_base: header.n_base,
            settings: header.settings,
        };
        classifier.check(path)?;
        Ok(classifier)
    }

    /// What must hold on both sides of the file.
    fn check(&self, path: &Path) -> Result<()> {
        let n_classes = self.classes.len();
        let bad = |place: &str, expected: String, found: String| {
            Err(DataError::malformed(path, place, expected, found))
        };
        if n_classes.checked_mul(self.dim) != Some(self.weight.len()) || self.weight.is_empty() {
            let expected = format!("{n_classes} classes × {} features, at least one of each", self.dim);
            return bad("weight", expected, format!("{} numbers", self.weight.len()));
        }
        if self.n_base > n_classes {
            return bad(
                "n_base",
                format!("at most {n_classes}, the number of classes"),
                self.n_base.to_string(),
            );
        }
        if let Some(at) = self.weight.iter().position(|value| !value.is_finite()) {
            let place = format!("weight, row {}, column {}", at / self.dim, at % self.dim);
            return bad(&place, "a finite number".into(), self.weight[at].to_string());
        }
        if !self.scale.is_finite() {
            return bad("scale", "a finite number".into(), self.scale.to_string());
        }
        let mut seen = HashSet::new();
        match self.classes.iter().find(|class| !seen.insert(class.as_str())) {
            Some(class) => bad("classes", "distinct names".into(), format!("`{class}` twice")),
            None => Ok(()),
        }
    }
}

/// Compares the header with the length of the file before the library sums up what the header claims: the sum of
/// several enormous tensors overflows.
fn check_offsets(path: &Path, bytes: &[u8]) -> Result<()> {
    #[derive(Deserialize)]
    struct Extent {
        data_offsets: (u64, u64),
    }
    let cut = || {
        let found = format!("a file of {} bytes", bytes.len());
        DataError::malformed(path, "safetensors header", "a length and as many bytes", found)
    };
    let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(cut)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| cut())?;
    let (json, data) = rest.split_at_checked(length).ok_or_else(cut)?;
    let entries: BTreeMap<String, serde_json::Value> =
        serde_json::from_slice(json).map_err(undecodable(path))?;
    for (name, entry) in entries.into_iter().filter(|(name, _)| name != "__metadata__") {
        let extent: Extent = serde_json::from_value(entry).map_err(undecodable(path))?;
        let (start, end) = extent.data_offsets;
        if start > end || end > data.len() as u64 {
            let expected = format!("data within {} bytes", data.len());
            return Err(DataError::malformed(
                path,
                format!("tensor `{name}`"),
                expected,
                format!("{start} to {end}"),
            ));
        }
    }
    Ok(())
}

fn read_f32(path: &Path, tensors: &SafeTensors<'_>, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
    let tensor = tensors.tensor(name).map_err(undecodable(path))?;
    if tensor.dtype() != Dtype::F32 || tensor.shape() != shape {
        let found = format!("{:?} of {:?}", tensor.shape(), tensor.dtype());
        return Err(DataError::malformed(
            path,
            format!("tensor `{name}`"),
            format!("{shape:?} of F32"),
            found,
        ));
    }
    let (quads, _) = tensor.data().as_chunks::<4>();
    Ok(quads.iter().map(|&quad| f32::from_le_bytes(quad)).collect())
}

fn undecodable<E: std::fmt::Display>(path: &Path) -> impl Fn(E) -> DataError {
    move |error| DataError::undecodable(path, "safetensors", error)
}

#[cfg(test)]
#[path = "classifier_file_tests.rs"]
mod tests;
