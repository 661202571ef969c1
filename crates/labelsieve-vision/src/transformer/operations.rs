//! What a device must be able to do so that a transformer can be walked on it.

use super::config::{Mask, Mlp, Pooling};
use super::tensors::{Linear, Norm};
use crate::error::Result;

/// The few operations that transformers are made of. Activations are rows of numbers, one per token, the sequences of a
/// batch one after the other; who calls owns them and hands them in again, so that their memory is used again.
pub trait Operations: Send {
    /// Rows of numbers on the device.
    type Rows: Default + Send;
    /// A linear layer on the device.
    type Linear: Send;
    /// A normalisation on the device.
    type Norm: Send;

    /// Brings a linear layer to the device.
    fn linear_weights(&self, linear: Linear) -> Result<Self::Linear>;
    /// Brings a normalisation to the device.
    fn norm_weights(&self, norm: Norm) -> Result<Self::Norm>;
    /// Brings rows of `columns` numbers to the device.
    fn upload(&self, values: &[f32], columns: usize, to: &mut Self::Rows) -> Result<()>;
    /// Brings rows back.
    fn download(&self, rows: &Self::Rows) -> Result<Vec<f32>>;

    /// One row per patch of every image, in reading order: its pixels row by row as numbers from 0 to 255, the three
    /// channels of a pixel side by side. Pixels beyond the last whole patch are left out. `pixels`: those of images of `size`
    /// (height and width), one after the other.
    fn patches(
        &mut self,
        size: (usize, usize),
        pixels: &[u8],
        patch: usize,
        out: &mut Self::Rows,
    ) -> Result<()>;
    /// One sequence per image: the rows of `before`, then its patches, to which `positions` are added.
    fn sequences(
        &mut self,
        patches: &Self::Rows,
        before: &Self::Rows,
        positions: &Self::Rows,
        out: &mut Self::Rows,
    ) -> Result<()>;
    /// Normalises every row in place.
    fn normalise(&mut self, norm: &Self::Norm, rows: &mut Self::Rows) -> Result<()>;
    /// `out = linear(norm(rows))`, without the normalisation where there is none.
    fn linear(
        &mut self,
        norm: Option<&Self::Norm>,
        linear: &Self::Linear,
        rows: &Self::Rows,
        out: &mut Self::Rows,
    ) -> Result<()>;
    /// `out += linear(rows)`.
    fn linear_add(&mut self, linear: &Self::Linear, rows: &Self::Rows, out: &mut Self::Rows) -> Result<()>;
    /// `rows += second(f(first(norm(rows))))`.
    fn mlp_add(
        &mut self,
        norm: &Self::Norm,
        mlp: &MlpLayers<Self::Linear>,
        rows: &mut Self::Rows,
    ) -> Result<()>;
    /// Attention within every sequence: rows of queries, keys and values (already scaled by 1/√d) in, rows of values out, one
    /// for each of the first `queries` tokens of a sequence. Queries and keys may be rotated in place.
    fn attention(
        &mut self,
        attention: &Attention<Self::Rows>,
        qkv: &mut Self::Rows,
        out: &mut Self::Rows,
    ) -> Result<()>;
    /// Attention of one and the same query to the rows of keys and values of every sequence of so many tokens, in so many
    /// heads.
    fn attention_pool(
        &mut self,
        tokens_and_heads: (usize, usize),
        query: &Self::Rows,
        keys_values: &Self::Rows,
        out: &mut Self::Rows,
    ) -> Result<()>;
    /// The first `count` rows of every sequence of `tokens`.
    fn first_rows(
        &mut self,
        tokens: usize,
        count: usize,
        rows: &Self::Rows,
        out: &mut Self::Rows,
    ) -> Result<()>;
    /// The average of the rows of every sequence but the first `skipped`.
    fn mean_rows(
        &mut self,
        tokens: usize,
        skipped: usize,
        rows: &Self::Rows,
        out: &mut Self::Rows,
    ) -> Result<()>;
}

/// The small network of a block.
pub struct MlpLayers<L> {
    /// What happens between the layers.
    pub kind: Mlp,
    /// The first layer: gates first, where there are any.
    pub first: L,
    /// The second.
    pub second: L,
}

/// The shape of an attention.
pub struct Attention<'a, R> {
    /// Rows of a sequence.
    pub tokens: usize,
    /// How many of them ask; the first ones.
    pub queries: usize,
    /// Heads.
    pub heads: usize,
    /// Who may look at whom.
    pub mask: Mask,
    /// Half a row of cosines and half a row of sines (width of a head in all) for each of the last tokens of a sequence.
    pub rotation: Option<&'a R>,
}

impl Pooling {
    /// How many tokens of a sequence of `tokens` the last block has to give.
    pub(super) fn queries(self, tokens: usize) -> usize {
        match self {
            Pooling::First(count) => count,
            Pooling::Mean | Pooling::Attention => tokens,
        }
    }
}
