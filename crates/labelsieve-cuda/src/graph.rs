//! The graph of a class on the device: the noisy rows' own part once, the clean rows inserted for each job.

use std::sync::Arc;

use cudarc::driver::{CudaSlice, DeviceRepr, LaunchConfig};
use labelsieve::NoisyPool;

use crate::error::Result;
use crate::gpu::{Gpu, at, blocks, launch, warp_per_row};
use crate::memory::{Carver, read_at};
use crate::rows::Rows;
use crate::search::{self, Lists};

/// The neighbours of the noisy rows among themselves and the edges these make.
pub(crate) struct NoisyEdges {
    lists: Lists,
    count: usize,
    pub edges: Arc<Edges>,
}

/// Edges of rows, in compressed rows.
pub(crate) struct Edges {
    pub offsets: CudaSlice<u32>,
    pub columns: CudaSlice<u32>,
    pub weights: CudaSlice<f32>,
    n: usize,
}

/// Where the edges of one class go: addresses inside its job's memory.
#[derive(Clone, Copy)]
pub(crate) struct EdgeBuffers {
    pub offsets: u64,
    pub columns: u64,
    pub weights: u64,
}

/// Clean rows that are put into a pool, and a slot for the rows they change there.
#[derive(Clone, Copy)]
pub(crate) struct CleanRows {
    pub values: u64,
    pub keys: u64,
    pub k: usize,
    pub slot: usize,
}

/// Where the changed rows of a class go, and their edges.
#[derive(Clone, Copy)]
pub(crate) struct ChangedRows {
    pub rows: u64,
    pub keys: u64,
    pub edges: EdgeBuffers,
}

/// Laid out as `Insertion` in `affinity.cu`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Insertion {
    noisy: u64,
    list_indices: u64,
    list_nearest: u64,
    noisy_offsets: u64,
    noisy_columns: u64,
    noisy_weights: u64,
    noisy_keys: u64,
    clean: u64,
    clean_keys: u64,
    to_clean: u64,
    clean_indices: u64,
    clean_nearest: u64,
    last_similarity: u64,
    last_index: u64,
    counts: u64,
    offsets: u64,
    changed: u64,
    places: u64,
    touched: u64,
    rows: u64,
    row_offsets: u64,
    row_keys: u64,
    columns: u64,
    weights: u64,
    k: u32,
    n: u32,
    width: u32,
    list_width: u32,
    dim: u32,
    stride: u32,
    slot: u32,
    unused: u32,
}

#[expect(unsafe_code, reason = "a struct of plain numbers, handed to a kernel")]
// SAFETY: `repr(C)`, and the kernel declares the same fields.
unsafe impl DeviceRepr for Insertion {}

impl Insertion {
    /// Takes what it needs while it is under way.
    fn lay_out(carver: &mut Carver, k: usize, n: usize, width: usize) -> Insertion {
        let mut words = |count: usize| carver.take(count * 4);
        Insertion {
            to_clean: words(k * n),
            clean_indices: words(k * width),
            clean_nearest: words(k * width),
            last_similarity: words(n),
            last_index: words(n),
            counts: words(n),
            offsets: words(n + 1),
            changed: words(n),
            places: words(n + 1),
            k: k as u32,
            n: n as u32,
            width: width as u32,
            ..Insertion::default()
        }
    }
}

/// Bytes that inserting `k` clean rows takes while it is under way.
pub(crate) fn insertion_bytes(k: usize, z: usize, count: usize) -> usize {
    let mut carver = Carver::new(0);
    Insertion::lay_out(&mut carver, k, k + z, count.min((k + z).saturating_sub(1)));
    carver.taken()
}

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
        let columns = gpu.buffer(n_edges)?;
        let weights = gpu.buffer(n_edges)?;
        if n_edges > 0 {
            find(at(&columns), at(&weights))?;
        }
        let edges = Arc::new(Edges { offsets, columns, weights, n: n_edges });
        Ok(NoisyEdges { lists, count, edges })
    }

    /// Space that suffices for the edges of a class with `k` clean rows: each of these brings at most `count` edges, both ways.
    pub fn edge_bound(&self, k: usize) -> usize {
        self.edges.n + 2 * k * self.count
    }

    /// The edges of the class: clean rows first, columns ascending, exactly those of the CPU.
    pub fn insert(&self, gpu: &Gpu, clean: &Rows, noisy: &Rows, buffers: EdgeBuffers) -> Result<()> {
        let clean = CleanRows { values: clean.address(), keys: 0, k: clean.n, slot: 0 };
        let mut insertions = Insertions::new(gpu, self, noisy, &[clean])?;
        let of = &mut insertions.of[0];
        (of.offsets, of.columns, of.weights) = (buffers.offsets, buffers.columns, buffers.weights);
        (of.changed, of.places) = (0, 0);
        insertions.find_neighbours()?;
        insertions.find_edges(false)?;
        sum_up(gpu, insertions.of[0].counts, insertions.of[0].n as usize, buffers.offsets)?;
        insertions.find_edges(true)
    }

    /// Inserts several choices of clean rows, each for itself, and finds the rows whose edges are then not those of the noisy rows
    /// alone. `touched`: a number per noisy row, where these rows get the bit of their choice's slot.
    pub fn insert_all<'a>(
        &self,
        gpu: &'a Gpu,
        noisy: &Rows,
        noisy_keys: u64,
        touched: u64,
        clean: &[CleanRows],
    ) -> Result<Insertions<'a>> {
        let mut insertions = Insertions::new(gpu, self, noisy, clean)?;
        for of in &mut insertions.of {
            (of.noisy_keys, of.touched) = (noisy_keys, touched);
        }
        insertions.find_neighbours()?;
        insertions.find_edges(false)?;
        Ok(insertions)
    }
}

/// Choices of clean rows on their way into a pool.
pub(crate) struct Insertions<'a> {
    gpu: &'a Gpu,
    of: Vec<Insertion>,
    _scratch: CudaSlice<u8>,
}

impl<'a> Insertions<'a> {
    fn new(gpu: &'a Gpu, into: &NoisyEdges, noisy: &Rows, clean: &[CleanRows]) -> Result<Insertions<'a>> {
        let lay_out = |base: u64| -> (Vec<Insertion>, usize) {
            let mut carver = Carver::new(base);
            let of = clean.iter().map(|clean| {
                let n = clean.k + noisy.n;
                Insertion::lay_out(&mut carver, clean.k, n, into.count.min(n - 1))
            });
            (of.collect(), carver.taken())
        };
        let scratch = gpu.buffer::<u8>(lay_out(0).1)?;
        let mut of = lay_out(at(&scratch)).0;
        for (of, clean) in of.iter_mut().zip(clean) {
            *of = Insertion {
                noisy: noisy.address(),
                list_indices: at(&into.lists.indices),
                list_nearest: at(&into.lists.similarities),
                noisy_offsets: at(&into.edges.offsets),
                noisy_columns: at(&into.edges.columns),
                noisy_weights: at(&into.edges.weights),
                clean: clean.values,
                clean_keys: clean.keys,
                list_width: into.lists.width as u32,
                dim: noisy.dim as u32,
                stride: noisy.stride as u32,
                slot: clean.slot as u32,
                ..*of
            };
        }
        Ok(Insertions { gpu, of, _scratch: scratch })
    }

    fn largest(&self, number: impl Fn(&Insertion) -> u32) -> usize {
        self.of.iter().map(number).max().unwrap_or(0) as usize
    }

    /// `shape` for each choice.
    fn each(&self, shape: LaunchConfig) -> LaunchConfig {
        LaunchConfig { grid_dim: (shape.grid_dim.0, self.of.len() as u32, 1), ..shape }
    }

    /// The lists of the clean rows, and the last entry of everybody's.
    fn find_neighbours(&self) -> Result<()> {
        let gpu = self.gpu;
        let all = gpu.copy(&self.of)?;
        let rows = self.each(warp_per_row(self.largest(|of| of.n)));
        let clean = self.each(blocks(self.largest(|of| of.k), 256));
        launch!(gpu.stream, gpu.kernels.clean_similarities, rows, at(&all));
        launch!(gpu.stream, gpu.kernels.clean_neighbours, clean, at(&all));
        launch!(gpu.stream, gpu.kernels.last_neighbours, rows, at(&all));
        Ok(())
    }

    /// Counts edges, or fills them in.
    fn find_edges(&self, fills: bool) -> Result<()> {
        let gpu = self.gpu;
        let all = gpu.copy(&self.of)?;
        let shape = self.each(with_columns(self.largest(|of| of.n), self.largest(|of| of.width)));
        launch!(gpu.stream, gpu.kernels.class_edges, shape, at(&all), u32::from(fills));
        Ok(())
    }

    /// How many rows each choice changes, clean ones included, and the edges these have.
    pub fn totals(&self) -> Result<Vec<(usize, usize)>> {
        let gpu = self.gpu;
        let all = gpu.copy(&self.of)?;
        let totals = gpu.buffer::<u32>(2 * self.of.len())?;
        let both = LaunchConfig { grid_dim: (2, self.of.len() as u32, 1), ..blocks(1, 1024) };
        launch!(gpu.stream, gpu.kernels.insertion_sums, both, at(&all));
        let shape = blocks(self.of.len().div_ceil(32), 32);
        launch!(gpu.stream, gpu.kernels.insertion_totals, shape, at(&all), self.of.len() as u32, at(&totals));
        let totals = gpu.read(&totals, 2 * self.of.len())?;
        Ok(totals.chunks_exact(2).map(|pair| (pair[0] as usize, pair[1] as usize)).collect())
    }

    /// Writes the changed rows, noisy rows counted before clean ones, and their edges. [`Insertions::totals`] come first.
    pub fn fill(mut self, into: &[ChangedRows]) -> Result<()> {
        for (of, into) in self.of.iter_mut().zip(into) {
            (of.rows, of.row_keys, of.row_offsets) = (into.rows, into.keys, into.edges.offsets);
            (of.columns, of.weights) = (into.edges.columns, into.edges.weights);
        }
        self.find_edges(true)
    }
}

/// How many edges each noisy row of a class with `k` clean and `z` noisy rows has.
pub(crate) fn reciprocal_neighbours(gpu: &Gpu, offsets: u64, k: usize, z: usize) -> Result<Vec<u32>> {
    Ok(edges_per_row(&read_at::<u32>(gpu, offsets + 4 * k as u64, z + 1)?))
}

/// From where the edges of each row begin, and the last ones end, to how many there are.
pub(crate) fn edges_per_row(offsets: &[u32]) -> Vec<u32> {
    offsets.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// Rows of X = Ã V in halves, and the inverse degrees; without edges X = V. Laid out as in `affinity.cu`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Propagation {
    pub noisy: u64,
    pub clean: u64,
    pub rows: u64,
    pub offsets: u64,
    pub columns: u64,
    pub weights: u64,
    pub x: u64,
    pub inverse_degree: u64,
    pub n: u32,
    pub n_noisy: u32,
    pub stride: u32,
    pub width: u32,
}

#[expect(unsafe_code, reason = "a struct of plain numbers, handed to a kernel")]
// SAFETY: `repr(C)`, and the kernel declares the same fields.
unsafe impl DeviceRepr for Propagation {}

pub(crate) fn propagate(gpu: &Gpu, all: &[Propagation]) -> Result<()> {
    let largest = |number: fn(&Propagation) -> u32| all.iter().map(number).max().unwrap_or(0) as usize;
    let threads = (largest(|of| of.width) / 4).clamp(1, 256);
    let rows_per_block = (128 / threads).max(1);
    let shape = LaunchConfig {
        grid_dim: (largest(|of| of.n).div_ceil(rows_per_block).max(1) as u32, all.len() as u32, 1),
        block_dim: (threads as u32, rows_per_block as u32, 1),
        shared_mem_bytes: 0,
    };
    let all = gpu.copy(all)?;
    launch!(gpu.stream, gpu.kernels.propagate_features, shape, at(&all));
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
