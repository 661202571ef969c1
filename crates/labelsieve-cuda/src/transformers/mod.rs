//! Transformers on a GPU: `labelsieve_networks` walks through them, cuBLASLt and cuDNN multiply, the kernels here do the rest.
//!
//! Numbers are stored with 16 bits or 32 ([`ActivationPrecision`]); sums are `f32` either way.
#![expect(unsafe_code, reason = "declares what kernels read; queues kernels")]

mod kernels;
mod products;
mod rows;

use std::collections::HashMap;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DeviceRepr, LaunchConfig};
use labelsieve_networks::Result as VisionResult;
use labelsieve_networks::transformer::{
    Activation, Attention, Linear, Mask, Mlp, MlpLayers, Norm, Operations,
};

pub use self::rows::{DeviceLinear, DeviceNorm, DeviceRows};

use self::kernels::Kernels;
use self::products::{Epilogue, Operands, Products, Shape};
use crate::cudnn::attention::{KEYS, OUTPUT, Problem, QUERIES, SUMS, VALUES};
use crate::cudnn::{Cudnn, Plan};
use crate::error::{Error, Result};
use crate::gpu::{at, blocks, launch};
use crate::networks::ActivationPrecision;
use crate::networks::staging::Staging;

/// The widest head of our own attention kernel.
const MAX_HEAD: usize = 128;

/// Queries per block of our own attention kernel.
const QUERIES_PER_BLOCK: usize = 16;

const THREADS: usize = 256;

/// The operations of a transformer on one GPU. Fields are dropped in this order: memory, then the stream it returns to.
pub struct CudaOperations {
    normal: DeviceRows,
    hidden: DeviceRows,
    gated: DeviceRows,
    staging: Staging,
    attentions: HashMap<Problem, Option<Plan>>,
    workspace: CudaSlice<u8>,
    products: Products,
    cudnn: Cudnn,
    kernels: Kernels,
    precision: ActivationPrecision,
    stream: Arc<CudaStream>,
}

/// Laid out as in `rows.cu`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Patches {
    n_images: u32,
    height: u32,
    width: u32,
    patch: u32,
    rows: u32,
    columns: u32,
    stride: u32,
}

// SAFETY: `repr(C)`, and the kernel declares the same fields.
unsafe impl DeviceRepr for Patches {}

/// Laid out as `Attention` in `attention.cu`.
#[repr(C)]
#[derive(Clone, Copy)]
struct AttentionShape {
    tokens: u32,
    queries: u32,
    heads: u32,
    head: u32,
    query_sequence: u32,
    query_stride: u32,
    stride: u32,
    is_causal: u32,
}

// SAFETY: `repr(C)`, and the kernel declares the same fields.
unsafe impl DeviceRepr for AttentionShape {}

impl CudaOperations {
    /// Compiles the kernels, and fails if cuDNN or cuBLASLt is missing.
    pub(crate) fn new(context: &Arc<CudaContext>, precision: ActivationPrecision) -> Result<CudaOperations> {
        context.bind_to_thread()?;
        let stream = context.new_stream()?;
        Ok(CudaOperations {
            normal: DeviceRows::default(),
            hidden: DeviceRows::default(),
            gated: DeviceRows::default(),
            staging: Staging::new(&stream)?,
            attentions: HashMap::new(),
            workspace: stream.alloc_zeros(1)?,
            products: Products::new(&stream, precision)?,
            cudnn: Cudnn::new(&stream)?,
            kernels: Kernels::compile(context, precision)?,
            precision,
            stream,
        })
    }

    /// `out = epilogue(linear(rows))`; `out` must have its size already if the result is added to it.
    fn product(
        &mut self,
        then: Epilogue,
        linear: &DeviceLinear,
        rows: &DeviceRows,
        out: &mut DeviceRows,
    ) -> Result<()> {
        if then != Epilogue::Add {
            out.resize(&self.stream, rows.rows, linear.columns, self.precision)?;
        }
        let (weight, bias) = linear.addresses();
        let operands = Operands { rows: rows.address(), weight, bias, out: out.address() };
        let shape = Shape { rows: rows.rows, inputs: linear.inputs, outputs: linear.outputs, then };
        self.products.run(shape, &operands)
    }

    /// Normalises rows, from one place to another or in place.
    fn normalise_rows(&self, norm: &DeviceNorm, n_rows: usize, from: u64, to: u64) -> Result<()> {
        let (weight, bias) = norm.addresses();
        let shape = blocks(n_rows.div_ceil(THREADS / 32), THREADS);
        let n_rows = n_rows as u32;
        let width = norm.width as u32;
        let kernel = &self.kernels.normalise_rows;
        launch!(self.stream, kernel, shape, n_rows, width, from, weight, bias, norm.eps, to);
        Ok(())
    }

    /// Normalised copies of rows, in a buffer that the next call uses again.
    fn normalised(&mut self, norm: &DeviceNorm, rows: &DeviceRows) -> Result<DeviceRows> {
        let mut normal = std::mem::take(&mut self.normal);
        normal.resize(&self.stream, rows.rows, norm.width, self.precision)?;
        self.normalise_rows(norm, rows.rows, rows.address(), normal.address())?;
        Ok(normal)
    }

    fn linear_of(
        &mut self,
        norm: Option<&DeviceNorm>,
        linear: &DeviceLinear,
        rows: &DeviceRows,
        out: &mut DeviceRows,
    ) -> Result<()> {
        let Some(norm) = norm else { return self.product(Epilogue::Store, linear, rows, out) };
        let normal = self.normalised(norm, rows)?;
        self.product(Epilogue::Store, linear, &normal, out)?;
        self.normal = normal;
        Ok(())
    }

    fn add_mlp(
        &mut self,
        norm: &DeviceNorm,
        mlp: &MlpLayers<DeviceLinear>,
        rows: &mut DeviceRows,
    ) -> Result<()> {
        let normal = self.normalised(norm, rows)?;
        let mut hidden = std::mem::take(&mut self.hidden);
        let mut gated = std::mem::take(&mut self.gated);
        match mlp.kind {
            Mlp::Plain(Activation::GeluTanh) => {
                self.product(Epilogue::Gelu, &mlp.first, &normal, &mut hidden)?
            }
            Mlp::Plain(activation) => {
                self.product(Epilogue::Store, &mlp.first, &normal, &mut hidden)?;
                let n = hidden.rows * hidden.stride();
                let shape = eights(n);
                let kind = number_of(activation);
                launch!(self.stream, self.kernels.activate, shape, n as u64, kind, hidden.address());
            }
            Mlp::Gated(activation) => {
                let width = mlp.first.columns / 2;
                if !width.is_multiple_of(8) {
                    return Err(Error::Failed(format!("{width} gates, expected a multiple of eight")));
                }
                self.product(Epilogue::Store, &mlp.first, &normal, &mut hidden)?;
                gated.resize(&self.stream, hidden.rows, width, self.precision)?;
                let shape = eights(hidden.rows * width);
                let kind = number_of(activation);
                let n_rows = hidden.rows as u32;
                let columns = width as u32;
                let from = hidden.address();
                let to = gated.address();
                launch!(self.stream, self.kernels.gate_rows, shape, n_rows, columns, kind, from, to);
            }
        }
        let between = if matches!(mlp.kind, Mlp::Gated(_)) { &gated } else { &hidden };
        self.product(Epilogue::Add, &mlp.second, between, rows)?;
        self.normal = normal;
        self.hidden = hidden;
        self.gated = gated;
        Ok(())
    }

    /// By cuDNN if it supports the problem, else by our own kernel. Addresses of the first query, key and value.
    fn attend(
        &mut self,
        problem: &Problem,
        mask: Mask,
        [queries, keys, values]: [u64; 3],
        out: &mut DeviceRows,
    ) -> Result<()> {
        let size = (problem.sequences * problem.queries, problem.heads * problem.head);
        out.resize(&self.stream, size.0, size.1, self.precision)?;
        if mask == Mask::None {
            if !self.attentions.contains_key(problem) {
                let plan = problem.plan(&self.cudnn, self.precision)?;
                let bytes = plan.as_ref().map_or(0, |plan| sums_start(plan) + problem.sums_size());
                if bytes > self.workspace.len() {
                    self.workspace = self.stream.alloc_zeros(bytes)?;
                }
                self.attentions.insert(*problem, plan);
            }
            if let Some(plan) = &self.attentions[problem] {
                let workspace = at(&self.workspace);
                let sums = workspace + sums_start(plan) as u64;
                let operands = [
                    (QUERIES, queries),
                    (KEYS, keys),
                    (VALUES, values),
                    (OUTPUT, out.address()),
                    (SUMS, sums),
                ];
                return plan.run(&self.cudnn, operands, workspace);
            }
        }
        if problem.head > MAX_HEAD {
            return Err(Error::Failed(format!(
                "heads of {} numbers, expected up to {MAX_HEAD}",
                problem.head
            )));
        }
        let shape = AttentionShape {
            tokens: problem.tokens as u32,
            queries: problem.queries as u32,
            heads: problem.heads as u32,
            head: problem.head as u32,
            query_sequence: problem.query_sequence as u32,
            query_stride: problem.query_stride as u32,
            stride: problem.stride as u32,
            is_causal: u32::from(mask == Mask::Causal),
        };
        let grid = LaunchConfig {
            grid_dim: (
                problem.queries.div_ceil(QUERIES_PER_BLOCK) as u32,
                problem.heads as u32,
                problem.sequences as u32,
            ),
            block_dim: (THREADS as u32, 1, 1),
            shared_mem_bytes: 0,
        };
        launch!(self.stream, self.kernels.attend, grid, shape, queries, keys, values, out.address());
        Ok(())
    }

    fn attend_in_sequences(
        &mut self,
        attention: &Attention<DeviceRows>,
        qkv: &mut DeviceRows,
        out: &mut DeviceRows,
    ) -> Result<()> {
        let &Attention { tokens, queries, heads, mask, rotation } = attention;
        let stride = qkv.stride();
        let width = qkv.columns / 3;
        let head = width / heads;
        if let Some(rotation) = rotation {
            let n_pairs = qkv.rows * heads * (head / 2) * 2;
            let shape = blocks(n_pairs.div_ceil(THREADS), THREADS);
            let [n_rows, n_tokens, n_rotated, n_heads, n_head, step] =
                [qkv.rows, tokens, rotation.rows, heads, head, rotation.stride()].map(|n| n as u32);
            let angles = rotation.address();
            let rows = qkv.address();
            launch!(
                self.stream,
                self.kernels.rotate_heads,
                shape,
                n_rows,
                n_tokens,
                n_rotated,
                n_heads,
                n_head,
                step,
                angles,
                rows
            );
        }
        let problem = Problem {
            sequences: qkv.rows / tokens,
            heads,
            head,
            queries,
            tokens,
            query_sequence: tokens * stride,
            query_stride: stride,
            stride,
        };
        let step = (width * self.precision.size()) as u64;
        let first = qkv.address();
        self.attend(&problem, mask, [first, first + step, first + 2 * step], out)
    }

    fn cut_patches(
        &mut self,
        height: usize,
        width: usize,
        pixels: &[u8],
        patch: usize,
        out: &mut DeviceRows,
    ) -> Result<()> {
        let rows = height / patch;
        let columns = width / patch;
        let n_images = pixels.len() / (3 * height * width);
        out.resize(&self.stream, n_images * rows * columns, 3 * patch * patch, self.precision)?;
        let parcel = self.staging.send(&self.stream, pixels, &[])?;
        let shape = eights(out.rows * out.stride());
        let [n_images, height, width, patch, rows, columns, stride] =
            [n_images, height, width, patch, rows, columns, out.stride()].map(|n| n as u32);
        let patches = Patches { n_images, height, width, patch, rows, columns, stride };
        launch!(self.stream, self.kernels.patch_rows, shape, patches, parcel.pixels, out.address());
        self.staging.done(&self.stream, parcel)
    }
}

/// The position of the sums of an attention in its workspace, after that of the plan.
fn sums_start(plan: &Plan) -> usize {
    plan.workspace.next_multiple_of(256)
}

/// One thread for eight numbers.
fn eights(numbers: usize) -> LaunchConfig {
    blocks(numbers.div_ceil(8 * THREADS), THREADS)
}

/// As in `rows.cu`.
fn number_of(activation: Activation) -> u32 {
    match activation {
        Activation::Gelu => 0,
        Activation::GeluTanh => 1,
        Activation::QuickGelu => 2,
        Activation::Silu => 3,
    }
}

impl Operations for CudaOperations {
    type Rows = DeviceRows;
    type Linear = DeviceLinear;
    type Norm = DeviceNorm;

    fn linear_weights(&self, linear: Linear) -> VisionResult<DeviceLinear> {
        Ok(DeviceLinear::new(&self.stream, &linear, self.precision)?)
    }

    fn norm_weights(&self, norm: Norm) -> VisionResult<DeviceNorm> {
        Ok(DeviceNorm::new(&self.stream, &norm)?)
    }

    fn upload(&self, values: &[f32], columns: usize, to: &mut DeviceRows) -> VisionResult<()> {
        Ok(to.write(&self.stream, values, columns, self.precision)?)
    }

    fn download(&self, rows: &DeviceRows) -> VisionResult<Vec<f32>> {
        Ok(rows.read(&self.stream, self.precision)?)
    }

    fn patches(
        &mut self,
        size: (usize, usize),
        pixels: &[u8],
        patch: usize,
        out: &mut DeviceRows,
    ) -> VisionResult<()> {
        self.stream.context().bind_to_thread().map_err(Error::from)?; // the first operation of a walk
        Ok(self.cut_patches(size.0, size.1, pixels, patch, out)?)
    }

    fn sequences(
        &mut self,
        patches: &DeviceRows,
        before: &DeviceRows,
        positions: &DeviceRows,
        out: &mut DeviceRows,
    ) -> VisionResult<()> {
        let n_images = patches.rows / positions.rows.max(1);
        let tokens = before.rows + positions.rows;
        out.resize(&self.stream, n_images * tokens, patches.columns, self.precision)?;
        let shape = eights(n_images * tokens * patches.columns);
        let [n_images, n_before, n_patches, columns] =
            [n_images, before.rows, positions.rows, patches.columns].map(|n| n as u32);
        let [first, rest, places, to] = [before, patches, positions, &*out].map(DeviceRows::address);
        let queue = || -> Result<()> {
            let kernel = &self.kernels.sequence_rows;
            launch!(
                self.stream,
                kernel,
                shape,
                n_images,
                n_before,
                n_patches,
                columns,
                first,
                rest,
                places,
                to
            );
            Ok(())
        };
        Ok(queue()?)
    }

    fn normalise(&mut self, norm: &DeviceNorm, rows: &mut DeviceRows) -> VisionResult<()> {
        Ok(self.normalise_rows(norm, rows.rows, rows.address(), rows.address())?)
    }

    fn linear(
        &mut self,
        norm: Option<&DeviceNorm>,
        linear: &DeviceLinear,
        rows: &DeviceRows,
        out: &mut DeviceRows,
    ) -> VisionResult<()> {
        Ok(self.linear_of(norm, linear, rows, out)?)
    }

    fn linear_add(
        &mut self,
        linear: &DeviceLinear,
        rows: &DeviceRows,
        out: &mut DeviceRows,
    ) -> VisionResult<()> {
        Ok(self.product(Epilogue::Add, linear, rows, out)?)
    }

    fn mlp_add(
        &mut self,
        norm: &DeviceNorm,
        mlp: &MlpLayers<DeviceLinear>,
        rows: &mut DeviceRows,
    ) -> VisionResult<()> {
        Ok(self.add_mlp(norm, mlp, rows)?)
    }

    fn attention(
        &mut self,
        attention: &Attention<DeviceRows>,
        qkv: &mut DeviceRows,
        out: &mut DeviceRows,
    ) -> VisionResult<()> {
        Ok(self.attend_in_sequences(attention, qkv, out)?)
    }

    fn attention_pool(
        &mut self,
        tokens: usize,
        heads: usize,
        query: &DeviceRows,
        keys_values: &DeviceRows,
        out: &mut DeviceRows,
    ) -> VisionResult<()> {
        let width = query.columns;
        let problem = Problem {
            sequences: keys_values.rows / tokens,
            heads,
            head: width / heads,
            queries: 1,
            tokens,
            query_sequence: 0,
            query_stride: query.stride(),
            stride: keys_values.stride(),
        };
        let keys = keys_values.address();
        let values = keys + (width * self.precision.size()) as u64;
        Ok(self.attend(&problem, Mask::None, [query.address(), keys, values], out)?)
    }

    fn first_rows(
        &mut self,
        tokens: usize,
        count: usize,
        rows: &DeviceRows,
        out: &mut DeviceRows,
    ) -> VisionResult<()> {
        let n_sequences = rows.rows / tokens;
        out.resize(&self.stream, n_sequences * count, rows.columns, self.precision)?;
        let shape = eights(n_sequences * count * rows.columns);
        let [n_sequences, tokens, count, columns] =
            [n_sequences, tokens, count, rows.columns].map(|n| n as u32);
        let queue = || -> Result<()> {
            let kernel = &self.kernels.first_rows;
            let from = rows.address();
            let to = out.address();
            launch!(self.stream, kernel, shape, n_sequences, tokens, count, columns, from, to);
            Ok(())
        };
        Ok(queue()?)
    }

    fn mean_rows(
        &mut self,
        tokens: usize,
        skipped: usize,
        rows: &DeviceRows,
        out: &mut DeviceRows,
    ) -> VisionResult<()> {
        let n_sequences = rows.rows / tokens;
        out.resize(&self.stream, n_sequences, rows.columns, self.precision)?;
        let shape = eights(n_sequences * rows.columns);
        let [n_sequences, tokens, skipped, columns] =
            [n_sequences, tokens, skipped, rows.columns].map(|n| n as u32);
        let queue = || -> Result<()> {
            let kernel = &self.kernels.mean_rows;
            let from = rows.address();
            let to = out.address();
            launch!(self.stream, kernel, shape, n_sequences, tokens, skipped, columns, from, to);
            Ok(())
        };
        Ok(queue()?)
    }
}
