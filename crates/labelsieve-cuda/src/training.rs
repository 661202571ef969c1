//! GCN and MLP: many networks trained at once, a few launches an iteration. The arithmetic is in `network.cu`.

use cudarc::driver::{CudaSlice, DeviceRepr, LaunchConfig};
use labelsieve::Relevance;
use labelsieve::random::Stream;
use labelsieve::relevance::{Training, lambda_of, loss_weights};

use crate::batch::{BatchModel, LoadedPool};
use crate::error::Result;
use crate::gpu::{Gpu, at, blocks, launch};
use crate::graph::{EdgeBuffers, propagate, reciprocal_neighbours};
use crate::kernels::FORWARD_SHARED;
use crate::memory::{Carver, Tile, read_at, row_tiles};
use crate::rows::{Rows, row_keys, stride_of};

const HIDDEN: usize = 16;
/// Rows per tile, as in `network.cu`.
const TILE: usize = 256;

/// The two-layer network with its settings; without neighbours it is the MLP.
pub(crate) struct NetworkModel {
    pub training: Training,
    pub lambda: Option<f32>,
    pub neighbours: Option<usize>,
}

/// Laid out as `Job` in `network.cu`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Job {
    x: u64,
    offsets: u64,
    columns: u64,
    weights: u64,
    inverse_degree: u64,
    hidden: u64,
    support: u64,
    probability: u64,
    gradient_over_degree: u64,
    support_gradient: u64,
    parameters: u64,
    partial: u64,
    bias_partial: u64,
    row_keys: u64,
    loss_weights: u64,
    weight_key: u64,
    dropout_key: u64,
    n: u32,
    n_clean: u32,
    dim: u32,
    stride: u32,
    n_tiles: u32,
    unused: u32,
}

#[expect(unsafe_code, reason = "a struct of plain numbers, handed to a kernel")]
// SAFETY: `repr(C)`, and the kernel declares the same fields.
unsafe impl DeviceRepr for Job {}

impl Job {
    /// The addresses of everything a job of `n` rows keeps in memory that starts at `base`, and the bytes that takes.
    fn lay_out(base: u64, n: usize, dim: usize, edges: Option<usize>) -> (Job, usize) {
        let stride = stride_of(dim);
        let n_tiles = n.div_ceil(TILE);
        let mut carver = Carver::new(base);
        let mut floats = |count: usize| carver.take(count * 4);
        let mut job = Job {
            x: floats(n * stride),
            inverse_degree: floats(n),
            hidden: floats(n * HIDDEN),
            support: floats(n),
            probability: floats(n),
            gradient_over_degree: floats(n),
            support_gradient: floats(n),
            parameters: floats(3 * n_parameters(dim)),
            partial: floats(n_tiles * (stride + 2) * HIDDEN),
            bias_partial: floats(2 * n_tiles),
            n: n as u32,
            dim: dim as u32,
            stride: stride as u32,
            n_tiles: n_tiles as u32,
            ..Job::default()
        };
        if let Some(edges) = edges {
            (job.offsets, job.columns, job.weights) = (floats(n + 1), floats(edges), floats(edges));
        }
        (job, carver.taken())
    }

    /// How many threads share the summing of one parameter, as in `network.cu`.
    fn adam_slices(&self) -> usize {
        match self.n_tiles {
            64.. => 16,
            8.. => 4,
            _ => 1,
        }
    }
}

fn n_parameters(dim: usize) -> usize {
    dim * HIDDEN + 2 * HIDDEN + 1
}

/// A job ready to be trained.
pub(crate) struct PreparedNetwork {
    job: Job,
    _memory: CudaSlice<u8>,
    _keys: CudaSlice<u64>,
    _loss_weights: CudaSlice<f32>,
}

impl BatchModel for NetworkModel {
    type Prepared = PreparedNetwork;

    fn neighbours(&self) -> Option<usize> {
        self.neighbours
    }

    fn uses_row_keys(&self) -> bool {
        true // for dropout
    }

    fn bytes(&self, k: usize, z: usize, dim: usize) -> usize {
        let n = k + z;
        let edges = self.neighbours.map(|count| (z + 2 * k) * count);
        let (keys, loss_weights, scratch) = (n * 8, n * 4, k * n * 4 + n * 12);
        Job::lay_out(0, n, dim, edges).1 + keys + loss_weights + scratch
    }

    fn prepare(
        &self,
        gpu: &Gpu,
        pool: &LoadedPool,
        clean: &Rows,
        of: &labelsieve::engine::Job,
    ) -> Result<PreparedNetwork> {
        let (k, n) = (clean.n, clean.n + pool.rows.n);
        let edges = pool.edges.as_ref().map(|edges| edges.edge_bound(k));
        let memory = gpu.buffer::<u8>(Job::lay_out(0, n, clean.dim, edges).1)?;
        let (mut job, _) = Job::lay_out(at(&memory), n, clean.dim, edges);
        let keys = gpu.copy(&[row_keys(of.problem.clean).as_slice(), &pool.keys].concat())?;
        let loss_weights = gpu.copy(&loss_weights(&of.problem, lambda_of(&of.problem, self.lambda)))?;
        let stream = Stream::new(of.seed);
        job.n_clean = k as u32;
        job.row_keys = at(&keys);
        job.loss_weights = at(&loss_weights);
        job.weight_key = stream.branch(0).key();
        job.dropout_key = stream.branch(1).key();
        let buffers = EdgeBuffers { offsets: job.offsets, columns: job.columns, weights: job.weights };
        if let Some(edges) = &pool.edges {
            edges.insert(gpu, clean, &pool.rows, buffers)?;
        }
        let edges = pool.edges.as_ref().map(|_| buffers);
        propagate(gpu, clean, &pool.rows, edges, job.x, job.inverse_degree)?;
        Ok(PreparedNetwork { job, _memory: memory, _keys: keys, _loss_weights: loss_weights })
    }

    fn solve(
        &self,
        gpu: &Gpu,
        prepared: &[PreparedNetwork],
        done: &mut dyn FnMut(usize, Relevance),
    ) -> Result<()> {
        let jobs: Vec<Job> = prepared.iter().map(|prepared| prepared.job).collect();
        Networks::new(gpu, &jobs)?.train(&self.training)?;
        for (position, job) in jobs.iter().enumerate() {
            let (k, z) = (job.n_clean as usize, (job.n - job.n_clean) as usize);
            let relevance = Relevance::new(read_at(gpu, job.probability + 4 * k as u64, z)?)?;
            done(
                position,
                match self.neighbours {
                    Some(_) => {
                        relevance.with_reciprocal_neighbours(reciprocal_neighbours(gpu, job.offsets, k, z)?)
                    }
                    None => relevance,
                },
            );
        }
        Ok(())
    }
}

/// A batch of networks and the lists of work that each launch goes through.
struct Networks<'a> {
    gpu: &'a Gpu,
    jobs: CudaSlice<Job>,
    tiles: CudaSlice<Tile>,
    n_tiles: usize,
    parameter_blocks: CudaSlice<Tile>,
    n_parameter_blocks: usize,
    initial_blocks: CudaSlice<Tile>,
    n_initial_blocks: usize,
    stride: usize,
}

impl<'a> Networks<'a> {
    fn new(gpu: &'a Gpu, jobs: &[Job]) -> Result<Networks<'a>> {
        let tiles = row_tiles(jobs.iter().map(|job| job.n as usize), TILE);
        let initial = row_tiles(jobs.iter().map(|job| n_parameters(job.dim as usize)), 256);
        let mut parameters = Vec::new();
        for (number, job) in jobs.iter().enumerate() {
            let per_block = 256 / job.adam_slices();
            let n_blocks = n_parameters(job.dim as usize).div_ceil(per_block);
            parameters.extend((0..n_blocks).map(|index| Tile::new(number, index)));
        }
        Ok(Networks {
            gpu,
            jobs: gpu.copy(jobs)?,
            n_tiles: tiles.len(),
            tiles: gpu.copy(&tiles)?,
            n_parameter_blocks: parameters.len(),
            parameter_blocks: gpu.copy(&parameters)?,
            n_initial_blocks: initial.len(),
            initial_blocks: gpu.copy(&initial)?,
            stride: jobs.iter().map(|job| job.stride as usize).max().unwrap_or(4),
        })
    }

    /// Leaves p of every row, in evaluation mode, in each job's memory.
    fn train(&self, training: &Training) -> Result<()> {
        let gpu = self.gpu;
        launch!(
            gpu.stream,
            gpu.kernels.initial_parameters,
            blocks(self.n_initial_blocks, 256),
            at(&self.initial_blocks),
            at(&self.jobs),
        );
        let threshold = (training.dropout * 65536.0) as u32;
        let scale = 1.0 / (1.0 - training.dropout);
        for iteration in 0..training.iterations {
            self.forward(iteration, threshold, scale)?;
            launch!(
                gpu.stream,
                gpu.kernels.gather,
                blocks(self.n_tiles, 256),
                at(&self.tiles),
                at(&self.jobs)
            );
            let threads = (self.stride / 4).next_multiple_of(32).min(512);
            launch!(
                gpu.stream,
                gpu.kernels.backward,
                blocks(self.n_tiles, threads),
                at(&self.tiles),
                at(&self.jobs),
                scale,
            );
            self.adam_step(training, iteration)?;
        }
        self.forward(0, 0, 1.0)
    }

    /// R, s, p and the gradient of the loss.
    fn forward(&self, iteration: usize, threshold: u32, scale: f32) -> Result<()> {
        let gpu = self.gpu;
        let shape = LaunchConfig { shared_mem_bytes: FORWARD_SHARED, ..blocks(self.n_tiles, 128) };
        launch!(
            gpu.stream,
            gpu.kernels.forward,
            shape,
            at(&self.tiles),
            at(&self.jobs),
            iteration as u32,
            threshold,
            scale,
        );
        launch!(
            gpu.stream,
            gpu.kernels.probability,
            blocks(self.n_tiles, 256),
            at(&self.tiles),
            at(&self.jobs)
        );
        Ok(())
    }

    /// Adam's two corrections are numbers of the iteration alone, made here in `f64` as on the CPU.
    fn adam_step(&self, training: &Training, iteration: usize) -> Result<()> {
        let gpu = self.gpu;
        let step = iteration as i32 + 1;
        let rate = training.learning_rate * 0.1f32.powi((iteration / training.decay_every) as i32);
        let rate = (f64::from(rate) / (1.0 - f64::from(0.9f32).powi(step))) as f32;
        let root = (1.0 - f64::from(0.999f32).powi(step)).sqrt() as f32;
        launch!(
            gpu.stream,
            gpu.kernels.adam,
            blocks(self.n_parameter_blocks, 256),
            at(&self.parameter_blocks),
            at(&self.jobs),
            rate,
            root,
            training.weight_decay,
        );
        Ok(())
    }
}
