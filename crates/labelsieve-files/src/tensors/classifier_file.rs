//! A trained classifier as safetensors: `weight` (K×d) and `scale`; for a discriminant also `covariance` and, where that is over
//! the span of fewer rows than columns, `basis`; `left_out_distances` where examples were left out; all else as JSON in the header.

use std::collections::HashSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use crate::tensors::tensor_file::read_f32;
use crate::tensors::tensor_file::{
    EncodedTensor, METADATA_KEY, Tensors, check_positive, parse_description, read_tensors, write_described,
};
use crate::{DataError, Result, TensorsOf};

/// A classifier of unit features: by cosine, or a discriminant.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedClassifier {
    /// The class of each row of `weight`; names are distinct.
    pub classes: Vec<String>,
    /// The number of features, d.
    pub dim: usize,
    /// K×d, row after row: class weights of length 1, or the means of a discriminant.
    pub weight: Vec<f32>,
    /// The factor on cosines before the softmax.
    pub scale: f32,
    /// The network that made the features, as the user calls it.
    pub backbone: Option<String>,
    /// The fingerprint of the network that computed the features (name and digest).
    pub network: Option<String>,
    /// How many of the leading classes are base classes.
    pub n_base: usize,
    /// The settings of the run that trained it.
    pub settings: serde_json::Value,
    /// The covariance and shrinkage of a discriminant.
    pub discriminant: Option<SavedDiscriminant>,
    /// The temperature and the distances behind its probabilities and typicality.
    pub confidence: Option<SavedConfidence>,
}

/// The covariance within the classes of a discriminant.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedDiscriminant {
    /// r×r, over the rows of the basis.
    pub covariance: Vec<f32>,
    /// r×d, orthonormal rows; `None` where r = d and the covariance is over the columns themselves.
    pub basis: Option<Vec<f32>>,
    /// γ, above 0 and at most 1.
    pub shrinkage: f64,
    /// The number of classes that the covariance was measured on.
    pub n_pooled: usize,
}

/// How clean examples fared that were left out in turn.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedConfidence {
    /// The factor on scores before the softmax.
    pub temperature: f32,
    /// The distances of the left-out examples from their best class, in ascending order.
    pub distances: Vec<f32>,
}

/// The part of a classifier that is written as JSON.
#[derive(Serialize, Deserialize)]
struct Header {
    classes: Vec<String>,
    dim: usize,
    backbone: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    network: Option<String>,
    n_base: usize,
    settings: serde_json::Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    discriminant: Option<DiscriminantHeader>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    confidence: Option<ConfidenceHeader>,
}

#[derive(Serialize, Deserialize)]
struct DiscriminantHeader {
    shrinkage: f64,
    n_pooled: usize,
    /// Rows of the basis, where there is one.
    rank: Option<usize>,
}

#[derive(Serialize, Deserialize)]
struct ConfidenceHeader {
    temperature: f32,
    n_left_out: usize,
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
            network: self.network.clone(),
            n_base: self.n_base,
            settings: self.settings.clone(),
            discriminant: self.discriminant.as_ref().map(|saved| DiscriminantHeader {
                shrinkage: saved.shrinkage,
                n_pooled: saved.n_pooled,
                rank: saved.basis.as_ref().map(|_| saved.rank(self.dim)),
            }),
            confidence: self.confidence.as_ref().map(|saved| ConfidenceHeader {
                temperature: saved.temperature,
                n_left_out: saved.distances.len(),
            }),
        };
        let shape = [self.classes.len(), self.dim];
        let rank = self.discriminant.as_ref().map_or(0, |saved| saved.rank(self.dim));
        let square = [rank, rank];
        let of_basis = [rank, self.dim];
        let n_left_out = [self.confidence.as_ref().map_or(0, |saved| saved.distances.len())];
        let mut tensors = vec![
            EncodedTensor::f32("weight", &shape, &self.weight),
            EncodedTensor::f32("scale", &[1], &[self.scale]),
        ];
        if let Some(saved) = &self.discriminant {
            tensors.push(EncodedTensor::f32("covariance", &square, &saved.covariance));
            let basis = saved.basis.as_ref();
            tensors.extend(basis.map(|basis| EncodedTensor::f32("basis", &of_basis, basis)));
        }
        if let Some(saved) = &self.confidence {
            tensors.push(EncodedTensor::f32("left_out_distances", &n_left_out, &saved.distances));
        }
        write_described(path, &tensors, &header)
    }

    /// Reads a classifier and checks shapes, names and numbers.
    pub fn load(path: impl AsRef<Path>) -> Result<SavedClassifier> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(DataError::io("read", path))?;
        let Tensors { tensors, json, .. } = read_tensors(path, &bytes)?;
        let json = json.ok_or_else(|| {
            if tensors.names().iter().any(|name| name.ends_with("conv1.weight")) {
                DataError::OtherTensors {
                    path: path.to_path_buf(),
                    wanted: TensorsOf::Classifier,
                    found: TensorsOf::Network,
                }
            } else {
                let expected = format!("metadata `{METADATA_KEY}` of a saved classifier");
                DataError::malformed(path, "safetensors header", expected, "none")
            }
        })?;
        let header: Header = parse_description(path, &json, TensorsOf::Classifier)?;
        let weight = read_f32(path, &tensors, "weight", &[header.classes.len(), header.dim])?;
        let scale = read_f32(path, &tensors, "scale", &[1])?;
        let discriminant = match header.discriminant {
            None => None,
            Some(found) => {
                let rank = found.rank.unwrap_or(header.dim);
                let basis = || read_f32(path, &tensors, "basis", &[rank, header.dim]);
                Some(SavedDiscriminant {
                    covariance: read_f32(path, &tensors, "covariance", &[rank, rank])?,
                    basis: found.rank.map(|_| basis()).transpose()?,
                    shrinkage: found.shrinkage,
                    n_pooled: found.n_pooled,
                })
            }
        };
        let confidence = match header.confidence {
            None => None,
            Some(found) => Some(SavedConfidence {
                temperature: found.temperature,
                distances: read_f32(path, &tensors, "left_out_distances", &[found.n_left_out])?,
            }),
        };
        let classifier = SavedClassifier {
            classes: header.classes,
            dim: header.dim,
            weight,
            scale: scale[0],
            backbone: header.backbone,
            network: header.network,
            n_base: header.n_base,
            settings: header.settings,
            discriminant,
            confidence,
        };
        classifier.check(path)?;
        check_positive(path, "scale", classifier.scale)?;
        Ok(classifier)
    }

    /// Checks the invariants, before writing and after reading.
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
        if let Some(saved) = &self.discriminant {
            saved.check(path, self.dim)?;
        }
        if let Some(saved) = &self.confidence {
            if !(saved.temperature > 0.0 && saved.temperature.is_finite()) {
                return bad("temperature", "a positive number".into(), saved.temperature.to_string());
            }
            let is_valid = |distances: &[f32]| {
                distances.iter().all(|distance| distance.is_finite()) && distances.is_sorted()
            };
            if !is_valid(&saved.distances) {
                let expected = "finite numbers in ascending order".into();
                return bad("left_out_distances", expected, "others".into());
            }
        }
        let mut seen = HashSet::new();
        match self.classes.iter().find(|class| !seen.insert(class.as_str())) {
            Some(class) => bad("classes", "distinct names".into(), format!("`{class}` twice")),
            None => Ok(()),
        }
    }
}

impl SavedDiscriminant {
    /// Rows of the covariance.
    fn rank(&self, dim: usize) -> usize {
        self.basis.as_ref().map_or(dim, |basis| basis.len() / dim.max(1))
    }

    fn check(&self, path: &Path, dim: usize) -> Result<()> {
        let bad = |place: &str, expected: &str, found: String| {
            Err(DataError::malformed(path, place, expected, found))
        };
        let rank = self.rank(dim);
        let n_basis = self.basis.as_ref().map_or(rank * dim, Vec::len);
        if rank.checked_mul(rank) != Some(self.covariance.len()) || n_basis != rank * dim {
            let found = format!("{} numbers and a basis of {n_basis}", self.covariance.len());
            return bad("covariance", "as many rows and columns as the basis has rows", found);
        }
        if !(self.shrinkage > 0.0 && self.shrinkage <= 1.0) {
            return bad("shrinkage", "a number above 0 and at most 1", self.shrinkage.to_string());
        }
        if self.n_pooled == 0 {
            return bad("n_pooled", "at least 1", "0".into());
        }
        let numbers = self.covariance.iter().chain(self.basis.iter().flatten());
        match numbers.into_iter().find(|value| !value.is_finite()) {
            Some(value) => bad("covariance", "finite numbers", value.to_string()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "classifier_file_tests.rs"]
mod tests;
