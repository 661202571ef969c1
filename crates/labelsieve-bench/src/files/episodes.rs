//! Loading and saving of systems that learn from episodes.

use std::path::Path;

use labelsieve_files::DataError;
use labelsieve_files::work::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{ModelTensor, SavedModel};
use crate::classifier::{EpisodicKind, EpisodicModel, EpisodicSizes, Tensor};

/// The `kind` of the file of a system.
pub const KIND: &str = "episodes";

/// The description of a system in the settings of its file.
#[derive(Serialize, Deserialize)]
struct System {
    system: EpisodicKind,
    sizes: EpisodicSizes,
}

/// Reads a system from disk, and the network whose features it is for, if the file says so.
pub fn load_episodes(path: &Path) -> Result<(EpisodicModel, Option<String>)> {
    let saved = SavedModel::load(path)?;
    if saved.kind != KIND {
        let found = format!("`{}`", saved.kind);
        return Err(DataError::malformed(path, "`kind`", format!("`{KIND}`"), found).into());
    }
    Ok((model_of(path, &saved)?, saved.network))
}

/// The system in a file.
pub fn model_of(path: &Path, saved: &SavedModel) -> Result<EpisodicModel> {
    let System { system, sizes } = serde_json::from_value(saved.settings["system"].clone())
        .map_err(|error| DataError::malformed(path, "`settings.system`", "a system", error.to_string()))?;
    let of_system = saved.tensors.iter().filter(|tensor| tensor.name != "class_vectors");
    let tensors = of_system.map(|tensor| {
        let shape = match tensor.shape[..] {
            [rows, columns] => [rows, columns],
            _ => [0, 0], // refused below, where the name is known
        };
        Tensor { name: tensor.name.clone(), shape, values: tensor.values.clone() }
    });
    EpisodicModel::new(system, sizes, tensors.collect())
        .with_context(|| format!("cannot use `{}`", path.display()))
}

/// The description of a system for the settings of a file.
pub fn settings_of(model: &EpisodicModel) -> Value {
    json!(System { system: model.kind(), sizes: *model.sizes() })
}

/// The tensors of a system, as they are written.
pub fn tensors_of(model: &EpisodicModel) -> Vec<ModelTensor> {
    let tensor = |Tensor { name, shape, values }: &Tensor| ModelTensor {
        name: name.clone(),
        shape: shape.to_vec(),
        values: values.clone(),
    };
    model.tensors().iter().map(tensor).collect()
}
