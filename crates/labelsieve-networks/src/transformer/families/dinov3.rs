//! DINOv3's vision transformers as `transformers` stores them: the class token behind the last normalisation
//! (`pooler_output`).

use super::settings::{BASE, FamilyDefaults, Settings};
use super::{NetworkDescription, prefix};
use crate::error::Result;
use crate::transformer::config::{Mlp, Pooling, Positions, Vit};
use crate::transformer::tensors::{LinearName, Tensors};
use crate::transformer::weights::{BlockNames, Names, PatchLayout};

pub(super) fn describe(config: Settings, tensors: &dyn Tensors) -> Result<NetworkDescription> {
    let usual = FamilyDefaults { width: 384, heads: 6, mlp_width: 1536, eps: 1e-5, ..BASE };
    let (mut block, depth) = config.block(usual)?;
    if config.flag("use_gated_mlp", false)? {
        let (Mlp::Plain(activation) | Mlp::Gated(activation)) = block.mlp;
        block.mlp = Mlp::Gated(activation);
    }
    let size = config.sides("image_size", 224)?;
    let patch = config.patch(16)?;
    let at = prefix(tensors, &["", "dinov3_vit.", "model."], "embeddings.cls_token");
    let layers = prefix(tensors, &["", "model."], &format!("{at}layer.0.norm1.weight"));
    let registers = config.count_or_zero("num_register_tokens", 0)?;
    let mut tokens = vec![(format!("{at}embeddings.cls_token"), 1)];
    tokens.extend((registers > 0).then(|| (format!("{at}embeddings.register_tokens"), registers)));
    let biases = Biases {
        queries: config.flag("query_bias", true)?,
        keys: config.flag("key_bias", false)?,
        values: config.flag("value_bias", true)?,
        output: config.flag("proj_bias", true)?,
        mlp: config.flag("mlp_bias", true)?,
    };
    let mlp = block.mlp;
    let names = Names {
        patch: LinearName::new(format!("{at}embeddings.patch_embeddings")),
        patch_layout: PatchLayout::Convolution,
        tokens,
        positions: None,
        pre_norm: None,
        block: Box::new(move |layer| layer_names(&format!("{layers}{at}layer.{layer}"), mlp, biases)),
        norm: None,
        pooled_norm: Some(format!("{at}norm")),
        pool: None,
        projection: None,
    };
    let theta = config.number("rope_theta", 100.0)? as f32;
    let positions = Positions::Rotary { theta };
    let pooling = Pooling::First(1);
    let vit = Vit { size, patch, block, depth, positions, pooling, dim: block.width };
    Ok(NetworkDescription { architecture: "dinov3_vit".to_owned(), vit, names })
}

/// Which layers of a block have a bias.
#[derive(Clone, Copy)]
struct Biases {
    queries: bool,
    keys: bool,
    values: bool,
    output: bool,
    mlp: bool,
}

fn layer_names(layer: &str, mlp: Mlp, biases: Biases) -> BlockNames {
    let linear = |name: &str, bias| LinearName::with_bias(format!("{layer}.{name}"), bias);
    let up = linear("mlp.up_proj", biases.mlp);
    let gate = linear("mlp.gate_proj", biases.mlp);
    BlockNames {
        attention_norm: format!("{layer}.norm1"),
        qkv: LinearName::joined([
            linear("attention.q_proj", biases.queries),
            linear("attention.k_proj", biases.keys),
            linear("attention.v_proj", biases.values),
        ]),
        output: linear("attention.o_proj", biases.output),
        attention_scale: Some(format!("{layer}.layer_scale1.lambda1")),
        mlp_norm: format!("{layer}.norm2"),
        first: match mlp {
            Mlp::Plain(_) => up,
            Mlp::Gated(_) => LinearName::joined([gate, up]),
        },
        second: linear("mlp.down_proj", biases.mlp),
        mlp_scale: Some(format!("{layer}.layer_scale2.lambda1")),
    }
}
