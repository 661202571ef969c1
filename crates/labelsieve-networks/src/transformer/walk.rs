//! Runs a transformer on any device that has the operations.

use super::config::{BlockShape, Mask, Pooling, Vit};
use super::operations::{Attention, BlockBuffers, BlockLayers, MlpLayers, Operations};
use super::tensors::{Tensors, read_norm};
use super::weights::{BlockNames, Names, Normalisation, read_block, read_embedding, read_pool};
use crate::architecture::MAX_SIDE;
use crate::embedder::Embedder;
use crate::error::{Error, Result, Setting};
use crate::learner::Batch;

/// Activations per forward pass: larger batches are split, so that memory is bounded and a GPU computes one part while the next
/// is sent.
const MAX_NUMBERS: usize = 64 << 20;

/// Images with more patches would take gigabytes each: larger sizes are typos.
const MAX_PATCHES: usize = 1 << 17;

/// Maximum number of values in the tokens of one image.
const MAX_POSITIONS: usize = 1 << 28;

/// A stack of blocks with its weights on a device: the part that image and text towers share.
pub struct Encoder<O: Operations> {
    shape: BlockShape,
    blocks: Vec<BlockLayers<O::Linear, O::Norm>>,
    between: BlockBuffers<O::Rows>,
}

/// The division of an encoder's rows into sequences.
pub struct Sequences<'a, R> {
    /// Rows of a sequence.
    pub tokens: usize,
    /// The tokens that a token attends to.
    pub mask: Mask,
    /// Rotations of the last tokens of a sequence ([`Attention::rotation`]).
    pub rotation: Option<&'a R>,
}

impl<O: Operations> Encoder<O> {
    /// Reads `depth` blocks, one after the other, so that none is in memory twice for long.
    pub fn read(
        operations: &O,
        shape: &BlockShape,
        depth: usize,
        names: &dyn Fn(usize) -> BlockNames,
        tensors: &dyn Tensors,
    ) -> Result<Encoder<O>> {
        let read = |at: usize| {
            let weights = read_block(shape, &names(at), tensors)?;
            Ok(BlockLayers {
                attention_norm: operations.norm_weights(weights.attention_norm)?,
                qkv: operations.linear_weights(weights.qkv)?,
                output: operations.linear_weights(weights.output)?,
                mlp_norm: operations.norm_weights(weights.mlp_norm)?,
                mlp: MlpLayers {
                    kind: shape.mlp,
                    first: operations.linear_weights(weights.first)?,
                    second: operations.linear_weights(weights.second)?,
                },
            })
        };
        let blocks = (0..depth).map(read).collect::<Result<_>>()?;
        Ok(Encoder { shape: *shape, blocks, between: BlockBuffers::default() })
    }

    /// Runs all blocks, in place.
    pub fn run(
        &mut self,
        operations: &mut O,
        sequences: &Sequences<O::Rows>,
        rows: &mut O::Rows,
    ) -> Result<()> {
        self.run_for_first(operations, sequences, sequences.tokens, rows)
    }

    /// Runs all blocks, in place; afterwards, only the first `queries` rows of every sequence are left.
    pub fn run_for_first(
        &mut self,
        operations: &mut O,
        sequences: &Sequences<O::Rows>,
        queries: usize,
        rows: &mut O::Rows,
    ) -> Result<()> {
        let &Sequences { tokens, mask, rotation } = sequences;
        let attention = Attention { tokens, queries, heads: self.shape.heads, mask, rotation };
        operations.blocks(&self.blocks, &attention, rows, &mut self.between)
    }
}

/// A vision transformer with its weights on a device, ready for images of one size.
pub struct VisionTransformer<O: Operations> {
    operations: O,
    vit: Vit,
    size: (usize, usize),
    tokens: usize,
    patch: O::Linear,
    before: O::Rows,
    positions: O::Rows,
    rotation: Option<O::Rows>,
    pre_norm: Option<O::Norm>,
    encoder: Encoder<O>,
    norm: Option<O::Norm>,
    pool: Option<Pool<O>>,
    pooled_norm: Option<O::Norm>,
    projection: Option<O::Linear>,
    buffers: Buffers<O::Rows>,
}

struct Pool<O: Operations> {
    query: O::Rows,
    keys_values: O::Linear,
    output: O::Linear,
    norm: O::Norm,
    mlp: MlpLayers<O::Linear>,
}

#[derive(Default)]
struct Buffers<R> {
    pixels: R,
    patches: R,
    rows: R,
    pooled: R,
    spare: R,
}

impl<O: Operations> VisionTransformer<O> {
    /// Reads a transformer for images of `size`.
    pub fn read(
        operations: O,
        description: (&Vit, &Names),
        tensors: &dyn Tensors,
        size: (usize, usize),
        normalisation: &Normalisation,
    ) -> Result<VisionTransformer<O>> {
        let (vit, names) = description;
        let width = vit.block.width;
        let eps = vit.block.eps;
        check_size(size, vit)?;
        let embedding = read_embedding(vit, names, tensors, size, normalisation)?;
        let norm = |name: &Option<String>| -> Result<Option<O::Norm>> {
            let read = |name: &String| operations.norm_weights(read_norm(tensors, name, width, eps)?);
            name.as_ref().map(read).transpose()
        };
        let rows = |values: &[f32], columns: usize| -> Result<O::Rows> {
            let mut rows = O::Rows::default();
            operations.upload(values, columns, &mut rows)?;
            Ok(rows)
        };
        let pool = |names| -> Result<Pool<O>> {
            let weights = read_pool(&vit.block, names, tensors)?;
            Ok(Pool {
                query: rows(&weights.query, width)?,
                keys_values: operations.linear_weights(weights.keys_values)?,
                output: operations.linear_weights(weights.output)?,
                norm: operations.norm_weights(weights.norm)?,
                mlp: MlpLayers {
                    kind: vit.block.mlp,
                    first: operations.linear_weights(weights.first)?,
                    second: operations.linear_weights(weights.second)?,
                },
            })
        };
        let projection = |name: &super::tensors::LinearName| {
            operations.linear_weights(name.read(tensors, width, vit.dim)?)
        };
        let head = width / vit.block.heads;
        Ok(VisionTransformer {
            vit: vit.clone(),
            size,
            tokens: (embedding.before.len() + embedding.positions.len()) / width,
            before: rows(&embedding.before, width)?,
            positions: rows(&embedding.positions, width)?,
            rotation: embedding.rotations.map(|values| rows(&values, head)).transpose()?,
            patch: operations.linear_weights(embedding.patch)?,
            pre_norm: norm(&names.pre_norm)?,
            encoder: Encoder::read(&operations, &vit.block, vit.depth, &*names.block, tensors)?,
            norm: norm(&names.norm)?,
            pool: names.pool.as_ref().map(pool).transpose()?,
            pooled_norm: norm(&names.pooled_norm)?,
            projection: names.projection.as_ref().map(projection).transpose()?,
            buffers: Buffers::default(),
            operations,
        })
    }

    /// The features of these images, still on the device.
    fn part_features(&mut self, pixels_of_images: &[u8]) -> Result<O::Rows> {
        let operations = &mut self.operations;
        let tokens = self.tokens;
        let Buffers { pixels, patches, rows, pooled, spare } = &mut self.buffers;
        operations.patches(self.size, pixels_of_images, self.vit.patch, pixels)?;
        operations.linear(None, &self.patch, pixels, patches)?;
        operations.sequences(patches, &self.before, &self.positions, rows)?;
        if let Some(norm) = &self.pre_norm {
            operations.normalise(norm, rows)?;
        }
        let sequences = Sequences { tokens, mask: Mask::None, rotation: self.rotation.as_ref() };
        let queries = self.vit.pooling.queries(tokens);
        self.encoder.run_for_first(operations, &sequences, queries, rows)?;
        if let Some(norm) = &self.norm {
            operations.normalise(norm, rows)?;
        }
        match (self.vit.pooling, &self.pool) {
            (Pooling::Attention, Some(pool)) => {
                operations.linear(None, &pool.keys_values, rows, patches)?;
                let heads = self.vit.block.heads;
                operations.attention_pool(tokens, heads, &pool.query, patches, spare)?;
                operations.linear(None, &pool.output, spare, pooled)?;
                operations.mlp_add(&pool.norm, &pool.mlp, pooled)?;
            }
            (Pooling::First(1), _) => std::mem::swap(rows, pooled),
            (Pooling::First(count), _) => operations.mean_rows(count, 0, rows, pooled)?,
            (Pooling::Mean | Pooling::Attention, _) => {
                let grid = (self.size.0 / self.vit.patch) * (self.size.1 / self.vit.patch);
                operations.mean_rows(tokens, tokens - grid, rows, pooled)?;
            }
        }
        if let Some(norm) = &self.pooled_norm {
            operations.normalise(norm, pooled)?;
        }
        match &self.projection {
            None => Ok(std::mem::take(pooled)),
            Some(projection) => {
                operations.linear(None, projection, pooled, spare)?;
                Ok(std::mem::take(spare))
            }
        }
    }
}

/// Rejects images that are smaller than a patch, and those whose tokens would not fit in memory.
fn check_size(size: (usize, usize), vit: &Vit) -> Result<()> {
    let (height, width) = size;
    let patch = vit.patch;
    let max_patches = MAX_PATCHES.min(MAX_POSITIONS / vit.block.width.max(1)).max(1);
    let max_side = MAX_SIDE.min(patch * max_patches.isqrt());
    let expected = if height.min(width) < patch {
        format!("at least one patch of {patch}×{patch}")
    } else if height.max(width) > max_side {
        format!("at most {max_side} pixels per side")
    } else {
        return Ok(());
    };
    Err(Error::Setting { name: Setting::ImageSize, expected, found: format!("{height}×{width}") })
}

impl<O: Operations> Embedder for VisionTransformer<O> {
    fn dim(&self) -> usize {
        self.vit.dim
    }

    fn features(&mut self, images: &Batch) -> Result<Vec<f32>> {
        if images.size() != self.size {
            return Err(Error::Shape {
                what: "images".to_owned(),
                expected: format!("{}×{}", self.size.0, self.size.1),
                found: format!("{}×{}", images.size().0, images.size().1),
            });
        }
        let most = (MAX_NUMBERS / (5 * self.vit.block.width * self.tokens)).max(1);
        let part = images.len().div_ceil(images.len().div_ceil(most).max(1)).max(1); // all about as large
        let bytes = 3 * self.size.0 * self.size.1;
        let parts = images.pixels().chunks(part * bytes);
        let parts = parts.map(|pixels| self.part_features(pixels)).collect::<Result<Vec<O::Rows>>>()?;
        let mut features = Vec::with_capacity(images.len() * self.vit.dim);
        for part in &parts {
            features.extend(self.operations.download(part)?);
        }
        Ok(features)
    }
}
