//! The file of a model that is not a matrix of class weights (safetensors): named tensors, described by JSON in the header.

use std::collections::HashSet;
use std::path::Path;

use labelsieve_files::tensors::tensor_file::{
    EncodedTensor, METADATA_KEY, Tensors, check_finite, read_tensors, write_described,
};
use labelsieve_files::{DataError, Result, read_f32};
use serde::{Deserialize, Serialize};

/// A model. Reading checks that its tensors are well-formed; `classifier` defines their meaning.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedModel {
    /// The kind of model, which distinguishes it from our other safetensors files.
    pub kind: String,
    /// The classes of a classifier; empty for a model that only helps to learn one.
    pub classes: Vec<String>,
    /// The number of features, d.
    pub dim: usize,
    /// The name that the user gave the network that made the features.
    pub backbone: Option<String>,
    /// The architecture and digest of the network that made the features.
    pub network: Option<String>,
    /// The settings of the run that made it, and those that are needed to use it.
    pub settings: serde_json::Value,
    /// The learned parameters.
    pub tensors: Vec<ModelTensor>,
}

/// A named tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelTensor {
    /// Its name.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its numbers, the last axis fastest.
    pub values: Vec<f32>,
}

#[derive(Serialize, Deserialize)]
struct Header {
    kind: String,
    classes: Vec<String>,
    dim: usize,
    backbone: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    network: Option<String>,
    settings: serde_json::Value,
    /// Distinguishes these models from our other files with a `kind`.
    model: bool,
}

impl SavedModel {
    /// A tensor by its name.
    pub fn tensor(&self, path: &Path, name: &str) -> Result<&ModelTensor> {
        self.tensors.iter().find(|tensor| tensor.name == name).ok_or_else(|| {
            DataError::malformed(path, format!("tensor `{name}`"), "a tensor of this name", "none")
        })
    }

    /// Writes the model; the file appears whole or not at all.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        self.check(path)?;
        let header = Header {
            kind: self.kind.clone(),
            classes: self.classes.clone(),
            dim: self.dim,
            backbone: self.backbone.clone(),
            network: self.network.clone(),
            settings: self.settings.clone(),
            model: true,
        };
        let tensors = self.tensors.iter();
        let tensors: Vec<EncodedTensor> =
            tensors.map(|tensor| EncodedTensor::f32(&tensor.name, &tensor.shape, &tensor.values)).collect();
        write_described(path, &tensors, &header)
    }

    /// Reads a model and checks its numbers and names.
    pub fn load(path: impl AsRef<Path>) -> Result<SavedModel> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(DataError::io("read", path))?;
        let Tensors { tensors: found, json, .. } = read_tensors(path, &bytes)?;
        let place = || format!("metadata `{METADATA_KEY}`");
        let json =
            json.ok_or_else(|| DataError::malformed(path, place(), "the description of a model", "none"))?;
        let header: Header = serde_json::from_str(&json).map_err(|error| {
            DataError::malformed(path, place(), "the description of a model", error.to_string())
        })?;
        let mut tensors = Vec::new();
        for (name, view) in found.tensors() {
            let shape = view.shape().to_vec();
            let values = read_f32(path, &found, &name, &shape)?;
            check_finite(path, &name, &values)?;
            tensors.push(ModelTensor { name, shape, values });
        }
        tensors.sort_by(|a, b| a.name.cmp(&b.name));
        let Header { kind, classes, dim, backbone, network, settings, .. } = header;
        let model = SavedModel { kind, classes, dim, backbone, network, settings, tensors };
        model.check(path)?;
        Ok(model)
    }

    /// The invariants of a model, checked before writing and after reading.
    fn check(&self, path: &Path) -> Result<()> {
        let mut seen = HashSet::new();
        if let Some(twice) = self.classes.iter().find(|class| !seen.insert(class.as_str())) {
            return Err(DataError::malformed(path, "classes", "distinct names", format!("`{twice}` twice")));
        }
        if self.dim == 0 {
            return Err(DataError::malformed(path, "dim", "at least 1", "0"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> SavedModel {
        let tensor = |name: &str, shape: &[usize], values: &[f32]| ModelTensor {
            name: name.to_owned(),
            shape: shape.to_vec(),
            values: values.to_vec(),
        };
        SavedModel {
            kind: "linear".into(),
            classes: vec!["owl".into(), "cat".into()],
            dim: 2,
            backbone: None,
            network: Some("resnet10 0123456789abcdef".into()),
            settings: serde_json::json!({"decay": 0.5}),
            tensors: vec![
                tensor("bias", &[2], &[0.5, -1.0]),
                tensor("weight", &[2, 2], &[1.0, 2.0, 3.0, 4.0]),
            ],
        }
    }

    #[test]
    fn what_is_saved_is_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.safetensors");
        model().save(&path).unwrap();
        assert_eq!(SavedModel::load(&path).unwrap(), model());
        assert_eq!(model().tensor(&path, "bias").unwrap().shape, [2]);
        let error = model().tensor(&path, "scale").unwrap_err().to_string();
        assert!(error.ends_with("tensor `scale`: expected a tensor of this name, found none"), "{error}");
    }

    #[test]
    fn broken_models_are_neither_saved_nor_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.safetensors");
        let twice = SavedModel { classes: vec!["owl".into(), "owl".into()], ..model() };
        assert!(twice.save(&path).unwrap_err().to_string().ends_with("found `owl` twice"));
        let mut short = model();
        short.tensors[0].values.pop();
        assert!(short.save(&path).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        model().save(&path).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for length in (0..whole.len()).step_by(7) {
            std::fs::write(&path, &whole[..length]).unwrap();
            let error = SavedModel::load(&path).unwrap_err().to_string();
            assert!(error.contains("m.safetensors"), "{error}");
        }
    }
}
