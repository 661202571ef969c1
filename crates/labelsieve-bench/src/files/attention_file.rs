//! The file of an attention weight generator (safetensors): its parameters, and the base classes it attends to.

use std::path::Path;

use labelsieve_files::tensors::tensor_file::{
    EncodedTensor, METADATA_KEY, Tensors, check_finite, check_positive, read_tensors, write_described,
};
use labelsieve_files::{DataError, Result, read_f32};
use serde::{Deserialize, Serialize};

/// The parameters of a generator. Reading checks their shapes; `classifier` defines their meaning.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedAttention {
    /// The base classes, one per row of `base` and `keys`.
    pub classes: Vec<String>,
    /// The number of features, d.
    pub dim: usize,
    /// φ_q, d×d.
    pub query: Vec<f32>,
    /// B×d.
    pub keys: Vec<f32>,
    /// φ_avg, d numbers.
    pub average: Vec<f32>,
    /// φ_att, d numbers.
    pub attended: Vec<f32>,
    /// γ.
    pub gamma: f32,
    /// Weights of the base classes, B×d.
    pub base: Vec<f32>,
    /// The factor on cosines before the softmax.
    pub scale: f32,
    /// The name that the user gave the network that made the features.
    pub backbone: Option<String>,
    /// The architecture and digest of the network that made the features.
    pub network: Option<String>,
    /// The settings of the training.
    pub settings: serde_json::Value,
}

#[derive(Serialize, Deserialize)]
struct Header {
    /// Distinguishes a generator from our other safetensors files.
    kind: String,
    classes: Vec<String>,
    dim: usize,
    backbone: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    network: Option<String>,
    settings: serde_json::Value,
}

const KIND: &str = "attention";

impl SavedAttention {
    /// Writes the generator; the file appears whole or not at all.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let header = Header {
            kind: KIND.to_owned(),
            classes: self.classes.clone(),
            dim: self.dim,
            backbone: self.backbone.clone(),
            network: self.network.clone(),
            settings: self.settings.clone(),
        };
        let square = [self.dim, self.dim];
        let by_base = [self.classes.len(), self.dim];
        let row = [self.dim];
        let tensors = [
            EncodedTensor::f32("query", &square, &self.query),
            EncodedTensor::f32("keys", &by_base, &self.keys),
            EncodedTensor::f32("average", &row, &self.average),
            EncodedTensor::f32("attended", &row, &self.attended),
            EncodedTensor::f32("gamma", &[1], &[self.gamma]),
            EncodedTensor::f32("base", &by_base, &self.base),
            EncodedTensor::f32("scale", &[1], &[self.scale]),
        ];
        write_described(path, &tensors, &header)
    }

    /// Reads a generator and checks its shapes.
    pub fn load(path: impl AsRef<Path>) -> Result<SavedAttention> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(DataError::io("read", path))?;
        let Tensors { tensors, json, .. } = read_tensors(path, &bytes)?;
        let json = json.ok_or_else(|| {
            let expected = format!("metadata `{METADATA_KEY}` of a saved generator of class weights");
            DataError::malformed(path, "safetensors header", expected, "none")
        })?;
        let header: Header = serde_json::from_str(&json).map_err(|error| {
            let place = format!("metadata `{METADATA_KEY}`");
            DataError::malformed(
                path,
                place,
                "the description of a generator of class weights",
                error.to_string(),
            )
        })?;
        let Header { kind, classes, dim, backbone, network, settings } = header;
        if kind != KIND {
            return Err(DataError::malformed(path, "`kind`", format!("`{KIND}`"), format!("`{kind}`")));
        }
        let n_base = classes.len();
        let numbers = |name: &str, shape: &[usize]| {
            let values = read_f32(path, &tensors, name, shape)?;
            check_finite(path, name, &values).map(|()| values)
        };
        let scale = numbers("scale", &[1])?[0];
        check_positive(path, "scale", scale)?;
        Ok(SavedAttention {
            query: numbers("query", &[dim, dim])?,
            keys: numbers("keys", &[n_base, dim])?,
            average: numbers("average", &[dim])?,
            attended: numbers("attended", &[dim])?,
            gamma: numbers("gamma", &[1])?[0],
            base: numbers("base", &[n_base, dim])?,
            scale,
            classes,
            dim,
            backbone,
            network,
            settings,
        })
    }
}

#[cfg(test)]
mod tests {
    use labelsieve_files::SavedClassifier;

    use super::*;

    fn generator() -> SavedAttention {
        SavedAttention {
            classes: vec!["owl".into(), "cat".into(), "elk".into()],
            dim: 2,
            query: vec![1.0, 0.0, 0.5, 1.0],
            keys: vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            average: vec![0.9, 1.1],
            attended: vec![0.2, 0.3],
            gamma: 12.0,
            base: vec![1.0, 0.0, 0.0, 1.0, 0.6, 0.8],
            scale: 9.0,
            backbone: Some("resnet10".into()),
            network: Some("resnet10 0123456789abcdef".into()),
            settings: serde_json::json!({"steps": 3}),
        }
    }

    #[test]
    fn what_is_saved_is_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("g.safetensors");
        generator().save(&path).unwrap();
        assert_eq!(SavedAttention::load(&path).unwrap(), generator());
    }

    #[test]
    fn a_generator_of_wrong_shape_is_neither_saved_nor_left_half_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("g.safetensors");
        assert!(SavedAttention { keys: vec![1.0], ..generator() }.save(&path).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn classifiers_and_truncated_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.safetensors");
        let classifier = SavedClassifier {
            classes: vec!["owl".into()],
            dim: 2,
            weight: vec![1.0, 0.0],
            scale: 1.0,
            backbone: None,
            network: None,
            n_base: 0,
            settings: serde_json::Value::Null,
            discriminant: None,
            confidence: None,
        };
        classifier.save(&path).unwrap();
        let error = SavedAttention::load(&path).unwrap_err().to_string();
        assert!(error.contains("expected the description of a generator of class weights"), "{error}");
        generator().save(&path).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for length in (0..whole.len()).step_by(7) {
            std::fs::write(&path, &whole[..length]).unwrap();
            let error = SavedAttention::load(&path).unwrap_err().to_string();
            assert!(error.contains("c.safetensors"), "{error}");
        }
    }
}
