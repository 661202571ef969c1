//! Label propagation: conjugate gradients for many classes at once. The arithmetic is in `label_propagation.cu`.

use cudarc::driver::{CudaSlice, DeviceRepr};
use labelsieve::Relevance;
use labelsieve::engine::Job;
use labelsieve::relevance::{LabelPropagation, label_seeds};

use crate::batch::{BatchModel, LoadedPool, upload_few};
use crate::error::Result;
use crate::gpu::{Gpu, at, blocks, launch};
use crate::graph::{EdgeBuffers, insertion_bytes, reciprocal_neighbours};
use crate::memory::{Carver, read_at, row_tiles};

/// Rows per tile, as in `label_propagation.cu`.
const TILE: usize = 256;
/// The CPU's limit, and how often the host looks whether all classes have converged.
const MAX_ITERATIONS: usize = 1000;
const LOOK_EVERY: usize = 16;

/// Laid out as `Flow` in `label_propagation.cu`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Flow {
    offsets: u64,
    columns: u64,
    weights: u64,
    scale: u64,
    solution: u64,
    residual: u64,
    direction: u64,
    image: u64,
    along: u64,
    square: u64,
    squares: u64,
    seeds: u64,
    goal: f64,
    n: u32,
    n_clean: u32,
    n_tiles: u32,
    unused: u32,
}

#[expect(unsafe_code, reason = "a struct of plain numbers, handed to a kernel")]
// SAFETY: `repr(C)`, and the kernel declares the same fields.
unsafe impl DeviceRepr for Flow {}

impl Flow {
    fn lay_out(base: u64, n: usize, edges: usize) -> (Flow, usize) {
        let n_tiles = n.div_ceil(TILE);
        let mut carver = Carver::new(base);
        let mut words = |count: usize| carver.take(count * 4);
        let flow = Flow {
            offsets: words(n + 1),
            columns: words(edges),
            weights: words(edges),
            scale: words(n),
            solution: words(n),
            residual: words(n),
            direction: words(n),
            image: words(n),
            along: words(2 * n_tiles),
            square: words(2 * n_tiles),
            n: n as u32,
            n_tiles: n_tiles as u32,
            ..Flow::default()
        };
        (flow, carver.taken())
    }
}

/// A job ready to be solved.
pub(crate) struct PreparedFlow {
    flow: Flow,
    _memory: CudaSlice<u8>,
    _seeds: CudaSlice<f32>,
}

impl PreparedFlow {
    fn new(gpu: &Gpu, pool: &LoadedPool, of: &Job) -> Result<PreparedFlow> {
        let clean = upload_few(gpu, of.problem.clean)?;
        let k = clean.n;
        let n = clean.n + pool.rows.n;
        let edges = pool.edges.as_ref().expect("label propagation asks for neighbours");
        let memory = gpu.buffer::<u8>(Flow::lay_out(0, n, edges.edge_bound(k)).1)?;
        let (mut flow, _) = Flow::lay_out(at(&memory), n, edges.edge_bound(k));
        let seeds = label_seeds(&of.problem);
        flow.n_clean = k as u32;
        flow.goal = 1e-12 * seeds.iter().map(|&y| f64::from(y) * f64::from(y)).sum::<f64>();
        let seeds = gpu.copy(&seeds)?;
        flow.seeds = at(&seeds);
        let buffers = EdgeBuffers { offsets: flow.offsets, columns: flow.columns, weights: flow.weights };
        edges.insert(gpu, &clean, &pool.rows, buffers)?;
        Ok(PreparedFlow { flow, _memory: memory, _seeds: seeds })
    }
}

impl BatchModel for LabelPropagation {
    type Prepared = Vec<PreparedFlow>;

    fn neighbours(&self) -> Option<usize> {
        Some(self.neighbours)
    }

    fn bytes(&self, k: usize, z: usize, _dim: usize) -> usize {
        let n = k + z;
        let seeds = n * 4;
        let scratch = insertion_bytes(k, z, self.neighbours);
        Flow::lay_out(0, n, (z + 2 * k) * self.neighbours).1 + seeds + scratch
    }

    fn prepare(&self, gpu: &Gpu, pool: &LoadedPool, jobs: &[&Job]) -> Result<Vec<PreparedFlow>> {
        jobs.iter().map(|job| PreparedFlow::new(gpu, pool, job)).collect()
    }

    fn solve(
        &self,
        gpu: &Gpu,
        prepared: &[Vec<PreparedFlow>],
        done: &mut dyn FnMut(usize, Relevance),
    ) -> Result<()> {
        let n_jobs = prepared.iter().map(Vec::len).sum::<usize>();
        let squares = gpu.zeros::<f64>(2 * n_jobs)?;
        let flows: Vec<Flow> = prepared
            .iter()
            .flatten()
            .enumerate()
            .map(|(i, job)| Flow { squares: at(&squares) + 16 * i as u64, ..job.flow })
            .collect();
        converge(gpu, self.alpha, &flows, &squares)?;
        for (position, flow) in flows.iter().enumerate() {
            let k = flow.n_clean as usize;
            let z = (flow.n - flow.n_clean) as usize;
            let solution: Vec<f32> = read_at(gpu, flow.solution + 4 * k as u64, z)?;
            let relevance = Relevance::new(solution.into_iter().map(|r| r.clamp(0.0, 1.0)).collect())?;
            let counts = reciprocal_neighbours(gpu, flow.offsets, k, z)?;
            done(position, relevance.with_reciprocal_neighbours(counts));
        }
        Ok(())
    }
}

/// Iterates until every class has converged.
fn converge(gpu: &Gpu, alpha: f32, flows: &[Flow], squares: &CudaSlice<f64>) -> Result<()> {
    let tiles = row_tiles(flows.iter().map(|flow| flow.n as usize), TILE);
    let on_tiles = blocks(tiles.len(), 256);
    let tiles = gpu.copy(&tiles)?;
    let on_device = gpu.copy(flows)?;
    let tiles = at(&tiles);
    let on_device = at(&on_device);
    let stream = &gpu.stream;
    let kernels = &gpu.kernels;
    launch!(stream, kernels.flow_scale, on_tiles, tiles, on_device);
    launch!(stream, kernels.flow_start, on_tiles, tiles, on_device, alpha);
    launch!(stream, kernels.flow_first_square, blocks(flows.len(), 256), on_device);
    for iteration in 0..MAX_ITERATIONS {
        let parity = (iteration % 2) as u32;
        if iteration % LOOK_EVERY == 0 {
            let squares = gpu.read(squares, 2 * flows.len())?;
            let now = squares.iter().skip(parity as usize).step_by(2);
            if now.zip(flows).all(|(square, flow)| *square <= flow.goal) {
                break;
            }
        }
        launch!(stream, kernels.flow_apply, on_tiles, tiles, on_device, alpha, parity);
        launch!(stream, kernels.flow_step, on_tiles, tiles, on_device, parity);
        launch!(stream, kernels.flow_turn, on_tiles, tiles, on_device, parity);
    }
    gpu.finish()
}
