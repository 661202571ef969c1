//! The families of vision transformers, one file per naming scheme: from a configuration and the names of tensors to a
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

pub use self::text::{TEXT_ARCHITECTURES, TextDescription, describe_text};

use self::settings::Settings;
use super::config::{Positions, Vit};
use super::tensors::Tensors;
use super::weights::Names;
use crate::error::{Error, Result, Setting};

/// A vision transformer as a folder describes it.
pub struct NetworkDescription {
    /// The name of its architecture, in the configuration's words.
    pub architecture: String,
    /// Its configuration.
    pub vit: Vit,
    /// The names of its tensors.
    pub names: Names,
}

/// The architectures that work, as messages name them.
pub const ARCHITECTURES: &str = "clip, siglip, siglip2, dinov2, dinov2_with_registers, dinov3_vit, vit, deit (`model_type`), \
    OpenCLIP's vision transformers (`model_cfg`), or timm's vit_*, deit_* and deit3_* (`architecture`)";

/// The family of a configuration.
#[derive(Clone, Copy)]
enum Family<'a> {
    Clip,
    Siglip,
    Dinov2,
    Dinov3,
    Vit,
    /// With the name of the model, which says more than its configuration.
    Timm(&'a str),
    OpenClip,
}

impl Family<'_> {
    fn of(config: &Value) -> Result<Family<'_>> {
        if config.get("model_cfg").is_some() {
            return Ok(Family::OpenClip);
        }
        let model_type = config.get("model_type").and_then(Value::as_str);
        Ok(match (model_type, config.get("architecture").and_then(Value::as_str)) {
            (Some("clip" | "clip_vision_model"), _) => Family::Clip,
            (Some("siglip" | "siglip_vision_model" | "siglip2" | "siglip2_vision_model"), _) => {
                Family::Siglip
            }
            (Some("dinov2" | "dinov2_with_registers"), _) => Family::Dinov2,
            (Some("dinov3_vit"), _) => Family::Dinov3,
            (Some("vit" | "deit"), _) => Family::Vit,
            (None | Some("timm_wrapper"), Some(name)) => Family::Timm(name),
            (Some(other), _) => return Err(unknown(other)),
            (None, None) => {
                return Err(unknown("a configuration without `model_type`, `architecture` or `model_cfg`"));
            }
        })
    }
}

/// Rejects a configuration of an unsupported architecture, before anything else in it is read.
pub fn check_architecture(config: &Value) -> Result<()> {
    Family::of(config).map(|_| ())
}

/// Reads a configuration: `config.json` of `transformers` or timm, or `open_clip_config.json`.
pub fn describe(config: &Value, tensors: &dyn Tensors) -> Result<NetworkDescription> {
    let settings = Settings(config);
    let described = match Family::of(config)? {
        Family::Clip => clip::describe(settings, tensors),
        Family::Siglip => siglip::describe(settings, tensors),
        Family::Dinov2 => dinov2::describe(settings, tensors),
        Family::Dinov3 => dinov3::describe(settings, tensors),
        Family::Vit => vit::describe(settings, tensors),
        Family::Timm(name) => timm::describe(name, settings, tensors),
        Family::OpenClip => open_clip::describe(settings, tensors),
    }?;
    check(&described.vit)?;
    Ok(described)
}

/// Checks that apply to every family.
fn check(vit: &Vit) -> Result<()> {
    let wrong = |what: &str, expected: String, found: String| {
        Err(Error::Shape { what: format!("{what} in the configuration"), expected, found })
    };
    let (height, width) = vit.size;
    if height.min(width) < vit.patch {
        let expected = format!("at least one patch of {0}×{0}", vit.patch);
        return wrong("size of images", expected, format!("{height}×{width}"));
    }
    let head = vit.block.width / vit.block.heads;
    if matches!(vit.positions, Positions::Rotary { .. }) && !head.is_multiple_of(4) {
        let expected = "a multiple of 4: pairs for rows and for columns".to_owned();
        return wrong("numbers per attention head", expected, head.to_string());
    }
    Ok(())
}

/// The error for an unsupported architecture.
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
