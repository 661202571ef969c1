//! Text towers of the families that have them: from a configuration to a [`Text`] and its [`TextNames`].

use serde_json::Value;

use super::clip::encoder_layer;
use super::open_clip::{activation, block_names};
use super::prefix;
use super::settings::{BASE, FamilyDefaults, Settings, check_heads, wrong};
use crate::error::{Error, Result, Setting};
use crate::transformer::config::{BlockShape, Mask, Mlp};
use crate::transformer::tensors::{LinearName, Tensors};
use crate::transformer::text::{Text, TextNames, TextPooling};

/// A text tower as a folder describes it.
pub struct TextDescription {
    /// The name of its architecture.
    pub architecture: &'static str,
    /// Its configuration.
    pub text: Text,
    /// The names of its tensors.
    pub names: TextNames,
}

/// The architectures that have one, as messages name them.
pub const TEXT_ARCHITECTURES: &str =
    "clip, siglip or siglip2 (`model_type`), or OpenCLIP's own text towers (`model_cfg`)";

/// Reads a configuration: `config.json` of `transformers`, or `open_clip_config.json`.
pub fn describe_text(config: &Value, tensors: &dyn Tensors) -> Result<TextDescription> {
    let settings = Settings(config);
    if config.get("model_cfg").is_some() {
        return open_clip(settings, tensors);
    }
    match config.get("model_type").and_then(Value::as_str) {
        Some("clip") => clip(settings, tensors),
        Some("siglip" | "siglip2") => siglip(settings),
        Some(other) => Err(unknown_text(other)),
        None => Err(unknown_text("a configuration without `model_type` or `model_cfg`")),
    }
}

/// The error for an architecture without a supported text tower.
fn unknown_text(found: &str) -> Error {
    Error::Setting {
        name: Setting::Architecture,
        expected: format!("one with a text tower: {TEXT_ARCHITECTURES}"),
        found: found.to_owned(),
    }
}

/// `get_text_features` of CLIP.
fn clip(config: Settings, tensors: &dyn Tensors) -> Result<TextDescription> {
    let text = config.part("text_config")?;
    let usual = FamilyDefaults {
        width: 512,
        heads: 8,
        mlp_width: 2048,
        depth: 12,
        activation: "quick_gelu",
        eps: 1e-5,
    };
    let (block, depth) = text.block(usual)?;
    // Files from before 2023 say 2, which is not the end of a text in CLIP's vocabulary.
    let pooling = match text.count_or_zero("eos_token_id", 49_407)? {
        2 => TextPooling::Largest,
        end => TextPooling::First(end as u32),
    };
    let at = prefix(tensors, &["text_model.", ""], "embeddings.token_embedding.weight");
    Ok(TextDescription {
        architecture: "clip",
        text: Text {
            block,
            depth,
            vocabulary: text.count("vocab_size", 49_408)?,
            context: text.count("max_position_embeddings", 77)?,
            mask: Mask::Causal,
            pooling,
            dim: config.count("projection_dim", 512)?,
        },
        names: TextNames {
            projection: Some(LinearName::with_bias("text_projection", false)),
            ..transformers_names(at)
        },
    })
}

/// `get_text_features` of SigLIP and SigLIP 2, which is the pooled output.
fn siglip(config: Settings) -> Result<TextDescription> {
    let text = config.part("text_config")?;
    let (block, depth) = text.block(FamilyDefaults { activation: "gelu_pytorch_tanh", ..BASE })?;
    Ok(TextDescription {
        architecture: "siglip",
        text: Text {
            block,
            depth,
            vocabulary: text.count("vocab_size", 32_000)?,
            context: text.count("max_position_embeddings", 64)?,
            mask: Mask::None,
            pooling: TextPooling::Last,
            dim: text.count("projection_size", block.width)?,
        },
        names: TextNames {
            projection: Some(LinearName::new("text_model.head")),
            ..transformers_names("text_model.")
        },
    })
}

/// The tensor names of `transformers`, without the last layer.
fn transformers_names(at: &'static str) -> TextNames {
    TextNames {
        tokens: format!("{at}embeddings.token_embedding.weight"),
        positions: format!("{at}embeddings.position_embedding.weight"),
        block: Box::new(move |layer| encoder_layer(&format!("{at}encoder.layers.{layer}"))),
        norm: format!("{at}final_layer_norm"),
        projection: None,
    }
}

/// `encode_text` of OpenCLIP's own towers.
fn open_clip(config: Settings, tensors: &dyn Tensors) -> Result<TextDescription> {
    let model = config.part("model_cfg")?;
    let text = model.part("text_cfg")?;
    for (name, expected) in [
        ("hf_model_name", "a text tower of OpenCLIP itself"),
        ("embed_cls", "no class token"),
        ("no_causal_mask", "tokens that do not look ahead"),
    ] {
        if let Some(found) = text.0.get(name).filter(|value| !value.is_null() && **value != false) {
            return Err(wrong(name, expected, found));
        }
    }
    if text.word("pool_type", "argmax")? != "argmax" {
        return Err(wrong("pool_type", "argmax", &text.0["pool_type"]));
    }
    let width = text.count("width", 512)?;
    let block = BlockShape {
        width,
        heads: text.count("heads", 8)?,
        mlp_width: text.mlp_width(width)?,
        mlp: Mlp::Plain(activation(model, text)?),
        eps: text.part("norm_kwargs")?.number("eps", 1e-5)? as f32,
    };
    check_heads(&block)?;
    let at = prefix(tensors, &["", "text."], "token_embedding.weight");
    let has_scale = text.has("ls_init_value");
    Ok(TextDescription {
        architecture: "open_clip",
        text: Text {
            block,
            depth: text.count("layers", 12)?,
            vocabulary: text.count("vocab_size", 49_408)?,
            context: text.count("context_length", 77)?,
            mask: Mask::Causal,
            pooling: TextPooling::Largest,
            dim: model.count("embed_dim", 512)?,
        },
        names: TextNames {
            tokens: format!("{at}token_embedding.weight"),
            positions: format!("{at}positional_embedding"),
            block: Box::new(move |layer| {
                block_names(&format!("{at}transformer.resblocks.{layer}"), has_scale)
            }),
            norm: format!("{at}ln_final"),
            projection: Some(LinearName {
                weights: vec![format!("{at}text_projection")],
                biases: vec![None],
                transposed: true,
            }),
        },
    })
}
