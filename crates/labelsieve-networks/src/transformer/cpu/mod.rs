//! Transformers on the CPU, with the threads of the current rayon pool.
//!
//! Linear layers (`product.rs`) and attention (`attention.rs`) are products of packed panels by the register tile of `tile.rs`;
//! `functions.rs` has the functions of single rows.

mod attention;
mod functions;
mod product;
mod spares;
mod tile;
mod transpose;

use std::sync::Arc;

use labelsieve_numerics::level::Level;
use rayon::prelude::*;

pub use self::product::PackedLinear;

use self::attention::{AttentionInputs, AttentionScratch, AttentionShape, attend, rotate_rows};
use self::functions::{activate, add, gate, normalise, normalise_into, scale};
use self::product::{DEPTH, Factors};
use self::spares::BufferPool;
use self::tile::{Store, TileShape};
use super::config::{Mask, Mlp};
use super::operations::{Attention, BlockBuffers, BlockLayers, MlpLayers, Operations, block_by_block};
use super::tensors::{Linear, Norm};
use crate::error::Result;

/// Rows that a task multiplies: with what is made of them they fill half of a usual second cache.
const BLOCK: usize = 168;

/// Transformers on the CPU.
#[derive(Clone)]
pub struct Cpu {
    level: Level,
    scratch: Arc<BufferPool<Scratch>>,
    sequences: Arc<BufferPool<Sequence>>,
}

impl Default for Cpu {
    fn default() -> Cpu {
        let level = Level::current();
        let scratch = Arc::new(BufferPool::new(move || Scratch::new(level)));
        Cpu { level, scratch, sequences: Arc::new(BufferPool::new(Sequence::default)) }
    }
}

/// The rows of one sequence on their way through all blocks.
#[derive(Default)]
struct Sequence {
    rows: Rows,
    between: BlockBuffers<Rows>,
}

/// Rows of numbers, without gaps.
#[derive(Default)]
pub struct Rows {
    columns: usize,
    values: Vec<f32>,
}

impl Rows {
    fn len(&self) -> usize {
        self.values.len() / self.columns.max(1)
    }

    /// Resizes to this shape; values are unspecified.
    fn resize(&mut self, rows: usize, columns: usize) {
        self.columns = columns;
        self.values.resize(rows * columns, 0.0);
    }
}

/// The buffers of one thread, kept because fresh memory is slow.
struct Scratch {
    normal: Vec<f32>,
    hidden: Vec<f32>,
    attention: AttentionScratch,
}

impl Scratch {
    fn new(level: Level) -> Scratch {
        Scratch { normal: vec![], hidden: vec![], attention: AttentionScratch::new(level) }
    }
}

/// Rows of `width` numbers, normalised, in `normal`.
fn normalise_rows(level: Level, norm: &Norm, rows: &[f32], width: usize, normal: &mut Vec<f32>) {
    normal.resize(rows.len(), 0.0);
    for (row, out) in rows.chunks_exact(width).zip(normal.chunks_exact_mut(width)) {
        normalise_into(level, row, norm, out);
    }
}

/// Rows per task: about [`BLOCK`] in whole tiles, as many tasks for each thread. No result depends on it.
fn rows_per_task(level: Level, rows: usize) -> usize {
    let tasks = rows.div_ceil(BLOCK).next_multiple_of(rayon::current_num_threads());
    rows.div_ceil(tasks.max(1)).max(1).next_multiple_of(TileShape::of(level).rows)
}

impl Operations for Cpu {
    type Rows = Rows;
    type Linear = PackedLinear;
    type Norm = Norm;

    fn linear_weights(&self, linear: Linear) -> Result<PackedLinear> {
        Ok(PackedLinear::new(self.level, linear))
    }

    fn norm_weights(&self, norm: Norm) -> Result<Norm> {
        Ok(norm)
    }

    fn upload(&self, values: &[f32], columns: usize, to: &mut Rows) -> Result<()> {
        to.columns = columns;
        to.values.clear();
        to.values.extend_from_slice(values);
        Ok(())
    }

    fn download(&self, rows: &Rows) -> Result<Vec<f32>> {
        Ok(rows.values.clone())
    }

    fn patches(&mut self, size: (usize, usize), pixels: &[u8], patch: usize, out: &mut Rows) -> Result<()> {
        let (height, width) = size;
        let rows = height / patch;
        let columns = width / patch;
        let per_patch = 3 * patch * patch;
        out.resize(pixels.len() / (3 * height * width) * rows * columns, per_patch);
        out.values.par_chunks_mut((columns * per_patch).max(1)).enumerate().for_each(|(at, out)| {
            let image = &pixels[at / rows * height * width * 3..];
            for y in 0..patch {
                let line = &image[(at % rows * patch + y) * width * 3..][..columns * patch * 3];
                for (pixels, out) in line.chunks_exact(3 * patch).zip(out.chunks_exact_mut(per_patch)) {
                    let to = &mut out[y * 3 * patch..][..3 * patch];
                    to.iter_mut().zip(pixels).for_each(|(to, &pixel)| *to = f32::from(pixel));
                }
            }
        });
        Ok(())
    }

    fn sequences(&mut self, patches: &Rows, before: &Rows, positions: &Rows, out: &mut Rows) -> Result<()> {
        let level = self.level;
        let width = patches.columns;
        let images = patches.len() / positions.len().max(1);
        let tokens = before.len() + positions.len();
        out.resize(images * tokens, width);
        let images = patches.values.par_chunks(positions.values.len().max(1));
        out.values.par_chunks_mut(tokens * width).zip(images).for_each(|(out, patches)| {
            let (first, rest) = out.split_at_mut(before.values.len());
            first.copy_from_slice(&before.values);
            rest.copy_from_slice(patches);
            add(level, rest, &positions.values);
        });
        Ok(())
    }

    fn normalise(&mut self, norm: &Norm, rows: &mut Rows) -> Result<()> {
        let level = self.level;
        rows.values.par_chunks_mut(rows.columns).for_each(|row| normalise(level, row, norm));
        Ok(())
    }

    fn linear(
        &mut self,
        norm: Option<&Norm>,
        linear: &PackedLinear,
        rows: &Rows,
        out: &mut Rows,
    ) -> Result<()> {
        let level = self.level;
        let block = rows_per_task(self.level, rows.len());
        let scratch = &self.scratch;
        out.resize(rows.len(), linear.outputs());
        let outs = out.values.par_chunks_mut(block * linear.outputs()).with_max_len(1);
        outs.zip(rows.values.par_chunks(block * rows.columns)).for_each(|(out, rows)| {
            let mut scratch = scratch.take();
            let inputs = linear.inputs();
            let rows = match norm {
                None => rows,
                Some(norm) => {
                    normalise_rows(level, norm, rows, inputs, &mut scratch.normal);
                    &scratch.normal
                }
            };
            linear.apply(level, Factors::whole(rows, inputs), out, Store::Replace);
        });
        Ok(())
    }

    fn linear_add(&mut self, linear: &PackedLinear, rows: &Rows, out: &mut Rows) -> Result<()> {
        let level = self.level;
        let block = rows_per_task(self.level, rows.len());
        let outs = out.values.par_chunks_mut(block * linear.outputs()).with_max_len(1);
        outs.zip(rows.values.par_chunks(block * rows.columns)).for_each(|(out, rows)| {
            linear.apply(level, Factors::whole(rows, linear.inputs()), out, Store::Add);
        });
        Ok(())
    }

    fn mlp_add(&mut self, norm: &Norm, mlp: &MlpLayers<PackedLinear>, rows: &mut Rows) -> Result<()> {
        let level = self.level;
        let block = rows_per_task(self.level, rows.len());
        let scratch = &self.scratch;
        let inputs = mlp.first.inputs();
        let width = mlp.second.inputs();
        rows.values.par_chunks_mut(block * inputs).with_max_len(1).for_each(|rows| {
            let n = rows.len() / inputs;
            let mut scratch = scratch.take();
            let Scratch { normal, hidden, .. } = &mut *scratch;
            normalise_rows(level, norm, rows, inputs, normal);
            let normal = Factors::whole(normal, inputs);
            match mlp.kind {
                // As many hidden numbers as one step of the second layer sums, while they are in the cache.
                Mlp::Plain(activation) => {
                    for from in (0..width).step_by(DEPTH) {
                        let some = from..(from + DEPTH).min(width);
                        hidden.resize(n * DEPTH, 0.0);
                        let hidden = &mut hidden[..n * some.len()];
                        mlp.first.apply_some(level, normal, some.clone(), hidden);
                        activate(level, hidden, activation);
                        mlp.second.add_from(level, Factors::whole(hidden, some.len()), some, rows);
                    }
                }
                Mlp::Gated(activation) => {
                    hidden.resize(n * mlp.first.outputs(), 0.0);
                    mlp.first.apply(level, normal, hidden, Store::Replace);
                    gate(level, activation, hidden, width);
                    mlp.second.apply(level, Factors::whole(&hidden[..n * width], width), rows, Store::Add);
                }
            }
        });
        Ok(())
    }

    fn attention(&mut self, attention: &Attention<Rows>, qkv: &mut Rows, out: &mut Rows) -> Result<()> {
        let &Attention { tokens, queries, heads, mask, rotation } = attention;
        let stride = qkv.columns;
        let width = qkv.columns / 3;
        let shape = AttentionShape { tokens, queries, heads, head: width / heads };
        if let Some(rotation) = rotation {
            rotate_rows(self.level, shape, &rotation.values, &mut qkv.values);
        }
        out.resize(qkv.len() / tokens * queries, width);
        let rows = &qkv.values[..];
        let keys = width;
        let values = 2 * width;
        let sources = AttentionInputs {
            queries: rows,
            query_stride: stride,
            shared: false,
            rows,
            stride,
            keys,
            values,
        };
        attend(self.level, &self.scratch, shape, mask, sources, &mut out.values);
        Ok(())
    }

    fn attention_pool(
        &mut self,
        tokens: usize,
        heads: usize,
        query: &Rows,
        keys_values: &Rows,
        out: &mut Rows,
    ) -> Result<()> {
        let width = query.columns;
        out.resize(keys_values.len() / tokens, width);
        let sources = AttentionInputs {
            queries: &query.values,
            query_stride: width,
            shared: true,
            rows: &keys_values.values,
            stride: 2 * width,
            keys: 0,
            values: width,
        };
        let shape = AttentionShape { tokens, queries: 1, heads, head: width / heads };
        attend(self.level, &self.scratch, shape, Mask::None, sources, &mut out.values);
        Ok(())
    }

    fn first_rows(&mut self, tokens: usize, count: usize, rows: &Rows, out: &mut Rows) -> Result<()> {
        out.resize(rows.len() / tokens * count, rows.columns);
        let sequences = rows.values.chunks_exact(tokens * rows.columns);
        for (out, rows) in out.values.chunks_exact_mut(count * rows.columns).zip(sequences) {
            out.copy_from_slice(&rows[..out.len()]);
        }
        Ok(())
    }

    fn mean_rows(&mut self, tokens: usize, skipped: usize, rows: &Rows, out: &mut Rows) -> Result<()> {
        let level = self.level;
        let columns = rows.columns;
        out.resize(rows.len() / tokens, columns);
        let sequences = rows.values.par_chunks(tokens * columns);
        out.values.par_chunks_mut(columns).zip(sequences).for_each(|(out, rows)| {
            out.fill(0.0);
            rows.chunks_exact(columns).skip(skipped).for_each(|row| add(level, out, row));
            scale(level, out, 1.0 / (tokens - skipped) as f32);
        });
        Ok(())
    }

    /// Every thread takes sequences of its own through all blocks: rows stay in its caches, and no thread waits for another.
    fn blocks(
        &mut self,
        blocks: &[BlockLayers<PackedLinear, Norm>],
        attention: &Attention<Rows>,
        rows: &mut Rows,
        between: &mut BlockBuffers<Rows>,
    ) -> Result<()> {
        let columns = rows.columns;
        let sequences = rows.len() / attention.tokens;
        if sequences < rayon::current_num_threads() {
            return block_by_block(self, blocks, attention, rows, between);
        }
        let mut left = Rows::default();
        left.resize(sequences * attention.queries, columns);
        let from = rows.values.par_chunks(attention.tokens * columns);
        let to = left.values.par_chunks_mut(attention.queries * columns).with_max_len(1);
        to.zip(from).try_for_each(|(to, from)| -> Result<()> {
            let mut sequence = self.sequences.take();
            let Sequence { rows, between } = &mut *sequence;
            rows.columns = columns;
            rows.values.clear();
            rows.values.extend_from_slice(from);
            block_by_block(&mut self.clone(), blocks, attention, rows, between)?;
            to.copy_from_slice(&rows.values);
            Ok(())
        })?;
        *rows = left;
        Ok(())
    }
}
