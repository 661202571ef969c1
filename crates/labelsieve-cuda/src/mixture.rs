//! The mixture of classes: densities and sums over candidates on the GPU, what little is learned from them on the CPU. The
//! arithmetic is in `mixture.cu`.
#![expect(unsafe_code, reason = "cuBLAS is a C library; the block says what makes it sound")]

use cudarc::cublas::result::sgemm;
use cudarc::cublas::sys::cublasOperation_t::{CUBLAS_OP_N as N, CUBLAS_OP_T as T};
use cudarc::driver::CudaSlice;
use labelsieve::engine::Job;
use labelsieve::relevance::{Mixture, MixtureState, MixtureSums, mixture_sharpness};
use labelsieve::{ClassProblem, Decision, Features, NoisyPool, Relevance};

use crate::batch::upload_few;
use crate::cuda::Cuda;
use crate::error::Result;
use crate::gpu::{Gpu, at, blocks, launch, warp_per_row};
use crate::rows::{Rows, stride_of};

/// Rows whose sums are made in `f32`, as on the CPU.
const CHUNK: usize = 256;
/// Blocks that share the products' moments.
const MOMENTS: usize = 256;

/// One job after the other. Jobs that follow each other on one pool share it.
pub(crate) fn score(
    cuda: &Cuda,
    model: &Mixture,
    jobs: &[Job],
    finished: &(dyn Fn(usize, &Relevance) + Sync),
) -> Result<Vec<Relevance>> {
    let gpu = cuda.gpu();
    let mut state = cuda.lock();
    let mut loaded: Option<(*const NoisyPool, Rows)> = None;
    let mut results = Vec::with_capacity(jobs.len());
    for (number, job) in jobs.iter().enumerate() {
        job.problem.watch().check()?;
        let (pool, others) = (job.problem.noisy, job.problem.other_classes);
        let n = pool.features().len();
        let posteriors = match others.filter(|others| !others.is_empty() && n > 0) {
            None => vec![1.0; n],
            Some(others) => {
                if loaded.as_ref().is_none_or(|(which, _)| !std::ptr::eq(*which, pool)) {
                    drop(loaded.take());
                    loaded = Some((pool, state.staging.upload(gpu, pool.features())?));
                }
                let (_, rows) = loaded.as_ref().expect("just loaded");
                posteriors(gpu, model, &job.problem, rows, others)?
            }
        };
        let relevance = job.problem.settle(Relevance::new(posteriors)?);
        finished(number, &relevance);
        results.push(relevance);
    }
    Ok(results)
}

fn posteriors(
    gpu: &Gpu,
    model: &Mixture,
    problem: &ClassProblem,
    rows: &Rows,
    others: &Features,
) -> Result<Vec<f32>> {
    let class = Class::new(gpu, model, problem, rows, others)?;
    let mut state = MixtureState::start(problem, others.len());
    for _ in 0..model.rounds {
        problem.watch().check()?;
        let sums = class.expect(gpu, &state)?;
        state = state.after(problem, &sums);
    }
    gpu.read(&class.posterior, rows.n)
}

/// A class on the device, while it is learned.
struct Class<'a> {
    rows: &'a Rows,
    n_others: usize,
    /// Numbers from one row of densities to the next.
    stride: usize,
    densities: CudaSlice<f32>,
    nearest: CudaSlice<f32>,
    /// What people decided: 1, 0, or -1 for nothing.
    decided: CudaSlice<f32>,
    sharpness: f32,
    posterior: CudaSlice<f32>,
    elsewhere: CudaSlice<f32>,
}

impl<'a> Class<'a> {
    fn new(
        gpu: &Gpu,
        model: &Mixture,
        problem: &ClassProblem,
        rows: &'a Rows,
        others: &Features,
    ) -> Result<Class<'a>> {
        let (n, n_others, stride) = (rows.n, others.len(), stride_of(others.len()));
        let decided = |i: usize| problem.decision(i).and_then(Decision::relevance).unwrap_or(-1.0);
        let densities = gpu.zeros::<f32>(n * stride)?;
        multiply(gpu, rows, &upload_few(gpu, others)?, (at(&densities), stride))?;
        let moments = gpu.buffer::<f64>(2 * MOMENTS)?;
        let (stream, kernels) = (&gpu.stream, &gpu.kernels);
        let shape = (n as u32, n_others as u32, stride as u32);
        launch!(
            stream,
            kernels.mixture_moments,
            blocks(MOMENTS, 256),
            at(&densities),
            shape.0,
            shape.1,
            shape.2,
            at(&moments),
        );
        let moments = gpu.read(&moments, 2 * MOMENTS)?;
        let sum = moments.iter().step_by(2).sum();
        let squares = moments.iter().skip(1).step_by(2).sum();
        let sharpness = mixture_sharpness(model.contrast, n * n_others, sum, squares);
        let nearest = gpu.buffer::<f32>(n)?;
        launch!(
            stream,
            kernels.mixture_densities,
            warp_per_row(n),
            at(&densities),
            shape.0,
            shape.1,
            shape.2,
            sharpness,
            at(&nearest),
        );
        Ok(Class {
            rows,
            n_others,
            stride,
            densities,
            nearest,
            decided: gpu.copy(&(0..n).map(decided).collect::<Vec<f32>>())?,
            sharpness,
            posterior: gpu.buffer(n)?,
            elsewhere: gpu.buffer(n)?,
        })
    }

    /// The posterior of the own class for every candidate, and the sums over them.
    fn expect(&self, gpu: &Gpu, state: &MixtureState) -> Result<MixtureSums> {
        let rows = self.rows;
        let (shares, direction) = (gpu.copy(&state.others)?, gpu.copy(&state.direction)?);
        launch!(
            gpu.stream,
            gpu.kernels.mixture_expect,
            warp_per_row(rows.n),
            rows.address(),
            rows.n as u32,
            rows.dim as u32,
            rows.stride as u32,
            at(&self.densities),
            self.n_others as u32,
            self.stride as u32,
            at(&self.nearest),
            at(&self.decided),
            at(&shares),
            at(&direction),
            state.own,
            self.sharpness,
            at(&self.posterior),
            at(&self.elsewhere),
        );
        let others = weighted_sum(gpu, (at(&self.densities), self.stride), &self.elsewhere, rows.n)?;
        let direction = weighted_sum(gpu, (rows.address(), rows.stride), &self.posterior, rows.n)?;
        let (others, direction) = (others[..self.n_others].to_vec(), direction[..rows.dim].to_vec());
        // Every candidate comes from somewhere: what the others have not brought is the class's own.
        let elsewhere: f64 =
            others.iter().zip(&state.others).map(|(sum, share)| sum * f64::from(*share)).sum();
        Ok(MixtureSums { own: (rows.n as f64 - elsewhere).max(0.0), others, direction })
    }
}

/// Σ weight · row over `n` rows at an address, `stride` apart: in f32 over chunks of rows and in f64 across.
pub(crate) fn weighted_sum(
    gpu: &Gpu,
    (rows, stride): (u64, usize),
    weights: &CudaSlice<f32>,
    n: usize,
) -> Result<Vec<f64>> {
    let n_chunks = n.div_ceil(CHUNK);
    let sums = gpu.buffer::<f32>(n_chunks * stride)?;
    let totals = gpu.buffer::<f64>(stride)?;
    let threads = (stride / 4).next_multiple_of(32).min(256);
    launch!(
        gpu.stream,
        gpu.kernels.weighted_sums,
        blocks(n_chunks, threads),
        rows,
        at(weights),
        n as u32,
        stride as u32,
        CHUNK as u32,
        at(&sums),
    );
    launch!(
        gpu.stream,
        gpu.kernels.total_sums,
        blocks(stride.div_ceil(64), 64),
        at(&sums),
        n_chunks as u32,
        stride as u32,
        at(&totals),
    );
    gpu.read(&totals, stride)
}

/// The product of every row with every other class, row by row at `out`, `stride` apart.
fn multiply(gpu: &Gpu, rows: &Rows, others: &Rows, (out, stride): (u64, usize)) -> Result<()> {
    let (one, zero) = (1f32, 0f32);
    // SAFETY: cuBLAS counts columns first, so our row-major matrices are its transposed ones; both factors have the same stride,
    // padded with zeros, and `out` holds `rows.n` rows of `stride` ≥ `others.n` numbers. The scalars are read before the call
    // returns.
    unsafe {
        sgemm(
            *gpu.blas.handle(),
            T,
            N,
            others.n as i32,
            rows.n as i32,
            rows.stride as i32,
            &one,
            others.address() as *const f32,
            others.stride as i32,
            rows.address() as *const f32,
            rows.stride as i32,
            &zero,
            out as *mut f32,
            stride as i32,
        )?;
    }
    Ok(())
}
