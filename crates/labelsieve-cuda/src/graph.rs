//! The graph of a class on the device: the noisy rows' own part once, the clean rows inserted for each job.

use cudarc::driver::{CudaSlice, DeviceRepr, LaunchConfig};
use labelsieve::NoisyPool;

use crate::error::Result;
use crate::gpu::{Gpu, at, blocks, launch, warp_per_row};
use crate::memory::read_at;
use crate::rows::Rows;
use crate::search::{self, Lists};

/// The neighbours of the noisy rows among themselves and the edges these make.
pub(crate) struct NoisyEdges {
    lists: Lists,
    count: usize,
    offsets: CudaSlice<u32>,
    columns: CudaSlice<u32>,
    weights: CudaSlice<f32>,
    n_edges: usize,
}

/// Where the edges of one class go: addresses inside its job's memory.
#[derive(Clone, Copy)]
pub(crate) struct EdgeBuffers {
    pub offsets: u64,
    pub columns: u64,
    pub weights: u64,
}

/// Laid out as `Insertion` in `affinity.cu`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Insertion {
    noisy_offsets: u64,
    noisy_columns: u64,
    noisy_weights: u64,
    clean_indices: u64,
    clean_nearest: u64,
    to_clean: u64,
    last_similarity: u64,
    last_index: u64,
    k: u32,
    n: u32,
    width: u32,
}

#[expect(unsafe_code, reason = "a struct of plain numbers, handed to a kernel")]
// SAFETY: `repr(C)`, and the kernel declares the same fields.
unsafe impl DeviceRepr for Insertion {}

impl NoisyEdges {
    /// Searches `count` neighbours of each row, or takes the lists the pool came with.
    pub fn new(gpu: &Gpu, pool: &NoisyPool, rows: &Rows, count: usize) -> Result<NoisyEdges> {
        let lists = match pool.ready_graph(count) {
            Some(graph) => {
                let (indices, similarities) = graph.neighbours().lists();
                let width = graph.neighbours().width();
                Lists { indices: gpu.copy(indices)?, similarities: gpu.copy(similarities)?, width }
            }
            None => search::nearest(gpu, rows, count)?,
        };
        let counts = gpu.zeros::<u32>(rows.n)?;
        let offsets = gpu.zeros::<u32>(rows.n + 1)?;
        let find = |columns: u64, weights: u64| -> Result<()> {
            launch!(
                gpu.stream,
                gpu.kernels.mutual_edges,
                with_columns(rows.n, lists.width),
                at(&lists.indices),
                at(&lists.similarities),
                rows.n as u32,
                lists.width as u32,
                at(&counts),
                at(&offsets),
                columns,
                weights,
            );
            Ok(())
        };
        let mut n_edges = 0;
        if lists.width > 0 {
            find(0, 0)?;
            sum_up(gpu, at(&counts), rows.n, at(&offsets))?;
            n_edges = gpu.read(&offsets.slice(rows.n..), 1)?[0] as usize;
        }
        let (columns, weights) = (gpu.buffer(n_edges)?, gpu.buffer(n_edges)?);
        if n_edges > 0 {
            find(at(&columns), at(&weights))?;
        }
        Ok(NoisyEdges { lists, count, offsets, columns, weights, n_edges })
    }

    /// Space that suffices for the edges of a class with `k` clean rows: each of these brings at most `count` edges, both ways.
    pub fn edge_bound(&self, k: usize) -> usize {
        self.n_edges + 2 * k * self.count
    }

    /// The edges of the class: clean rows first, columns ascending, exactly those of the CPU.
    pub fn insert(&self, gpu: &Gpu, clean: &Rows, noisy: &Rows, buffers: EdgeBuffers) -> Result<()> {
        let (k, n) = (clean.n, clean.n + noisy.n);
        let width = self.count.min(n - 1);
        let to_clean = gpu.buffer::<f32>(k * n)?;
        let (clean_indices, clean_nearest) = (gpu.buffer::<u32>(k * width)?, gpu.buffer::<f32>(k * width)?);
        let (last_similarity, last_index) = (gpu.buffer::<f32>(n)?, gpu.buffer::<u32>(n)?);
        let counts = gpu.buffer::<u32>(n)?;
        launch!(
            gpu.stream,
            gpu.kernels.clean_similarities,
            warp_per_row(n),
            clean.address(),
            noisy.address(),
            k as u32,
            n as u32,
            clean.dim as u32,
            clean.stride as u32,
            at(&to_clean),
        );
        launch!(
            gpu.stream,
            gpu.kernels.clean_neighbours,
            blocks(k, 256),
            at(&to_clean),
            n as u32,
            width as u32,
            at(&clean_indices),
            at(&clean_nearest),
            at(&last_similarity),
            at(&last_index),
        );
        launch!(
            gpu.stream,
            gpu.kernels.last_neighbours,
            warp_per_row(noisy.n),
            at(&self.lists.indices),
            at(&self.lists.similarities),
            self.lists.width as u32,
            at(&to_clean),
            k as u32,
            n as u32,
            width as u32,
            at(&last_similarity),
            at(&last_index),
        );
        let insertion = Insertion {
            noisy_offsets: at(&self.offsets),
            noisy_columns: at(&self.columns),
            noisy_weights: at(&self.weights),
            clean_indices: at(&clean_indices),
            clean_nearest: at(&clean_nearest),
            to_clean: at(&to_clean),
            last_similarity: at(&last_similarity),
            last_index: at(&last_index),
            k: k as u32,
            n: n as u32,
            width: width as u32,
        };
        let find = |columns: u64, weights: u64| -> Result<()> {
            launch!(
                gpu.stream,
                gpu.kernels.class_edges,
                with_columns(n, width),
                insertion,
                at(&counts),
                buffers.offsets,
                columns,
                weights,
            );
            Ok(())
        };
        find(0, 0)?;
        sum_up(gpu, at(&counts), n, buffers.offsets)?;
        find(buffers.columns, buffers.weights)
    }
}

/// How many edges each noisy row of a class with `k` clean and `z` noisy rows has.
pub(crate) fn reciprocal_neighbours(gpu: &Gpu, offsets: u64, k: usize, z: usize) -> Result<Vec<u32>> {
    let offsets: Vec<u32> = read_at(gpu, offsets + 4 * k as u64, z + 1)?;
    Ok(offsets.windows(2).map(|pair| pair[1] - pair[0]).collect())
}

/// X = Ã V and the inverse degrees; without edges X = V.
pub(crate) fn propagate(
    gpu: &Gpu,
    clean: &Rows,
    noisy: &Rows,
    edges: Option<EdgeBuffers>,
    x: u64,
    inverse_degree: u64,
) -> Result<()> {
    let n = clean.n + noisy.n;
    let none = EdgeBuffers { offsets: 0, columns: 0, weights: 0 };
    let edges = edges.unwrap_or(none);
    let threads = (clean.stride / 4).min(256);
    let rows_per_block = (128 / threads).max(1);
    let shape = LaunchConfig {
        grid_dim: (n.div_ceil(rows_per_block) as u32, 1, 1),
        block_dim: (threads as u32, rows_per_block as u32, 1),
        shared_mem_bytes: 0,
    };
    launch!(
        gpu.stream,
        gpu.kernels.propagate_features,
        shape,
        clean.address(),
        noisy.address(),
        clean.n as u32,
        n as u32,
        clean.stride as u32,
        edges.offsets,
        edges.columns,
        edges.weights,
        x,
        inverse_degree,
    );
    Ok(())
}

fn sum_up(gpu: &Gpu, counts: u64, n: usize, offsets: u64) -> Result<()> {
    launch!(gpu.stream, gpu.kernels.running_sum, blocks(1, 1024), counts, n as u32, offsets);
    Ok(())
}

/// One warp a row, each with space for `width` columns.
fn with_columns(n: usize, width: usize) -> LaunchConfig {
    LaunchConfig { shared_mem_bytes: (8 * width.max(1) * 4) as u32, ..warp_per_row(n) }
}
