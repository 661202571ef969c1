//! The attention weight generator between its file and its use.

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

/// What is written of a generator over the base classes `classes`; the backbone is a name, the network a fingerprint.
pub fn saved_attention(
    generator: &Attention,
    classes: Vec<String>,
    (backbone, network): (Option<String>, Option<String>),
    settings: serde_json::Value,
) -> SavedAttention {
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
