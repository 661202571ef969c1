//! A trained classifier as safetensors: `weight` (K×d) and `scale`, with everything else as JSON in the header.

use std::collections::HashSet;
use std::path::Path;

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use serde::{Deserialize, Serialize};

use crate::tensors::tensor_file::{
    METADATA_KEY, Tensors, check_positive, read_tensors, undecodable, unless_other_tensors, write_tensors,
};
use crate::{DataError, Result, TensorsOf};

/// A linear classifier over unit features.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedClassifier {
    /// The class of each row of `weight`; no name occurs twice.
    pub classes: Vec<String>,
    /// The number of features, d.
    pub dim: usize,
    /// K×d, row after row; rows have length 1.
    pub weight: Vec<f32>,
    /// The factor on cosines before the softmax.
    pub scale: f32,
    /// The network that made the features, as the user calls it.
    pub backbone: Option<String>,
    /// The network that made the features: what it is and a digest of it.
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
        write_tensors(path, views, json)
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
        let header = serde_json::from_str(&json).map_err(|error| {
            let place = format!("metadata `{METADATA_KEY}`");
            DataError::malformed(path, place, "the description of a classifier", error.to_string())
        });
        let header: Header = header.map_err(unless_other_tensors(path, &json, TensorsOf::Classifier))?;
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

    /// What must hold before writing and after reading.
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

/// A tensor of this name and shape, in single precision.
pub fn read_f32(path: &Path, tensors: &SafeTensors<'_>, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
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

#[cfg(test)]
#[path = "classifier_file_tests.rs"]
mod tests;
