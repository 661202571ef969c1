//! The operations that a device provides to run a transformer.

use super::config::{Mask, Mlp, Pooling};
use super::tensors::{Linear, Norm};
use crate::error::Result;

/// The operations of a transformer. Activations are rows of numbers, one per token, with the sequences of a batch one after the
/// other. The caller owns them and passes them in again, so that their memory is reused.
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
    /// Attention of one shared query to the keys and values of every sequence, for this number of tokens and heads.
    fn attention_pool(
        &mut self,
        tokens: usize,
        heads: usize,
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

    /// Runs all blocks, in place. Afterwards only the first `attention.queries` rows of every sequence are left: the last block
    /// skips the others.
    fn blocks(
        &mut self,
        blocks: &[BlockLayers<Self::Linear, Self::Norm>],
        attention: &Attention<Self::Rows>,
        rows: &mut Self::Rows,
        between: &mut BlockBuffers<Self::Rows>,
    ) -> Result<()>
    where
        Self: Sized,
    {
        block_by_block(self, blocks, attention, rows, between)
    }
}

/// [`Operations::blocks`] by the other operations.
pub(super) fn block_by_block<O: Operations>(
    operations: &mut O,
    blocks: &[BlockLayers<O::Linear, O::Norm>],
    attention: &Attention<O::Rows>,
    rows: &mut O::Rows,
    BlockBuffers { qkv, attended }: &mut BlockBuffers<O::Rows>,
) -> Result<()> {
    let &Attention { tokens, heads, mask, rotation, .. } = attention;
    let last = blocks.len().saturating_sub(1);
    for (at, block) in blocks.iter().enumerate() {
        let queries = if at == last { attention.queries } else { tokens };
        operations.linear(Some(&block.attention_norm), &block.qkv, rows, qkv)?;
        let attention = Attention { tokens, queries, heads, mask, rotation };
        operations.attention(&attention, qkv, attended)?;
        if queries < tokens {
            let mut first = O::Rows::default();
            operations.first_rows(tokens, queries, rows, &mut first)?;
            *rows = first;
        }
        operations.linear_add(&block.output, attended, rows)?;
        operations.mlp_add(&block.mlp_norm, &block.mlp, rows)?;
    }
    Ok(())
}

/// A block: `x += output(attention(qkv(norm(x))))`, then its MLP.
pub struct BlockLayers<L, N> {
    /// Before the attention.
    pub attention_norm: N,
    /// Queries, keys and values.
    pub qkv: L,
    /// After the attention.
    pub output: L,
    /// Before the MLP.
    pub mlp_norm: N,
    /// The MLP.
    pub mlp: MlpLayers<L>,
}

/// Intermediate results of a block, kept to reuse their memory.
#[derive(Default)]
pub struct BlockBuffers<R> {
    /// Queries, keys and values.
    pub qkv: R,
    /// The result of the attention.
    pub attended: R,
}

/// The MLP of a block.
pub struct MlpLayers<L> {
    /// The function between the layers.
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
    /// The number of queries, from the first token on.
    pub queries: usize,
    /// Heads.
    pub heads: usize,
    /// Which tokens attend to which.
    pub mask: Mask,
    /// Half a row of cosines and half a row of sines (width of a head in all) for each of the last tokens of a sequence.
    pub rotation: Option<&'a R>,
}

impl Pooling {
    /// The number of tokens that pooling needs from the last block.
    pub(super) fn queries(self, tokens: usize) -> usize {
        match self {
            Pooling::First(count) => count,
            Pooling::Mean | Pooling::Attention => tokens,
        }
    }
}
