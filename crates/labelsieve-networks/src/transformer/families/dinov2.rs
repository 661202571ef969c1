//! DINOv2, with and without registers, as `transformers` stores it: the class token behind the last normalisation
//! (`pooler_output`).

use super::settings::{BASE, Settings};
use super::{NetworkDescription, prefix};
use crate::error::Result;
use crate::transformer::config::{Activation, GridResize, Mlp, Pooling, Positions, Vit};
use crate::transformer::tensors::{LinearName, Tensors};
use crate::transformer::weights::{BlockNames, Names, PatchLayout};

pub(super) fn describe(config: Settings, tensors: &dyn Tensors) -> Result<NetworkDescription> {
    let architecture = config.word("model_type", "dinov2")?;
    let has_registers = architecture == "dinov2_with_registers";
    let (mut block, depth) = config.block(BASE)?;
    block.mlp_width = config.mlp_width(block.width)?;
    if config.flag("use_swiglu_ffn", false)? {
        block.mlp_width = (block.mlp_width * 2 / 3).next_multiple_of(8);
        block.mlp = Mlp::Gated(Activation::Silu);
    }
    let size = config.sides("image_size", 224)?;
    let patch = config.patch(14)?;
    let prefixes = ["", "dinov2.", "dinov2_with_registers."];
    let at = prefix(tensors, &prefixes, "embeddings.cls_token");
    let mut tokens = vec![(format!("{at}embeddings.cls_token"), 1)];
    if has_registers {
        let count = config.count_or_zero("num_register_tokens", 4)?;
        tokens.extend((count > 0).then(|| (format!("{at}embeddings.register_tokens"), count)));
    }
    let mlp = block.mlp;
    let qkv_bias = config.flag("qkv_bias", true)?;
    let names = Names {
        patch: LinearName::new(format!("{at}embeddings.patch_embeddings.projection")),
        patch_layout: PatchLayout::Convolution,
        tokens,
        positions: Some(format!("{at}embeddings.position_embeddings")),
        pre_norm: None,
        block: Box::new(move |layer| layer_names(&format!("{at}encoder.layer.{layer}"), mlp, qkv_bias)),
        norm: None,
        pooled_norm: Some(format!("{at}layernorm")),
        pool: None,
        projection: None,
    };
    let resize = if has_registers { GridResize::BicubicAntialias } else { GridResize::Bicubic };
    let grid = (size.0 / patch, size.1 / patch);
    let positions = Positions::Learned { grid, n_before: 1, resize };
    let vit = Vit { size, patch, block, depth, positions, pooling: Pooling::First(1), dim: block.width };
    Ok(NetworkDescription { architecture: architecture.to_owned(), vit, names })
}

fn layer_names(layer: &str, mlp: Mlp, qkv_bias: bool) -> BlockNames {
    let linear = |name: &str| LinearName::new(format!("{layer}.{name}"));
    let attention = |name| LinearName::with_bias(format!("{layer}.attention.attention.{name}"), qkv_bias);
    let (first, second) = match mlp {
        Mlp::Plain(_) => (linear("mlp.fc1"), linear("mlp.fc2")),
        Mlp::Gated(_) => (linear("mlp.weights_in"), linear("mlp.weights_out")),
    };
    BlockNames {
        attention_norm: format!("{layer}.norm1"),
        qkv: LinearName::joined(["query", "key", "value"].map(attention)),
        output: linear("attention.output.dense"),
        attention_scale: Some(format!("{layer}.layer_scale1.lambda1")),
        mlp_norm: format!("{layer}.norm2"),
        first,
        second,
        mlp_scale: Some(format!("{layer}.layer_scale2.lambda1")),
    }
}
