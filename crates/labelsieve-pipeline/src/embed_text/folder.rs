//! The configuration and the tensors of a folder from the hub.

use std::collections::BTreeMap;
use std::path::Path;

use labelsieve_data::{DataError, NetworkFile};
use labelsieve_vision::transformer::Tensors;
use serde_json::Value;

use crate::error::{Error, Result};

/// What a folder says, and its weights in memory.
pub struct TextFolder {
    pub config: Value,
    tensors: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
}

impl TextFolder {
    pub fn open(folder: &Path) -> Result<TextFolder> {
        let (config, weights) = match folder.join("open_clip_config.json").is_file() {
            true => ("open_clip_config.json", "open_clip_model.safetensors"),
            false => ("config.json", "model.safetensors"),
        };
        let path = folder.join(config);
        let text = std::fs::read_to_string(&path).map_err(DataError::io("read", &path))?;
        let config = serde_json::from_str(&text).map_err(|error| {
            Error::input(
                format!("`{}`: {error}", path.display()),
                "it must be the file that came with the model",
            )
        })?;
        let tensors = NetworkFile::load(folder.join(weights))?.tensors;
        let tensors = tensors.into_iter().map(|(name, shape, values)| (name, (shape, values))).collect();
        Ok(TextFolder { config, tensors })
    }
}

impl Tensors for TextFolder {
    fn shape(&self, name: &str) -> Option<Vec<usize>> {
        self.tensors.get(name).map(|(shape, _)| shape.clone())
    }

    fn values(&self, name: &str) -> labelsieve_vision::Result<Vec<f32>> {
        Ok(self.tensors.get(name).map(|(_, values)| values.clone()).unwrap_or_default())
    }
}
