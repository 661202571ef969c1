//! A trained classifier as safetensors: `weight` (K×d) and `scale`, with everything else as JSON in the header.

use std::collections::HashSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use crate::tensors::tensor_file::read_f32;
use crate::tensors::tensor_file::{
    EncodedTensor, METADATA_KEY, Tensors, check_positive, parse_description, read_tensors, write_described,
};
use crate::{DataError, Result, TensorsOf};

/// A linear classifier over unit features.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedClassifier {
    /// The class of each row of `weight`; names are distinct.
    pub classes: Vec<String>,
    /// The number of features, d.
    pub dim: usize,
    /// K×d, row after row; rows have length 1.
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
        };
        let shape = [self.classes.len(), self.dim];
        let tensors = [
            EncodedTensor::f32("weight", &shape, &self.weight),
            EncodedTensor::f32("scale", &[1], &[self.scale]),
        ];
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
        let classifier = SavedClassifier {
            classes: header.classes,
            dim: header.dim,
            weight,
            scale: scale[0],
            backbone: header.backbone,
            network: header.network,
            n_base: header.n_base,
            settings: header.settings,
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
        let mut seen = HashSet::new();
        match self.classes.iter().find(|class| !seen.insert(class.as_str())) {
            Some(class) => bad("classes", "distinct names".into(), format!("`{class}` twice")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "classifier_file_tests.rs"]
mod tests;
