//! The families of vision transformers, one file per way of naming things: from a configuration and the names of tensors to a
//! [`Vit`] and its [`Names`].

mod clip;
mod dinov2;
mod dinov3;
mod open_clip;
mod settings;
mod siglip;
mod text;
mod timm;
mod vit;

use serde_json::Value;

use self::settings::Settings;
use super::config::Vit;
use super::tensors::Tensors;
use super::weights::Names;
use crate::error::{Error, Result, Setting};

pub use self::clip::encoder_layer;
pub use self::text::{DescribedText, TEXT_ARCHITECTURES, describe_text};

/// A vision transformer as a folder describes it.
pub struct Described {
    /// The name of its architecture, in the configuration's words.
    pub architecture: String,
    /// What it is made of.
    pub vit: Vit,
    /// What its tensors are called.
    pub names: Names,
}

/// The architectures that work, as messages name them.
pub const ARCHITECTURES: &str = "clip, siglip, siglip2, dinov2, dinov2_with_registers, dinov3_vit, vit, deit (`model_type`), \
    OpenCLIP's vision transformers (`model_cfg`), or timm's vit_*, deit_* and deit3_* (`architecture`)";

/// Finds out what a configuration means: `config.json` of `transformers` or timm, or `open_clip_config.json`.
pub fn describe(config: &Value, tensors: &dyn Tensors) -> Result<Described> {
    let settings = Settings(config);
    if config.get("model_cfg").is_some() {
        return open_clip::describe(settings, tensors);
    }
    let model_type = config.get("model_type").and_then(Value::as_str);
    match (model_type, config.get("architecture").and_then(Value::as_str)) {
        (Some("clip" | "clip_vision_model"), _) => clip::describe(settings, tensors),
        (Some("siglip" | "siglip_vision_model" | "siglip2" | "siglip2_vision_model"), _) => {
            siglip::describe(settings, tensors)
        }
        (Some("dinov2" | "dinov2_with_registers"), _) => dinov2::describe(settings, tensors),
        (Some("dinov3_vit"), _) => dinov3::describe(settings, tensors),
        (Some("vit" | "deit"), _) => vit::describe(settings, tensors),
        (None | Some("timm_wrapper"), Some(name)) => timm::describe(name, settings, tensors),
        (Some(other), _) => Err(unknown(other)),
        (None, None) => Err(unknown("a configuration without `model_type`, `architecture` or `model_cfg`")),
    }
}

/// An architecture that is none of ours.
fn unknown(found: &str) -> Error {
    Error::Setting {
        name: Setting::Architecture,
        expected: ARCHITECTURES.to_owned(),
        found: found.to_owned(),
    }
}

/// The first of these prefixes under which there is such a tensor; the first of all if there is none.
fn prefix(tensors: &dyn Tensors, prefixes: &[&'static str], name: &str) -> &'static str {
    let found = prefixes.iter().find(|prefix| tensors.shape(&format!("{prefix}{name}")).is_some());
    found.or(prefixes.first()).copied().unwrap_or_default()
}
