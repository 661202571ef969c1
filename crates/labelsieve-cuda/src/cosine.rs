//! The cosine classifier on the GPU.
#![expect(unsafe_code, reason = "cuBLAS is a C library; the block says what makes it sound")]

use std::ops::Range;

use cudarc::cublas::result::sgemm;
use cudarc::cublas::sys as blas;
use cudarc::cublas::sys::cublasOperation_t::{CUBLAS_OP_N as N, CUBLAS_OP_T as T};
use cudarc::driver::CudaSlice;
use labelsieve::Features;
use labelsieve::classifier::{Cosine, WeightMatrix, WeightedClass};
use labelsieve_numerics::random::Stream;

use crate::batch::upload_few;
use crate::cuda::Cuda;
use crate::error::Result;
use crate::gpu::{Gpu, at, blocks, launch};
use crate::rows::{Staging, stride_of};

impl Cuda {
    /// **Eq. (6)**: [`Cosine::train`] on the GPU, with the same batches in the same order. Batches are put together on the
    /// host when the examples do not fit the GPU's memory.
    pub fn train_cosine(
        &self,
        settings: &Cosine,
        classes: &[WeightedClass],
        dim: usize,
        seed: u64,
    ) -> Result<WeightMatrix> {
        settings.checked()?;
        let start = self.prototypes(classes, dim, settings.scale)?;
        let examples = Examples::new(classes);
        if classes.len() < 2 || examples.rows.is_empty() {
            return Ok(start); // nothing to tell apart
        }
        let mut state = self.lock();
        let n = examples.rows.len();
        let mut step = Step::new(self.gpu(), &mut state.staging, settings, &examples, &start)?;
        let n_batches = n.div_ceil(settings.batch_size);
        let last = (settings.epochs * n_batches - 1).max(1) as f32;
        for epoch in 0..settings.epochs {
            let order = Stream::new(seed).branch(epoch as u64).choose(n, n);
            for (b, batch) in order.chunks(settings.batch_size).enumerate() {
                let progress = (epoch * n_batches + b) as f32 / last;
                let half_cosine = 0.5 + 0.5 * (std::f32::consts::PI * progress).cos();
                let fall = settings.learning_rate - settings.final_learning_rate;
                step.take(&examples, batch, settings.final_learning_rate + fall * half_cosine)?;
            }
        }
        Ok(WeightMatrix::new(Features::new(step.weights()?, dim)?, settings.scale)?)
    }
}

/// All examples that count, class by class, each with its class and its share of the loss.
struct Examples<'a> {
    rows: Vec<&'a [f32]>,
    classes: Vec<u32>,
    weights: Vec<f32>,
}

impl<'a> Examples<'a> {
    /// An example of class c weighs r(x)/r(X^c) · n/K, which is 1 on average.
    fn new(classes: &[WeightedClass<'a>]) -> Examples<'a> {
        let mut examples = Examples { rows: Vec::new(), classes: Vec::new(), weights: Vec::new() };
        for (number, class) in classes.iter().enumerate() {
            let total = class.total();
            let clean = class.clean().rows().map(|row| (row, 1.0));
            let noisy = class.noisy().rows().zip(class.relevance().iter().copied());
            for (row, relevance) in clean.chain(noisy).filter(|(_, relevance)| *relevance > 0.0) {
                examples.rows.push(row);
                examples.classes.push(number as u32);
                examples.weights.push((f64::from(relevance) / total) as f32);
            }
        }
        let mean_is_one = examples.rows.len() as f32 / classes.len() as f32;
        examples.weights.iter_mut().for_each(|weight| *weight *= mean_is_one);
        examples
    }

    /// The chosen rows, padded.
    fn gather(&self, chosen: &[usize], dim: usize) -> Vec<f32> {
        let mut out = vec![0f32; chosen.len() * stride_of(dim)];
        for (&i, out) in chosen.iter().zip(out.chunks_exact_mut(stride_of(dim))) {
            out[..dim].copy_from_slice(self.rows[i]);
        }
        out
    }

    /// Rows one after the other, padded.
    fn copy(&self, rows: Range<usize>, dim: usize, out: &mut [f32]) {
        for (row, out) in self.rows[rows].iter().zip(out.chunks_exact_mut(stride_of(dim))) {
            out[..dim].copy_from_slice(row);
            out[dim..].fill(0.0);
        }
    }
}

/// The state of SGD on the device.
struct Step<'a> {
    gpu: &'a Gpu,
    settings: &'a Cosine,
    n_classes: usize,
    dim: usize,
    stride: usize,
    /// All examples, if they fit.
    all_rows: Option<CudaSlice<f32>>,
    classes: CudaSlice<u32>,
    example_weights: CudaSlice<f32>,
    /// W, its velocity, Ŵ, the lengths and the gradients, K rows each.
    weights: CudaSlice<f32>,
    velocity: CudaSlice<f32>,
    unit: CudaSlice<f32>,
    lengths: CudaSlice<f32>,
    gradients: CudaSlice<f32>,
    /// The rows of a batch and their cosines.
    rows: CudaSlice<f32>,
    cosines: CudaSlice<f32>,
}

impl<'a> Step<'a> {
    fn new(
        gpu: &'a Gpu,
        staging: &mut Staging,
        settings: &'a Cosine,
        examples: &Examples,
        start: &WeightMatrix,
    ) -> Result<Step<'a>> {
        let n_classes = start.weights().len();
        let dim = start.weights().dim();
        let stride = stride_of(dim);
        let batch = settings.batch_size.min(examples.rows.len());
        let n = examples.rows.len();
        let fits = n * stride * 4 < gpu.available()? / 2;
        let all_rows = if fits {
            Some(staging.upload_with(gpu, n, dim, |rows, out| examples.copy(rows, dim, out))?.values)
        } else {
            None
        };
        Ok(Step {
            gpu,
            settings,
            n_classes,
            dim,
            stride,
            all_rows,
            classes: gpu.copy(&examples.classes)?,
            example_weights: gpu.copy(&examples.weights)?,
            weights: upload_few(gpu, start.weights())?.values,
            velocity: gpu.zeros(n_classes * stride)?,
            unit: gpu.zeros(n_classes * stride)?,
            lengths: gpu.zeros(n_classes)?,
            gradients: gpu.zeros(n_classes * stride)?,
            rows: gpu.zeros(batch * stride)?,
            cosines: gpu.zeros(batch * n_classes)?,
        })
    }

    fn take(&mut self, examples: &Examples, batch: &[usize], rate: f32) -> Result<()> {
        let gpu = self.gpu;
        let n = batch.len();
        let k = self.n_classes;
        let numbers: Vec<u32> = batch.iter().map(|&i| i as u32).collect();
        let chosen = gpu.copy(&numbers)?;
        let dim = self.dim as u32;
        let stride = self.stride as u32;
        match &self.all_rows {
            Some(all) => launch!(
                gpu.stream,
                gpu.kernels.choose_rows,
                blocks(n, 128),
                at(all),
                at(&chosen),
                stride,
                at(&self.rows)
            ),
            None => {
                let rows = examples.gather(batch, self.dim);
                gpu.stream.memcpy_htod(&rows, &mut self.rows)?;
            }
        }
        let unit = at(&self.unit);
        let lengths = at(&self.lengths);
        launch!(
            gpu.stream,
            gpu.kernels.unit_rows,
            blocks(k, 128),
            at(&self.weights),
            dim,
            stride,
            unit,
            lengths
        );
        self.cosines(n)?;
        launch!(
            gpu.stream,
            gpu.kernels.logit_gradients,
            blocks(n, 128),
            at(&self.cosines),
            k as u32,
            at(&chosen),
            at(&self.classes),
            at(&self.example_weights),
            self.settings.scale,
            n as f32,
        );
        self.gradients(n)?;
        launch!(
            gpu.stream,
            gpu.kernels.momentum_step,
            blocks(k, 128),
            at(&self.weights),
            at(&self.velocity),
            at(&self.gradients),
            unit,
            lengths,
            dim,
            stride,
            self.settings.momentum,
            rate,
        );
        Ok(())
    }

    /// Row-major B×K cosines = rows · Ŵᵀ, that is column-major K×B = Ŵ (K×d) · rowsᵀ (d×B).
    fn cosines(&self, n: usize) -> Result<()> {
        let unit = (at(&self.unit), self.stride);
        let rows = (at(&self.rows), self.stride);
        self.sgemm((T, unit), (N, rows), at(&self.cosines), (self.n_classes, n, self.stride), self.n_classes)
    }

    /// ∂L/∂Ŵ, K×d row-major, that is column-major d×K = rowsᵀ (d×B) · cosines (B×K).
    fn gradients(&self, n: usize) -> Result<()> {
        let rows = (at(&self.rows), self.stride);
        let errors = (at(&self.cosines), self.n_classes);
        self.sgemm((N, rows), (T, errors), at(&self.gradients), (self.stride, self.n_classes, n), self.stride)
    }

    /// Column-major `out (m×n) = op(a) · op(b)` over k inner numbers; matrices are addresses with their strides.
    fn sgemm(
        &self,
        (a_operation, (a, a_stride)): (blas::cublasOperation_t, (u64, usize)),
        (b_operation, (b, b_stride)): (blas::cublasOperation_t, (u64, usize)),
        out: u64,
        (m, n, k): (usize, usize, usize),
        out_stride: usize,
    ) -> Result<()> {
        let one = 1f32;
        let zero = 0f32;
        // SAFETY: the addresses are this step's buffers, whose sizes are those of the callers' shapes; the scalars are
        // read before the call returns.
        unsafe {
            sgemm(
                *self.gpu.blas.handle(),
                a_operation,
                b_operation,
                m as i32,
                n as i32,
                k as i32,
                &one,
                a as *const f32,
                a_stride as i32,
                b as *const f32,
                b_stride as i32,
                &zero,
                out as *mut f32,
                out_stride as i32,
            )?;
        }
        Ok(())
    }

    /// W, without padding.
    fn weights(&self) -> Result<Vec<f32>> {
        let padded: Vec<f32> = self.gpu.read(&self.weights, self.n_classes * self.stride)?;
        Ok(padded.chunks_exact(self.stride).flat_map(|row| row[..self.dim].iter().copied()).collect())
    }
}
