//! The tensor names of a transformer, and how its weights are read.

use super::config::{BlockShape, Mlp, Positions, Vit};
use super::positions::{resize_grid, rotations};
use super::tensors::{Linear, LinearName, Norm, Tensors, read, read_norm, read_rows};
use crate::error::{Error, Result};

/// The tensor names of a vision transformer.
pub struct Names {
    /// The layer that turns patches into tokens.
    pub patch: LinearName,
    /// How its weights are stored.
    pub patch_layout: PatchLayout,
    /// Tokens before the patches, in order: a tensor each, and how many tokens it has.
    pub tokens: Vec<(String, usize)>,
    /// Learned positions.
    pub positions: Option<String>,
    /// A normalisation before the first block (CLIP).
    pub pre_norm: Option<String>,
    /// The parts of a block.
    pub block: Box<dyn Fn(usize) -> BlockNames>,
    /// A normalisation of all tokens after the last block.
    pub norm: Option<String>,
    /// A normalisation of the pooled feature.
    pub pooled_norm: Option<String>,
    /// The parts of attention pooling.
    pub pool: Option<PoolNames>,
    /// A last linear layer.
    pub projection: Option<LinearName>,
}

/// How the weights of the layer for patches are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchLayout {
    /// As those of a convolution: output, channel, row, column.
    Convolution,
    /// Output, then row, column and channel in one dimension.
    Rows,
}

/// The tensor names of a block.
pub struct BlockNames {
    /// The normalisation before attention.
    pub attention_norm: String,
    /// Queries, keys and values.
    pub qkv: LinearName,
    /// The layer after the attention.
    pub output: LinearName,
    /// A factor per number of the attention's output (LayerScale).
    pub attention_scale: Option<String>,
    /// The normalisation before the MLP.
    pub mlp_norm: String,
    /// Its first layer; gates first, where there are any.
    pub first: LinearName,
    /// Its second.
    pub second: LinearName,
    /// A factor per number of its output.
    pub mlp_scale: Option<String>,
}

/// The tensor names of attention pooling.
pub struct PoolNames {
    /// The learned query.
    pub query: String,
    /// Queries, keys and values.
    pub qkv: LinearName,
    /// The layer after the attention.
    pub output: LinearName,
    /// The normalisation before the MLP.
    pub norm: String,
    /// Its layers.
    pub first: LinearName,
    /// The second.
    pub second: LinearName,
}

/// How pixels become numbers: (pixel · scale - mean) / deviation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Normalisation {
    /// Usually 1/255.
    pub scale: f64,
    /// Of each channel.
    pub mean: [f64; 3],
    /// Of each channel.
    pub deviation: [f64; 3],
}

impl Default for Normalisation {
    fn default() -> Normalisation {
        Normalisation { scale: 1.0 / 255.0, mean: [0.0; 3], deviation: [1.0; 3] }
    }
}

/// The weights before the blocks, for images of one size.
pub(super) struct Embedding {
    /// From the pixels of a patch, as numbers from 0 to 255, to a token; without its bias.
    pub patch: Linear,
    /// Tokens before the patches, their positions added.
    pub before: Vec<f32>,
    /// Added to each patch: its position and the bias.
    pub positions: Vec<f32>,
    /// Rotations of patches, for rotary positions.
    pub rotations: Option<Vec<f32>>,
}

pub(super) fn read_embedding(
    vit: &Vit,
    names: &Names,
    tensors: &dyn Tensors,
    size: (usize, usize),
    normalisation: &Normalisation,
) -> Result<Embedding> {
    let width = vit.block.width;
    let grid = (size.0 / vit.patch, size.1 / vit.patch);
    let (patch, bias) = read_patch(vit, names, tensors, normalisation)?;
    let mut before = Vec::new();
    for (name, count) in &names.tokens {
        before.extend(read_rows(tensors, name, *count, width)?);
    }
    let mut positions = match (vit.positions, &names.positions) {
        (Positions::Learned { grid: learned, n_before, resize }, Some(name)) => {
            let all = read_rows(tensors, name, n_before + learned.0 * learned.1, width)?;
            let (first, patches) = all.split_at(n_before * width);
            before.iter_mut().zip(first).for_each(|(token, position)| *token += position);
            resize_grid(patches, width, learned, grid, resize)
        }
        _ => vec![0.0; grid.0 * grid.1 * width],
    };
    for row in positions.chunks_exact_mut(width) {
        row.iter_mut().zip(&bias).for_each(|(position, bias)| *position += bias);
    }
    let rotations = match vit.positions {
        Positions::Rotary { theta } => Some(rotations(grid, width / vit.block.heads, theta)),
        Positions::Learned { .. } => None,
    };
    Ok(Embedding { patch, before, positions, rotations })
}

/// The layer for patches with the normalisation of pixels in it, and its bias.
fn read_patch(
    vit: &Vit,
    names: &Names,
    tensors: &dyn Tensors,
    normalisation: &Normalisation,
) -> Result<(Linear, Vec<f32>)> {
    let width = vit.block.width;
    let patch = vit.patch;
    let inputs = 3 * patch * patch;
    let pixels = patch * patch;
    let name = &names.patch.weights[0];
    let stored = match names.patch_layout {
        PatchLayout::Convolution => read(tensors, name, &[width, 3, patch, patch])?,
        PatchLayout::Rows => read(tensors, name, &[width, inputs])?,
    };
    let mut bias = match &names.patch.biases[0] {
        Some(name) => read(tensors, name, &[width])?,
        None => vec![0.0; width],
    };
    let mut weight = vec![0.0; width * inputs];
    let Normalisation { scale, mean, deviation } = *normalisation;
    for (output, (to, from)) in weight.chunks_exact_mut(inputs).zip(stored.chunks_exact(inputs)).enumerate() {
        let mut shift = 0f64;
        for pixel in 0..pixels {
            for channel in 0..3 {
                let value = f64::from(match names.patch_layout {
                    PatchLayout::Convolution => from[channel * pixels + pixel],
                    PatchLayout::Rows => from[pixel * 3 + channel],
                });
                to[pixel * 3 + channel] = (value * scale / deviation[channel]) as f32;
                shift += value * mean[channel] / deviation[channel];
            }
        }
        bias[output] = (f64::from(bias[output]) - shift) as f32;
    }
    Ok((Linear { inputs, outputs: width, weight, bias: vec![0.0; width] }, bias))
}

/// The numbers of a block. Attention's factor 1/√d is in the queries, layer scales in the layers before them.
pub(super) struct BlockWeights {
    pub attention_norm: Norm,
    pub qkv: Linear,
    pub output: Linear,
    pub mlp_norm: Norm,
    pub first: Linear,
    pub second: Linear,
}

pub(super) fn read_block(
    shape: &BlockShape,
    names: &BlockNames,
    tensors: &dyn Tensors,
) -> Result<BlockWeights> {
    let &BlockShape { width, heads, mlp_width, mlp, eps } = shape;
    let scaled = |linear: Linear, name: &Option<String>| -> Result<Linear> {
        Ok(match name {
            Some(name) => linear.scaled(&read(tensors, name, &[width])?),
            None => linear,
        })
    };
    let first_width = match mlp {
        Mlp::Plain(_) => mlp_width,
        Mlp::Gated(_) => 2 * mlp_width,
    };
    Ok(BlockWeights {
        attention_norm: read_norm(tensors, &names.attention_norm, width, eps)?,
        qkv: with_scaled_queries(names.qkv.read(tensors, width, 3 * width)?, width, heads),
        output: scaled(names.output.read(tensors, width, width)?, &names.attention_scale)?,
        mlp_norm: read_norm(tensors, &names.mlp_norm, width, eps)?,
        first: names.first.read(tensors, width, first_width)?,
        second: scaled(names.second.read(tensors, mlp_width, width)?, &names.mlp_scale)?,
    })
}

/// Queries times 1/√d, with d the width of a head.
fn with_scaled_queries(qkv: Linear, width: usize, heads: usize) -> Linear {
    let factor = 1.0 / ((width / heads) as f32).sqrt();
    let factors: Vec<f32> = (0..qkv.outputs).map(|i| if i < width { factor } else { 1.0 }).collect();
    qkv.scaled(&factors)
}

/// The numbers of attention pooling. The query is the same for all images, so its layer is applied here.
pub(super) struct PoolWeights {
    pub query: Vec<f32>,
    pub keys_values: Linear,
    pub output: Linear,
    pub norm: Norm,
    pub first: Linear,
    pub second: Linear,
}

pub(super) fn read_pool(shape: &BlockShape, names: &PoolNames, tensors: &dyn Tensors) -> Result<PoolWeights> {
    let &BlockShape { width, heads, mlp_width, eps, mlp } = shape;
    if let Mlp::Gated(_) = mlp {
        return Err(Error::Shape {
            what: "attention pooling".to_owned(),
            expected: "blocks without gates".to_owned(),
            found: "gated ones".to_owned(),
        });
    }
    let qkv = with_scaled_queries(names.qkv.read(tensors, width, 3 * width)?, width, heads);
    let learned = read_rows(tensors, &names.query, 1, width)?;
    let query = qkv.weight.chunks_exact(width).zip(&qkv.bias).take(width).map(|(row, &bias)| {
        let products = row.iter().zip(&learned).map(|(&a, &b)| f64::from(a) * f64::from(b));
        (products.sum::<f64>() + f64::from(bias)) as f32
    });
    Ok(PoolWeights {
        query: query.collect(),
        keys_values: Linear {
            inputs: width,
            outputs: 2 * width,
            weight: qkv.weight[width * width..].to_vec(),
            bias: qkv.bias[width..].to_vec(),
        },
        output: names.output.read(tensors, width, width)?,
        norm: read_norm(tensors, &names.norm, width, eps)?,
        first: names.first.read(tensors, width, mlp_width)?,
        second: names.second.read(tensors, mlp_width, width)?,
    })
}
