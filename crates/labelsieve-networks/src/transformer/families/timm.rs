//! timm's vision transformers: what its models give with `num_classes=0`, pooled as `global_pool` says.
//!
//! A configuration of timm only names its model, so that sizes come from the tensors, and what tensors do not show (heads,
//! activation, the constant of normalisations) from the name.

use super::settings::{Settings, check_heads, side, wrong};
use super::{NetworkDescription, unknown};
use crate::error::{Error, Result};
use crate::transformer::config::{Activation, BlockShape, GridResize, Mlp, Pooling, Positions, Vit};
use crate::transformer::tensors::{LinearName, Tensors};
use crate::transformer::weights::{BlockNames, Names, PatchLayout, PoolNames};

pub(super) fn describe(name: &str, config: Settings, tensors: &dyn Tensors) -> Result<NetworkDescription> {
    let pretrained = config.part("pretrained_cfg")?;
    let size = match pretrained.0.get("input_size").filter(|size| !size.is_null()) {
        None => (224, 224),
        Some(size) => {
            let sides = match size.as_array().map(Vec::as_slice) {
                Some([_, height, width]) => side(height).zip(side(width)),
                _ => None,
            };
            sides.ok_or_else(|| wrong("input_size", "channels, height and width", size))?
        }
    };
    check_arguments(config)?;
    let pool = Some(config.word("global_pool", "")?).filter(|pool| !pool.is_empty());
    let described = describe_trunk(name, "", size, pool, tensors)?;
    let expected = config.count("num_features", described.vit.dim)?;
    let found = described.vit.dim;
    if expected != found {
        return Err(Error::Shape {
            what: "tensor `patch_embed.proj.weight`".to_owned(),
            expected: format!("{expected} outputs, `num_features` in the configuration"),
            found: found.to_string(),
        });
    }
    Ok(described)
}

/// Rejects arguments that change the named network.
fn check_arguments(config: Settings) -> Result<()> {
    const HARMLESS: [&str; 5] =
        ["img_size", "num_classes", "dynamic_img_size", "drop_rate", "drop_path_rate"];
    let arguments = config.0.get("model_args").and_then(|arguments| arguments.as_object());
    match arguments.into_iter().flatten().find(|(name, _)| !HARMLESS.contains(&name.as_str())) {
        None => Ok(()),
        Some((name, value)) => {
            let expected = format!("nothing but {}", HARMLESS.join(", "));
            Err(wrong("model_args", &expected, &serde_json::json!({ name: value })))
        }
    }
}

/// The properties that the name of a model implies; `None` for unsupported models.
struct ModelTraits {
    is_dinov3: bool,
    activation: Activation,
    eps: f32,
}

fn known(name: &str) -> Option<ModelTraits> {
    let name = name.split('.').next().unwrap_or(name);
    let has = |part: &str| name.contains(part);
    let other = [
        "relpos", "rope", "_pe_", "sapiens", "_xp_", "resnet", "_r26", "_r50", "_r_s16", "mci", "18x2",
        "lingbot", "_rpn", "dlittle", "pwee", "dwee",
    ];
    if !(name.starts_with("vit_") || name.starts_with("deit")) || other.iter().any(|part| has(part)) {
        return None;
    }
    // SigLIP 2 brought sizes that SigLIP did not have, and only they have its activation.
    let is_siglip2 = has("siglip")
        && (has("so400m_patch16")
            || has("giantopt")
            || has("base_patch32")
            || has("large_patch16") && has("_512"));
    let activation = if has("quickgelu") {
        Activation::QuickGelu
    } else if is_siglip2 {
        Activation::GeluTanh
    } else {
        Activation::Gelu
    };
    let eps = if has("clip") && !has("siglip") || has("dinov3") { 1e-5 } else { 1e-6 };
    Some(ModelTraits { is_dinov3: has("dinov3"), activation, eps })
}

/// The heads of a model: 64 numbers each, but for some of the large ones.
fn heads(name: &str, width: usize) -> usize {
    match width {
        4096 => 32,
        1280 if name.contains("dinov3") => 20,
        1152 | 1280 | 1408 | 1664 => 16,
        1536 if name.contains("giantopt") => 16,
        768 if name.starts_with("vit_base_patch16_gap") => 16,
        _ => (width / 64).max(1),
    }
}

/// The same below a prefix, with the size of images and the kind of pooling.
pub(super) fn describe_trunk(
    name: &str,
    at: &'static str,
    size: (usize, usize),
    pool: Option<&str>,
    tensors: &dyn Tensors,
) -> Result<NetworkDescription> {
    let ModelTraits { is_dinov3, activation, eps } = known(name).ok_or_else(|| unknown(name))?;
    let trunk = Trunk { at, tensors };
    let has = |tensor: &str| trunk.has(tensor);
    let patch_shape = trunk.shape("patch_embed.proj.weight", 4)?;
    let width = patch_shape[0];
    let patch = patch_shape[2];
    let is_split = has("blocks.0.mlp.fc1_g.weight");
    let mlp_width = trunk.shape("blocks.0.mlp.fc2.weight", 2)?[1];
    let is_gated = is_split || trunk.shape("blocks.0.mlp.fc1.weight", 2)?[0] == 2 * mlp_width;
    let mlp = if is_gated { Mlp::Gated(Activation::Silu) } else { Mlp::Plain(activation) };
    let block = BlockShape { width, heads: heads(name, width), mlp_width, mlp, eps };
    check_heads(&block)?;
    let depth = (0..).take_while(|layer| has(&format!("blocks.{layer}.norm1.weight"))).count().max(1);

    let tokens = trunk.tokens()?;
    let n_tokens: usize = tokens.iter().map(|(_, count)| count).sum();
    let grid = (size.0 / patch, size.1 / patch);
    let positions = if is_dinov3 {
        Positions::Rotary { theta: 100.0 }
    } else {
        let stored = trunk.shape("pos_embed", 3)?[1];
        let n_before = if stored == grid.0 * grid.1 { 0 } else { n_tokens };
        Positions::Learned { grid, n_before, resize: GridResize::BicubicAntialias }
    };
    let pooling = trunk.pooling(pool, is_dinov3)?;
    let qkv_bias = trunk.qkv_bias();
    let scales = trunk.layer_scales();
    let optional = |name: &str| has(&format!("{name}.weight")).then(|| format!("{at}{name}"));
    let is_first = matches!(pooling, Pooling::First(1));
    let (norm, pooled_norm) = match (optional("norm"), optional("fc_norm")) {
        // With one token, normalisation may come after the pooling.
        (Some(norm), None) if is_first => (None, Some(norm)),
        both => both,
    };
    let names = Names {
        patch: LinearName::with_bias(format!("{at}patch_embed.proj"), has("patch_embed.proj.bias")),
        patch_layout: PatchLayout::Convolution,
        tokens,
        positions: (!is_dinov3).then(|| format!("{at}pos_embed")),
        pre_norm: optional("norm_pre"),
        block: Box::new(move |layer| {
            let block = format!("{at}blocks.{layer}");
            block_names(&block, qkv_bias, scales, is_split)
        }),
        norm,
        pooled_norm,
        pool: (pooling == Pooling::Attention).then(|| trunk.pool_names()),
        projection: None,
    };
    let vit = Vit { size, patch, block, depth, positions, pooling, dim: width };
    Ok(NetworkDescription { architecture: name.to_owned(), vit, names })
}

/// The tensors of a network below a prefix.
struct Trunk<'a> {
    at: &'static str,
    tensors: &'a dyn Tensors,
}

impl Trunk<'_> {
    fn has(&self, tensor: &str) -> bool {
        self.tensors.shape(&format!("{}{tensor}", self.at)).is_some()
    }

    /// The shape of a tensor with this number of dimensions, none of which is 0.
    fn shape(&self, tensor: &str, dimensions: usize) -> Result<Vec<usize>> {
        let tensor = format!("{}{tensor}", self.at);
        let found = self.tensors.shape(&tensor);
        found.clone().filter(|shape| shape.len() == dimensions && !shape.contains(&0)).ok_or_else(|| {
            let found = found.map_or("none".to_owned(), |shape| format!("{shape:?}"));
            let expected = format!("a tensor of {dimensions} dimensions");
            Error::Shape { what: format!("tensor `{tensor}`"), expected, found }
        })
    }

    /// The tensors of tokens before the patches, each with its number of tokens.
    fn tokens(&self) -> Result<Vec<(String, usize)>> {
        let mut tokens = Vec::new();
        for token in ["cls_token", "dist_token", "reg_token"] {
            if self.has(token) {
                tokens.push((format!("{}{token}", self.at), self.shape(token, 3)?[1]));
            }
        }
        Ok(tokens)
    }

    fn pooling(&self, pool: Option<&str>, is_dinov3: bool) -> Result<Pooling> {
        Ok(match pool {
            Some("token") if self.has("dist_token") => Pooling::First(2),
            None if self.has("dist_token") => Pooling::First(2),
            Some("token") => Pooling::First(1),
            Some("avg") => Pooling::Mean,
            Some("map") => Pooling::Attention,
            None if self.has("attn_pool.latent") => Pooling::Attention,
            None if self.has("cls_token") && !is_dinov3 => Pooling::First(1),
            None => Pooling::Mean,
            Some(other) => return Err(wrong("global_pool", "token, avg or map", &other.into())),
        })
    }

    fn qkv_bias(&self) -> QkvBias {
        if self.has("blocks.0.attn.q_bias") {
            QkvBias::Parts
        } else if self.has("blocks.0.attn.qkv.bias") {
            QkvBias::Joined
        } else {
            QkvBias::None
        }
    }

    /// The names of the two layer scales of a block, if it has any.
    fn layer_scales(&self) -> Option<[&'static str; 2]> {
        if self.has("blocks.0.ls1.gamma") {
            Some(["ls1.gamma", "ls2.gamma"])
        } else if self.has("blocks.0.gamma_1") {
            Some(["gamma_1", "gamma_2"])
        } else {
            None
        }
    }

    fn pool_names(&self) -> PoolNames {
        let at = self.at;
        let linear = |name: &str| LinearName::new(format!("{at}{name}"));
        PoolNames {
            query: format!("{at}attn_pool.latent"),
            qkv: LinearName::joined([linear("attn_pool.q"), linear("attn_pool.kv")]),
            output: linear("attn_pool.proj"),
            norm: format!("{at}attn_pool.norm"),
            first: linear("attn_pool.mlp.fc1"),
            second: linear("attn_pool.mlp.fc2"),
        }
    }
}

/// How the bias of queries, keys and values is stored.
#[derive(Clone, Copy)]
enum QkvBias {
    None,
    Joined,
    /// Queries and values have one, keys have none.
    Parts,
}

fn block_names(block: &str, bias: QkvBias, scales: Option<[&str; 2]>, is_split: bool) -> BlockNames {
    let linear = |name: &str| LinearName::new(format!("{block}.{name}"));
    let scale = |at: usize| scales.map(|names| format!("{block}.{}", names[at]));
    BlockNames {
        attention_norm: format!("{block}.norm1"),
        qkv: LinearName {
            weights: vec![format!("{block}.attn.qkv.weight")],
            biases: match bias {
                QkvBias::None => vec![None],
                QkvBias::Joined => vec![Some(format!("{block}.attn.qkv.bias"))],
                QkvBias::Parts => {
                    let part = |name| Some(format!("{block}.attn.{name}"));
                    vec![part("q_bias"), None, part("v_bias")]
                }
            },
            transposed: false,
        },
        output: linear("attn.proj"),
        attention_scale: scale(0),
        mlp_norm: format!("{block}.norm2"),
        first: if is_split {
            LinearName::joined([linear("mlp.fc1_g"), linear("mlp.fc1_x")])
        } else {
            linear("mlp.fc1")
        },
        second: linear("mlp.fc2"),
        mlp_scale: scale(1),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// `tests/golden/make_timm_names.py` asks timm for all of them.
    #[test]
    fn names_stand_for_what_timm_makes_of_them() {
        let path = format!("{}/tests/golden/timm_names.json", env!("CARGO_MANIFEST_DIR"));
        let names: BTreeMap<String, Option<(usize, usize, String, f32)>> =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        for (name, facts) in names {
            let found = known(&name);
            assert_eq!(found.is_some(), facts.is_some(), "{name}");
            let Some((ModelTraits { activation, eps, .. }, (width, n_heads, expected, expected_eps))) =
                found.zip(facts)
            else {
                continue;
            };
            assert_eq!((heads(&name, width), eps), (n_heads, expected_eps), "{name}");
            let activation = match activation {
                Activation::Gelu => "gelu",
                Activation::GeluTanh => "gelu_tanh",
                Activation::QuickGelu => "quick_gelu",
                Activation::Silu => "silu",
            };
            // Gated networks show their kind in their tensors.
            assert!(expected == "silu" || expected == activation, "{name}: {activation}, not {expected}");
        }
    }
}
