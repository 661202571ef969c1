//! The attention weight generator between its file and its use.

use std::path::Path;

use anyhow::{Context, Result};
use labelsieve::Features;
use labelsieve::classifier::{Attention, AttentionParameters, WeightMatrix};
use labelsieve_data::SavedAttention;

/// Reads a generator from disk.
pub fn load_attention(path: &Path) -> Result<Attention> {
    let saved = SavedAttention::load(path)?;
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
    Attention::new(parameters, base).with_context(unusable)
}

/// What is written of a generator over the base classes `classes`.
pub fn saved_attention(
    generator: &Attention,
    classes: Vec<String>,
    backbone: Option<String>,
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
        settings,
    }
}
