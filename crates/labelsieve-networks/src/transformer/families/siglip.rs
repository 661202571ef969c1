//! SigLIP and SigLIP 2 as `transformers` stores them: `get_image_features`, which is the pooled output.
//!
//! SigLIP 2 with a fixed size is SigLIP to its files. The NaFlex variants (`siglip2`) take any grid of patches; here they see
//! a square of as many patches as they have positions.

use super::clip::encoder_layer;
use super::settings::{BASE, FamilyDefaults, Settings, wrong};
use super::{NetworkDescription, prefix};
use crate::error::Result;
use crate::transformer::config::{GridResize, Pooling, Positions, Vit};
use crate::transformer::tensors::{LinearName, Tensors};
use crate::transformer::weights::{Names, PatchLayout, PoolNames};

pub(super) fn describe(config: Settings, tensors: &dyn Tensors) -> Result<NetworkDescription> {
    let vision = if config.has("vision_config") { config.part("vision_config")? } else { config };
    if !vision.flag("vision_use_head", true)? {
        let found = vision.0.get("vision_use_head").cloned().unwrap_or_default();
        return Err(wrong("vision_use_head", "true: the pooled feature needs it", &found));
    }
    let is_flexible = config.word("model_type", "")?.starts_with("siglip2");
    let (block, depth) = vision.block(FamilyDefaults { activation: "gelu_pytorch_tanh", ..BASE })?;
    let patch = vision.patch(16)?;
    let (size, resize, patch_layout) = if is_flexible {
        let side = vision.count("num_patches", 256)?.isqrt() * patch;
        ((side, side), GridResize::BilinearAntialias, PatchLayout::Rows)
    } else {
        (vision.sides("image_size", 224)?, GridResize::Bicubic, PatchLayout::Convolution)
    };
    let at = prefix(tensors, &["vision_model.", ""], "embeddings.patch_embedding.weight");
    let linear = |name: &str| LinearName::new(format!("{at}{name}"));
    let names = Names {
        patch: linear("embeddings.patch_embedding"),
        patch_layout,
        tokens: vec![],
        positions: Some(format!("{at}embeddings.position_embedding.weight")),
        pre_norm: None,
        block: Box::new(move |layer| encoder_layer(&format!("{at}encoder.layers.{layer}"))),
        norm: Some(format!("{at}post_layernorm")),
        pooled_norm: None,
        pool: Some(PoolNames {
            query: format!("{at}head.probe"),
            qkv: LinearName {
                weights: vec![format!("{at}head.attention.in_proj_weight")],
                biases: vec![Some(format!("{at}head.attention.in_proj_bias"))],
                transposed: false,
            },
            output: linear("head.attention.out_proj"),
            norm: format!("{at}head.layernorm"),
            first: linear("head.mlp.fc1"),
            second: linear("head.mlp.fc2"),
        }),
        projection: None,
    };
    let grid = (size.0 / patch, size.1 / patch);
    let positions = Positions::Learned { grid, n_before: 0, resize };
    let vit = Vit { size, patch, block, depth, positions, pooling: Pooling::Attention, dim: block.width };
    let architecture = if is_flexible { "siglip2" } else { "siglip" };
    Ok(NetworkDescription { architecture: architecture.to_owned(), vit, names })
}
