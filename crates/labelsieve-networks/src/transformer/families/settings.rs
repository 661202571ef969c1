//! Numbers and words of a configuration, with the family's own values where it leaves them out.

use serde_json::Value;

use crate::error::{Error, Result};
use crate::transformer::config::{Activation, BlockShape, Mlp};

/// A configuration, or a part of one.
#[derive(Clone, Copy)]
pub(super) struct Settings<'a>(pub &'a Value);

/// An empty configuration: all is as usual.
static NOTHING: Value = Value::Null;

/// Widths, layers and tokens of any reasonable network, with much to spare. Larger numbers are typos, and would overflow.
const MAX_COUNT: usize = 1 << 20;
/// The same for pixels along a side.
const MAX_SIDE: usize = 1 << 14;

impl<'a> Settings<'a> {
    /// A part of it; empty where it has none.
    pub fn part(self, name: &str) -> Result<Settings<'a>> {
        match self.known(name) {
            None => Ok(Settings(&NOTHING)),
            Some(part) if part.is_object() => Ok(Settings(part)),
            Some(other) => Err(wrong(name, "an object", other)),
        }
    }

    fn known(self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub fn has(self, name: &str) -> bool {
        self.known(name).is_some()
    }

    /// A positive integer that fits any reasonable network.
    pub fn count(self, name: &str, usual: usize) -> Result<usize> {
        let Some(value) = self.known(name) else { return Ok(usual) };
        let count = value.as_u64().map(|n| n as usize).filter(|n| (1..=MAX_COUNT).contains(n));
        count.ok_or_else(|| wrong(name, &format!("an integer from 1 to {MAX_COUNT}"), value))
    }

    pub fn count_or_zero(self, name: &str, usual: usize) -> Result<usize> {
        match self.known(name).and_then(Value::as_u64) {
            Some(0) => Ok(0),
            _ => self.count(name, usual),
        }
    }

    pub fn number(self, name: &str, usual: f64) -> Result<f64> {
        let Some(value) = self.known(name) else { return Ok(usual) };
        let number = value.as_f64().filter(|n| n.is_finite() && *n > 0.0);
        number.ok_or_else(|| wrong(name, "a positive number", value))
    }

    /// `mlp_ratio` times a width.
    pub fn mlp_width(self, width: usize) -> Result<usize> {
        let mlp_width = width as f64 * self.number("mlp_ratio", 4.0)?;
        if (1.0..=MAX_COUNT as f64).contains(&mlp_width) {
            Ok(mlp_width as usize)
        } else {
            let expected = format!("a ratio for 1 to {MAX_COUNT} numbers, with a width of {width}");
            Err(wrong("mlp_ratio", &expected, self.0.get("mlp_ratio").unwrap_or(&NOTHING)))
        }
    }

    pub fn flag(self, name: &str, usual: bool) -> Result<bool> {
        let Some(value) = self.known(name) else { return Ok(usual) };
        value.as_bool().ok_or_else(|| wrong(name, "true or false", value))
    }

    pub fn word(self, name: &str, usual: &'a str) -> Result<&'a str> {
        let Some(value) = self.known(name) else { return Ok(usual) };
        value.as_str().ok_or_else(|| wrong(name, "a text", value))
    }

    /// One side for both, or height and width.
    pub fn sides(self, name: &str, usual: usize) -> Result<(usize, usize)> {
        match self.known(name) {
            None => Ok((usual, usual)),
            Some(value) => {
                let both = match value.as_array().map(Vec::as_slice) {
                    Some([height, width]) => side(height).zip(side(width)),
                    Some(_) => None,
                    None => side(value).map(|n| (n, n)),
                };
                let expected = format!("one side, or height and width, from 1 to {MAX_SIDE}");
                both.ok_or_else(|| wrong(name, &expected, value))
            }
        }
    }

    /// The side of square patches.
    pub fn patch(self, usual: usize) -> Result<usize> {
        match self.sides("patch_size", usual)? {
            (height, width) if height == width => Ok(height),
            _ => Err(wrong("patch_size", "square patches", self.0.get("patch_size").unwrap_or(&NOTHING))),
        }
    }

    pub fn activation(self, usual: &'a str) -> Result<Activation> {
        match self.word("hidden_act", usual)? {
            "gelu" => Ok(Activation::Gelu),
            "gelu_pytorch_tanh" | "gelu_new" | "gelu_fast" => Ok(Activation::GeluTanh),
            "quick_gelu" => Ok(Activation::QuickGelu),
            "silu" | "swish" => Ok(Activation::Silu),
            _ => {
                let expected = "gelu, gelu_pytorch_tanh, quick_gelu or silu";
                Err(wrong("hidden_act", expected, self.0.get("hidden_act").unwrap_or(&NOTHING)))
            }
        }
    }

    /// The shape of blocks, by the settings of `transformers`.
    pub fn block(self, usual: FamilyDefaults<'a>) -> Result<(BlockShape, usize)> {
        let block = BlockShape {
            width: self.count("hidden_size", usual.width)?,
            heads: self.count("num_attention_heads", usual.heads)?,
            mlp_width: self.count("intermediate_size", usual.mlp_width)?,
            mlp: Mlp::Plain(self.activation(usual.activation)?),
            eps: self.number("layer_norm_eps", usual.eps)? as f32,
        };
        check_heads(&block)?;
        Ok((block, self.count("num_hidden_layers", usual.depth)?))
    }
}

/// The defaults of a family.
pub(super) struct FamilyDefaults<'a> {
    pub width: usize,
    pub heads: usize,
    pub mlp_width: usize,
    pub depth: usize,
    pub activation: &'a str,
    pub eps: f64,
}

/// The values of a base network.
pub(super) const BASE: FamilyDefaults<'static> =
    FamilyDefaults { width: 768, heads: 12, mlp_width: 3072, depth: 12, activation: "gelu", eps: 1e-6 };

/// Pixels along a side.
pub(super) fn side(value: &Value) -> Option<usize> {
    value.as_u64().map(|n| n as usize).filter(|n| (1..=MAX_SIDE).contains(n))
}

/// Checks that the number of heads divides the width.
pub(super) fn check_heads(block: &BlockShape) -> Result<()> {
    if block.width.is_multiple_of(block.heads) {
        return Ok(());
    }
    Err(Error::Shape {
        what: "attention heads in the configuration".to_owned(),
        expected: format!("a divisor of the width {}", block.width),
        found: block.heads.to_string(),
    })
}

pub(super) fn wrong(name: &str, expected: &str, found: &Value) -> Error {
    Error::Shape {
        what: format!("`{name}` in the configuration"),
        expected: expected.to_owned(),
        found: found.to_string(),
    }
}
