//! CLIP as `transformers` stores it: `get_image_features`, or the pooled output where a file has no projection.

use super::settings::{BASE, FamilyDefaults, Settings};
use super::{NetworkDescription, prefix};
use crate::error::Result;
use crate::transformer::config::{GridResize, Pooling, Positions, Vit};
use crate::transformer::tensors::{LinearName, Tensors};
use crate::transformer::weights::{BlockNames, Names, PatchLayout};

pub(super) fn describe(config: Settings, tensors: &dyn Tensors) -> Result<NetworkDescription> {
    let is_whole = config.has("vision_config");
    let vision = if is_whole { config.part("vision_config")? } else { config };
    let (block, depth) = vision.block(FamilyDefaults { activation: "quick_gelu", eps: 1e-5, ..BASE })?;
    let size = vision.sides("image_size", 224)?;
    let patch = vision.patch(32)?;
    let projection = LinearName::with_bias("visual_projection", false);
    let projection = Some(projection).filter(|name| tensors.shape(&name.weights[0]).is_some());
    let dim = match projection {
        Some(_) => config.count("projection_dim", 512)?,
        None => block.width,
    };
    let at = prefix(tensors, &["vision_model.", ""], "embeddings.class_embedding");
    let names = Names {
        patch: LinearName::with_bias(format!("{at}embeddings.patch_embedding"), false),
        patch_layout: PatchLayout::Convolution,
        tokens: vec![(format!("{at}embeddings.class_embedding"), 1)],
        positions: Some(format!("{at}embeddings.position_embedding.weight")),
        pre_norm: Some(format!("{at}pre_layrnorm")), // sic
        block: Box::new(move |layer| encoder_layer(&format!("{at}encoder.layers.{layer}"))),
        norm: None,
        pooled_norm: Some(format!("{at}post_layernorm")),
        pool: None,
        projection,
    };
    let grid = (size.0 / patch, size.1 / patch);
    let positions = Positions::Learned { grid, n_before: 1, resize: GridResize::Bicubic };
    let vit = Vit { size, patch, block, depth, positions, pooling: Pooling::First(1), dim };
    Ok(NetworkDescription { architecture: "clip".to_owned(), vit, names })
}

/// The names of a layer of CLIP and SigLIP, of image and text towers alike.
pub(super) fn encoder_layer(layer: &str) -> BlockNames {
    let linear = |name: &str| LinearName::new(format!("{layer}.{name}"));
    let projections = ["q_proj", "k_proj", "v_proj"].map(|name| linear(&format!("self_attn.{name}")));
    BlockNames {
        attention_norm: format!("{layer}.layer_norm1"),
        qkv: LinearName::joined(projections),
        output: linear("self_attn.out_proj"),
        attention_scale: None,
        mlp_norm: format!("{layer}.layer_norm2"),
        first: linear("mlp.fc1"),
        second: linear("mlp.fc2"),
        mlp_scale: None,
    }
}
