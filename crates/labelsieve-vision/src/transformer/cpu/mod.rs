//! Transformers on the CPU, with the threads of the current rayon pool.

mod attention;
mod functions;
mod product;
mod tile;

use labelsieve::level::Level;
use rayon::prelude::*;

use self::attention::{Sources, attend, rotate_rows};
use self::functions::{add, between, normalise, scale};
pub use self::product::PackedLinear;
use self::product::{PackedRows, Part};
use super::config::Mask;
use super::operations::{Attention, MlpLayers, Operations};
use super::tensors::{Linear, Norm};
use crate::error::Result;

/// Rows that a task multiplies: packed, they fill half of a usual second cache.
const BLOCK: usize = 112;

/// Transformers on the CPU.
pub struct Cpu {
    level: Level,
}

impl Default for Cpu {
    fn default() -> Cpu {
        Cpu { level: Level::current() }
    }
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

    /// Other rows of this size, whatever they hold.
    fn resize(&mut self, rows: usize, columns: usize) {
        self.columns = columns;
        self.values.resize(rows * columns, 0.0);
    }
}

/// What one thread needs for linear layers.
#[derive(Default)]
struct Scratch {
    packed: PackedRows,
    normal: Vec<f32>,
    hidden: Vec<f32>,
}

impl Scratch {
    /// Packs rows of `inputs` numbers, normalised before where that is wanted.
    fn pack(&mut self, level: Level, norm: Option<&Norm>, rows: &[f32], inputs: usize) {
        let part = (Part::whole(inputs), rows.len() / inputs);
        let Some(norm) = norm else { return self.packed.pack(level, rows, part) };
        self.normal.clear();
        self.normal.extend_from_slice(rows);
        self.normal.chunks_exact_mut(inputs).for_each(|row| normalise(level, row, norm));
        self.packed.pack(level, &self.normal, part);
    }
}

/// Rows per task: about [`BLOCK`], so that all tasks are about as long. It depends on the number of rows alone.
fn rows_per_task(rows: usize) -> usize {
    rows.div_ceil(rows.div_ceil(BLOCK).max(1)).next_multiple_of(14).max(14)
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

    fn patches(
        &mut self,
        (height, width): (usize, usize),
        pixels: &[u8],
        patch: usize,
        out: &mut Rows,
    ) -> Result<()> {
        let (rows, columns) = (height / patch, width / patch);
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
        let (level, width) = (self.level, patches.columns);
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
        let (level, block) = (self.level, rows_per_task(rows.len()));
        out.resize(rows.len(), linear.outputs());
        let outs = out.values.par_chunks_mut(block * linear.outputs());
        outs.zip(rows.values.par_chunks(block * rows.columns)).for_each_init(
            Scratch::default,
            |scratch, (out, rows)| {
                scratch.pack(level, norm, rows, linear.inputs());
                linear.apply(level, &scratch.packed, out);
            },
        );
        Ok(())
    }

    fn linear_add(&mut self, linear: &PackedLinear, rows: &Rows, out: &mut Rows) -> Result<()> {
        let (level, block) = (self.level, rows_per_task(rows.len()));
        let outs = out.values.par_chunks_mut(block * linear.outputs());
        outs.zip(rows.values.par_chunks(block * rows.columns)).for_each_init(
            Scratch::default,
            |scratch, (out, rows)| {
                scratch.pack(level, None, rows, linear.inputs());
                linear.apply_add(level, &scratch.packed, out);
            },
        );
        Ok(())
    }

    fn mlp_add(&mut self, norm: &Norm, mlp: &MlpLayers<PackedLinear>, rows: &mut Rows) -> Result<()> {
        let (level, block) = (self.level, rows_per_task(rows.len()));
        let (inputs, width) = (mlp.first.inputs(), mlp.second.inputs());
        rows.values.par_chunks_mut(block * inputs).for_each_init(Scratch::default, |scratch, rows| {
            let n = rows.len() / inputs;
            scratch.pack(level, Some(norm), rows, inputs);
            scratch.hidden.resize(n * mlp.first.outputs(), 0.0);
            mlp.first.apply(level, &scratch.packed, &mut scratch.hidden);
            between(level, mlp.kind, &mut scratch.hidden, width);
            scratch.packed.pack(level, &scratch.hidden, (Part::whole(width), n));
            mlp.second.apply_add(level, &scratch.packed, rows);
        });
        Ok(())
    }

    fn attention(&mut self, attention: &Attention<Rows>, qkv: &mut Rows, out: &mut Rows) -> Result<()> {
        let &Attention { tokens, queries, heads, mask, rotation } = attention;
        let (stride, width) = (qkv.columns, qkv.columns / 3);
        let head = width / heads;
        if let Some(rotation) = rotation {
            rotate_rows(self.level, (tokens, heads, head), &rotation.values, &mut qkv.values);
        }
        out.resize(qkv.len() / tokens * queries, width);
        let rows = &qkv.values[..];
        let (keys, values) = (width, 2 * width);
        let sources =
            Sources { queries: rows, query_stride: stride, shared: false, rows, stride, keys, values };
        attend(self.level, (tokens, queries), (heads, head), mask, sources, &mut out.values);
        Ok(())
    }

    fn attention_pool(
        &mut self,
        (tokens, heads): (usize, usize),
        query: &Rows,
        keys_values: &Rows,
        out: &mut Rows,
    ) -> Result<()> {
        let width = query.columns;
        out.resize(keys_values.len() / tokens, width);
        let sources = Sources {
            queries: &query.values,
            query_stride: width,
            shared: true,
            rows: &keys_values.values,
            stride: 2 * width,
            keys: 0,
            values: width,
        };
        attend(self.level, (tokens, 1), (heads, width / heads), Mask::None, sources, &mut out.values);
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
        let (level, columns) = (self.level, rows.columns);
        out.resize(rows.len() / tokens, columns);
        let sequences = rows.values.par_chunks(tokens * columns);
        out.values.par_chunks_mut(columns).zip(sequences).for_each(|(out, rows)| {
            out.fill(0.0);
            rows.chunks_exact(columns).skip(skipped).for_each(|row| add(level, out, row));
            scale(level, out, 1.0 / (tokens - skipped) as f32);
        });
        Ok(())
    }
}
