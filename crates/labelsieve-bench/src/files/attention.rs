//! Loading and saving of the attention weight generator.

use std::path::Path;

use labelsieve::Features;
use labelsieve::classifier::WeightMatrix;
use labelsieve_files::work::{Context, Result};

use super::SavedAttention;
use crate::classifier::{Attention, AttentionParameters};

/// Reads a generator from disk, and the network whose features it is for, if the file says so.
pub fn load_attention(path: &Path) -> Result<(Attention, Option<String>)> {
    let saved = SavedAttention::load(path)?;
    let network = saved.network;
    let unusable = || format!("cannot use `{}`", path.display());
    let base = Features::new(saved.base, saved.dim).with_context(unusable)?;
    let base = WeightMatrix::new(base, saved.scale).with_context(unusable)?;
    let parameters = AttentionParameters {
        query: saved.query,
        keys: saved.keys,
        average: saved.average,
        attended: saved.attended,
        gamma: saved.gamma,
    };
    Ok((Attention::new(parameters, base).with_context(unusable)?, network))
}

/// The fields of a generator's file that its parameters do not determine.
pub struct AttentionDescription {
    /// The names of the base classes, in the order of the keys.
    pub classes: Vec<String>,
    /// The name of the backbone that made the features.
    pub backbone: Option<String>,
    /// The fingerprint of the network that made the features.
    pub network: Option<String>,
    /// The settings of the training.
    pub settings: serde_json::Value,
}

/// A generator in the form in which it is written.
pub fn saved_attention(generator: &Attention, description: AttentionDescription) -> SavedAttention {
    let AttentionDescription { classes, backbone, network, settings } = description;
    let AttentionParameters { query, keys, average, attended, gamma } = generator.parameters().clone();
    let base = generator.base().weights();
    SavedAttention {
        classes,
        dim: base.dim(),
        query,
        keys,
        average,
        attended,
        gamma,
        base: base.block(0..base.len()).to_vec(),
        scale: generator.base().scale(),
        backbone,
        network,
        settings,
    }
}
