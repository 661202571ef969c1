//! OpenCLIP's own files (`open_clip_config.json`): `encode_image`.

use super::settings::{Settings, check_heads, wrong};
use super::{NetworkDescription, timm};
use crate::error::Result;
use crate::transformer::config::{Activation, BlockShape, GridResize, Mlp, Pooling, Positions, Vit};
use crate::transformer::tensors::{LinearName, Tensors};
use crate::transformer::weights::{BlockNames, Names, PatchLayout};

pub(super) fn describe(config: Settings, tensors: &dyn Tensors) -> Result<NetworkDescription> {
    let model = config.part("model_cfg")?;
    let vision = model.part("vision_cfg")?;
    let dim = model.count("embed_dim", 512)?;
    if vision.has("timm_model_name") {
        return trunk(vision, dim, tensors);
    }
    let pooler = vision.0.get("attentional_pool").filter(|value| !value.is_null() && **value != false);
    if let Some(pooler) = pooler {
        return Err(wrong("attentional_pool", "no attentional pooler (CoCa)", pooler));
    }
    if let Some(layers) = vision.0.get("layers").filter(|layers| layers.is_array()) {
        return Err(wrong("layers", "a number of layers: a vision transformer, not a ResNet", layers));
    }
    let width = vision.count("width", 768)?;
    let block = BlockShape {
        width,
        heads: (width / vision.count("head_width", 64)?).max(1),
        mlp_width: vision.mlp_width(width)?,
        mlp: Mlp::Plain(activation(model, vision)?),
        eps: vision.part("norm_kwargs")?.number("eps", 1e-5)? as f32,
    };
    check_heads(&block)?;
    let size = vision.sides("image_size", 224)?;
    let patch = vision.patch(16)?;
    let pooling = match vision.word("pool_type", "tok")? {
        "tok" => Pooling::First(1),
        "avg" => Pooling::Mean,
        _ => return Err(wrong("pool_type", "tok or avg", &vision.0["pool_type"])),
    };
    let norm_comes_last = pooling == Pooling::First(1) || vision.flag("final_ln_after_pool", false)?;
    let norm = Some("visual.ln_post".to_owned());
    let has_scale = vision.has("ls_init_value");
    let names = Names {
        patch: LinearName::with_bias("visual.conv1", false),
        patch_layout: PatchLayout::Convolution,
        tokens: vec![("visual.class_embedding".to_owned(), 1)],
        positions: Some("visual.positional_embedding".to_owned()),
        pre_norm: (!vision.flag("no_ln_pre", false)?).then(|| "visual.ln_pre".to_owned()),
        block: Box::new(move |layer| {
            block_names(&format!("visual.transformer.resblocks.{layer}"), has_scale)
        }),
        norm: norm.clone().filter(|_| !norm_comes_last),
        pooled_norm: norm.filter(|_| norm_comes_last),
        pool: None,
        projection: Some(LinearName {
            weights: vec!["visual.proj".to_owned()],
            biases: vec![None],
            transposed: true,
        }),
    };
    let grid = (size.0 / patch, size.1 / patch);
    let positions = Positions::Learned { grid, n_before: 1, resize: GridResize::BicubicAntialias };
    let depth = vision.count("layers", 12)?;
    let vit = Vit { size, patch, block, depth, positions, pooling, dim };
    Ok(NetworkDescription { architecture: "open_clip".to_owned(), vit, names })
}

/// The activation of a tower, `part` of the model.
pub(super) fn activation(model: Settings, part: Settings) -> Result<Activation> {
    if model.flag("quick_gelu", false)? {
        return Ok(Activation::QuickGelu);
    }
    let options = part.part("act_kwargs")?;
    match options.word("approximate", "none")? {
        "none" => Ok(Activation::Gelu),
        "tanh" => Ok(Activation::GeluTanh),
        _ => Err(wrong("approximate", "none or tanh", &options.0["approximate"])),
    }
}

/// The names of a block, of image and text towers alike.
pub(super) fn block_names(block: &str, has_scale: bool) -> BlockNames {
    let linear = |name: &str| LinearName::new(format!("{block}.{name}"));
    let scale = |name: &str| has_scale.then(|| format!("{block}.{name}.gamma"));
    BlockNames {
        attention_norm: format!("{block}.ln_1"),
        qkv: LinearName {
            weights: vec![format!("{block}.attn.in_proj_weight")],
            biases: vec![Some(format!("{block}.attn.in_proj_bias"))],
            transposed: false,
        },
        output: linear("attn.out_proj"),
        attention_scale: scale("ls_1"),
        mlp_norm: format!("{block}.ln_2"),
        first: linear("mlp.c_fc"),
        second: linear("mlp.c_proj"),
        mlp_scale: scale("ls_2"),
    }
}

/// A network of timm inside OpenCLIP: the projection is its own head, a linear layer after it, or absent. Missing settings have
/// OpenCLIP's defaults.
fn trunk(vision: Settings, dim: usize, tensors: &dyn Tensors) -> Result<NetworkDescription> {
    let name = vision.word("timm_model_name", "")?;
    let pool = Some(vision.word("timm_pool", "avg")?).filter(|pool| !pool.is_empty());
    let size = vision.sides("image_size", 224)?;
    let mut described = timm::describe_trunk(name, "visual.trunk.", size, pool, tensors)?;
    described.names.projection = match vision.word("timm_proj", "linear")? {
        "none" => None,
        "" => Some(LinearName::new("visual.trunk.head")),
        "linear" => {
            let bias = vision.flag("timm_proj_bias", false)?;
            Some(LinearName::with_bias("visual.head.proj", bias))
        }
        _ => return Err(wrong("timm_proj", "none, linear or nothing", &vision.0["timm_proj"])),
    };
    if described.names.projection.is_some() {
        described.vit.dim = dim;
    }
    described.architecture = format!("open_clip {name}");
    Ok(described)
}
