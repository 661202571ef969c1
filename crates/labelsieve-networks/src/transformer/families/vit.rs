//! ViT and DeiT as `transformers` stores them: the class token behind the last normalisation
//! (`last_hidden_state[:, 0]`), which is what their classifiers get.

use super::settings::{BASE, FamilyDefaults, Settings};
use super::{NetworkDescription, prefix};
use crate::error::Result;
use crate::transformer::config::{GridResize, Pooling, Positions, Vit};
use crate::transformer::tensors::{LinearName, Tensors};
use crate::transformer::weights::{BlockNames, Names, PatchLayout};

pub(super) fn describe(config: Settings, tensors: &dyn Tensors) -> Result<NetworkDescription> {
    let architecture = config.word("model_type", "vit")?;
    let (block, depth) = config.block(FamilyDefaults { eps: 1e-12, ..BASE })?;
    let size = config.sides("image_size", 224)?;
    let patch = config.patch(16)?;
    let at = prefix(tensors, &["", "vit.", "deit."], "embeddings.cls_token");
    let mut tokens = vec![(format!("{at}embeddings.cls_token"), 1)];
    if architecture == "deit" {
        tokens.push((format!("{at}embeddings.distillation_token"), 1));
    }
    let n_before = tokens.len();
    let qkv_bias = config.flag("qkv_bias", true)?;
    let names = Names {
        patch: LinearName::new(format!("{at}embeddings.patch_embeddings.projection")),
        patch_layout: PatchLayout::Convolution,
        tokens,
        positions: Some(format!("{at}embeddings.position_embeddings")),
        pre_norm: None,
        block: Box::new(move |layer| layer_names(&format!("{at}encoder.layer.{layer}"), qkv_bias)),
        norm: None,
        pooled_norm: Some(format!("{at}layernorm")),
        pool: None,
        projection: None,
    };
    let grid = (size.0 / patch, size.1 / patch);
    let positions = Positions::Learned { grid, n_before, resize: GridResize::Bicubic };
    let vit = Vit { size, patch, block, depth, positions, pooling: Pooling::First(1), dim: block.width };
    Ok(NetworkDescription { architecture: architecture.to_owned(), vit, names })
}

fn layer_names(layer: &str, qkv_bias: bool) -> BlockNames {
    let linear = |name: &str| LinearName::new(format!("{layer}.{name}"));
    let attention = |name| LinearName::with_bias(format!("{layer}.attention.attention.{name}"), qkv_bias);
    BlockNames {
        attention_norm: format!("{layer}.layernorm_before"),
        qkv: LinearName::joined(["query", "key", "value"].map(attention)),
        output: linear("attention.output.dense"),
        attention_scale: None,
        mlp_norm: format!("{layer}.layernorm_after"),
        first: linear("intermediate.dense"),
        second: linear("output.dense"),
        mlp_scale: None,
    }
}
