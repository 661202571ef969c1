//! GCN and MLP: many networks trained at once, a few launches per iteration. The arithmetic is in `network.cu`.

mod launches;

use std::sync::Arc;

use cudarc::driver::CudaSlice;
use labelsieve::Relevance;
use labelsieve::engine::Job;
use labelsieve::relevance::{Training, lambda_of, loss_weights};
use labelsieve_numerics::random::Stream;

use self::launches::Networks;
use crate::batch::{BatchModel, LoadedPool, upload_rows};
use crate::cells::{Cell, Group, MAX_CELLS, max_slot_bytes, scale_of_halves, x_bytes};
use crate::error::Result;
use crate::gpu::{Gpu, at};
use crate::graph::{
    ChangedRows, CleanRows, EdgeBuffers, Edges, NoisyEdges, Propagation, edges_per_row, insertion_bytes,
    propagate,
};
use crate::memory::Carver;
use crate::rows::{Rows, fill_side_by_side, row_keys};

/// The two-layer network with its settings; without neighbours it is the MLP.
pub(crate) struct NetworkModel {
    pub training: Training,
    pub lambda: Option<f32>,
    pub neighbours: Option<usize>,
}

/// The jobs of one pool, ready to be trained.
pub(crate) struct PreparedPool {
    shared: SharedRows,
    groups: Vec<PreparedGroup>,
}

/// X of the noisy rows alone, shared by all cells except for their own rows.
struct SharedRows {
    x: CudaSlice<u8>,
    inverse_degree: CudaSlice<f32>,
    keys: CudaSlice<u64>,
    edges: Option<Arc<Edges>>,
    n: usize,
    dim: usize,
}

/// Up to 32 cells side by side.
struct PreparedGroup {
    group: Group,
    cells: Vec<Cell>,
    own: OwnRows,
    /// p of the noisy rows, cell after cell.
    probability: CudaSlice<f32>,
    _loss_weights: Vec<CudaSlice<f32>>,
    _memory: [CudaSlice<u8>; 2],
}

impl BatchModel for NetworkModel {
    type Prepared = PreparedPool;

    fn neighbours(&self) -> Option<usize> {
        self.neighbours
    }

    /// An estimate: most clean rows add an edge to `neighbours` others and remove another. A hub may change more; if memory then runs
    /// out in spite of the plan, a smaller batch is tried.
    fn bytes(&self, k: usize, z: usize, dim: usize) -> usize {
        let count = self.neighbours.unwrap_or(0);
        let n_own = k + z.min(3 * k * count);
        let own_rows = n_own * (4 + 8 + 4);
        let loss_weights = (k + z) * 4;
        let probability = z * 4;
        let scratch = if self.neighbours.is_some() { insertion_bytes(k, z, count) } else { 0 };
        let (_, cell) = Cell::lay_out(0, z, n_own, n_own * count, dim);
        cell + max_slot_bytes(z, k) + own_rows + loss_weights + probability + scratch
    }

    /// X, inverse degrees, keys, the touched rows and the edges.
    fn shared_bytes(&self, z: usize, dim: usize) -> usize {
        x_bytes(z, dim) + z * (4 + 8 + 4 + 4) + self.neighbours.map_or(0, |count| z * count * 8)
    }

    fn prepare(&self, gpu: &Gpu, pool: &LoadedPool, jobs: &[&Job]) -> Result<PreparedPool> {
        let shared = SharedRows::new(gpu, pool)?;
        let groups = jobs
            .chunks(MAX_CELLS)
            .map(|jobs| self.prepare_group(gpu, pool, &shared, jobs))
            .collect::<Result<Vec<_>>>()?;
        Ok(PreparedPool { shared, groups })
    }

    fn solve(
        &self,
        gpu: &Gpu,
        prepared: &[PreparedPool],
        done: &mut dyn FnMut(usize, Relevance),
    ) -> Result<()> {
        let mut groups = Vec::new();
        let mut cells = Vec::new();
        for prepared in prepared.iter().flat_map(|pool| &pool.groups) {
            let number = groups.len() as u32;
            groups.push(prepared.group.numbered(cells.len()));
            cells.extend(prepared.cells.iter().map(|cell| cell.of_group(number)));
        }
        Networks::new(gpu, &groups, &cells)?.train(&self.training)?;
        let mut position = 0;
        let mut host = Vec::new();
        for pool in prepared {
            let counts = pool.shared.edge_counts(gpu)?;
            for group in &pool.groups {
                for relevance in group.relevance(gpu, counts.as_deref(), &mut host)? {
                    done(position, relevance);
                    position += 1;
                }
            }
        }
        Ok(())
    }
}

impl NetworkModel {
    fn prepare_group(
        &self,
        gpu: &Gpu,
        pool: &LoadedPool,
        shared: &SharedRows,
        jobs: &[&Job],
    ) -> Result<PreparedGroup> {
        let z = shared.n;
        let dim = shared.dim;
        let clean = CleanSets::upload(gpu, jobs)?;
        let max_clean = clean.sizes.iter().copied().max().unwrap_or(0);
        let memory = gpu.zeros::<u8>(Group::lay_out(0, z, dim, max_clean, jobs.len()).2)?;
        let (mut group, slots, _) = Group::lay_out(at(&memory), z, dim, max_clean, jobs.len());
        shared.describe(&mut group);
        let sets = clean.each(&slots);
        let insert =
            |edges: &NoisyEdges| edges.insert_all(gpu, &pool.rows, group.row_keys, group.touched, &sets);
        let insertions = pool.edges.as_ref().map(insert).transpose()?;
        let totals = match &insertions {
            Some(insertions) => insertions.totals()?,
            None => clean.sizes.iter().map(|&k| (k, 0)).collect(),
        };
        let own = OwnRows::new(gpu, &clean, &totals, z, insertions.is_some())?;
        let own_memory = gpu.buffer::<u8>(lay_out_cells(0, z, dim, &totals).1)?;
        let mut cells = lay_out_cells(at(&own_memory), z, dim, &totals).0;
        let probability = gpu.buffer::<f32>(z * jobs.len())?;
        let weights = side_by_side(jobs.len(), z, |i| LossWeights::new(jobs[i], self.lambda));
        let mut on_device = Vec::new();
        own.describe(&mut cells);
        for (i, cell) in cells.iter_mut().enumerate() {
            let stream = Stream::new(jobs[i].seed);
            cell.slot = slots[i] as u32;
            cell.probability = at(&probability) + (4 * z * i) as u64;
            cell.weight_key = stream.branch(0).key();
            cell.dropout_key = stream.branch(1).key();
            on_device.extend(weights[i].describe(gpu, cell, self.neighbours)?);
        }
        if let Some(insertions) = insertions {
            let into: Vec<ChangedRows> = cells.iter().map(changed_rows).collect();
            insertions.fill(&into)?;
        }
        let propagations: Vec<Propagation> = cells
            .iter()
            .zip(&sets)
            .map(|(cell, clean)| own_propagation(cell, clean.values, &pool.rows, &group))
            .collect();
        propagate(gpu, &propagations)?;
        Ok(PreparedGroup {
            group,
            cells,
            own,
            probability,
            _loss_weights: on_device,
            _memory: [memory, own_memory],
        })
    }
}

/// The weights of the rows of a job in the loss: one for clean and one for noisy rows, or one per row, clean rows first.
struct LossWeights {
    clean: f32,
    noisy: f32,
    max_clean: f32,
    max_noisy: f32,
    n_clean: usize,
    each: Option<Vec<f32>>,
}

impl LossWeights {
    fn new(job: &Job, lambda: Option<f32>) -> LossWeights {
        let weights = loss_weights(&job.problem, lambda_of(&job.problem, lambda));
        let (clean, noisy) = weights.split_at(job.problem.clean.len());
        let largest =
            |weights: &[f32]| weights.iter().fold(0f32, |largest, weight| largest.max(weight.abs()));
        let alike = |weights: &[f32]| weights.iter().all(|weight| weight.to_bits() == weights[0].to_bits());
        LossWeights {
            clean: clean.first().copied().unwrap_or(0.0),
            noisy: noisy.first().copied().unwrap_or(0.0),
            max_clean: largest(clean),
            max_noisy: largest(noisy),
            n_clean: clean.len(),
            each: if alike(clean) && alike(noisy) { None } else { Some(weights) },
        }
    }

    /// Sets the weights of a cell, and the scales of its gradients: |∂L/∂a| is at most the row's weight, and ∂s is a sum of up to
    /// 1 + count of them with factors of at most 1. Returns the weights if they differ between rows.
    fn describe(&self, gpu: &Gpu, cell: &mut Cell, count: Option<usize>) -> Result<Option<CudaSlice<f32>>> {
        let terms = 1.001 * (1 + count.unwrap_or(0)) as f32;
        cell.shared_scale = scale_of_halves(terms * self.max_noisy);
        cell.own_scale = scale_of_halves(terms * self.max_noisy.max(self.max_clean));
        cell.clean_weight = self.clean;
        cell.noisy_weight = self.noisy;
        cell.n_clean = self.n_clean as u32;
        let each = self.each.as_ref().map(|weights| gpu.copy(weights)).transpose()?;
        cell.loss_weights = each.as_ref().map_or(0, at);
        Ok(each)
    }
}

/// `make` of 0, 1, …, on several threads if each costs enough numbers.
fn side_by_side<R: Send>(n: usize, cost: usize, make: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let mut made: Vec<Option<R>> = (0..n).map(|_| None).collect();
    fill_side_by_side(&mut made, 1, cost, |items, made| {
        items.zip(made).for_each(|(item, made)| *made = Some(make(item)));
    });
    made.into_iter().map(|made| made.expect("every item is made")).collect()
}

/// Lays out cells with these numbers of own rows and edges in memory from `base`, and returns the bytes.
fn lay_out_cells(base: u64, n: usize, dim: usize, totals: &[(usize, usize)]) -> (Vec<Cell>, usize) {
    let mut carver = Carver::new(base);
    let cells = totals.iter().map(|&(n_own, n_edges)| {
        let bytes = Cell::lay_out(0, n, n_own, n_edges, dim).1;
        Cell::lay_out(carver.take(bytes), n, n_own, n_edges, dim).0
    });
    (cells.collect(), carver.taken())
}

/// The own rows of all cells, one after the other: their indices, keys, and the starts of their edges, plus one end per cell.
struct OwnRows {
    names: CudaSlice<u32>,
    keys: CudaSlice<u64>,
    offsets: Option<CudaSlice<u32>>,
}

impl OwnRows {
    /// Space for the rows that an insertion finds; without edges, a cell's own rows are the clean ones.
    fn new(
        gpu: &Gpu,
        clean: &CleanSets,
        totals: &[(usize, usize)],
        n_noisy: usize,
        has_edges: bool,
    ) -> Result<OwnRows> {
        if has_edges {
            let n: usize = totals.iter().map(|&(rows, _)| rows).sum();
            let offsets = Some(gpu.buffer(n + totals.len())?);
            return Ok(OwnRows { names: gpu.buffer(n)?, keys: gpu.buffer(n)?, offsets });
        }
        let names: Vec<u32> =
            clean.sizes.iter().flat_map(|&k| (n_noisy..n_noisy + k).map(|row| row as u32)).collect();
        Ok(OwnRows { names: gpu.copy(&names)?, keys: row_keys(gpu, &clean.rows)?, offsets: None })
    }

    fn describe(&self, cells: &mut [Cell]) {
        let mut first = 0;
        for (i, cell) in cells.iter_mut().enumerate() {
            cell.rows = at(&self.names) + 4 * first;
            cell.row_keys = at(&self.keys) + 8 * first;
            cell.offsets = self.offsets.as_ref().map_or(0, |offsets| at(offsets) + 4 * (first + i as u64));
            first += u64::from(cell.n_own);
        }
    }
}

fn changed_rows(cell: &Cell) -> ChangedRows {
    let edges = EdgeBuffers { offsets: cell.offsets, columns: cell.columns, weights: cell.weights };
    ChangedRows { rows: cell.rows, keys: cell.row_keys, edges }
}

fn own_propagation(cell: &Cell, clean: u64, noisy: &Rows, group: &Group) -> Propagation {
    Propagation {
        noisy: noisy.address(),
        clean,
        rows: cell.rows,
        offsets: cell.offsets,
        columns: cell.columns,
        weights: cell.weights,
        x: cell.x,
        inverse_degree: cell.inverse_degree,
        n: cell.n_own,
        n_noisy: noisy.n as u32,
        stride: noisy.stride as u32,
        width: group.width,
    }
}

/// The clean rows of several jobs, one after the other.
struct CleanSets {
    rows: Rows,
    keys: CudaSlice<u64>,
    sizes: Vec<usize>,
}

impl CleanSets {
    fn upload(gpu: &Gpu, jobs: &[&Job]) -> Result<CleanSets> {
        let rows = upload_rows(gpu, jobs.iter().map(|job| job.problem.clean))?;
        let sizes = jobs.iter().map(|job| job.problem.clean.len()).collect();
        Ok(CleanSets { keys: row_keys(gpu, &rows)?, rows, sizes })
    }

    /// The range of the rows of each job.
    fn each(&self, slots: &[usize]) -> Vec<CleanRows> {
        let mut first = 0;
        let each = self.sizes.iter().zip(slots).map(|(&k, &slot)| {
            let values = self.rows.address() + (4 * self.rows.stride * first) as u64;
            let keys = at(&self.keys) + 8 * first as u64;
            first += k;
            CleanRows { values, keys, k, slot }
        });
        each.collect()
    }
}

impl SharedRows {
    fn new(gpu: &Gpu, pool: &LoadedPool) -> Result<SharedRows> {
        let n = pool.rows.n;
        let dim = pool.rows.dim;
        let shared = SharedRows {
            x: gpu.buffer(x_bytes(n, dim))?,
            inverse_degree: gpu.buffer(n)?,
            keys: row_keys(gpu, &pool.rows)?,
            edges: pool.edges.as_ref().map(|edges| Arc::clone(&edges.edges)),
            n,
            dim,
        };
        let edges = shared.edges.as_deref();
        let propagation = Propagation {
            noisy: pool.rows.address(),
            offsets: edges.map_or(0, |edges| at(&edges.offsets)),
            columns: edges.map_or(0, |edges| at(&edges.columns)),
            weights: edges.map_or(0, |edges| at(&edges.weights)),
            x: at(&shared.x),
            inverse_degree: at(&shared.inverse_degree),
            n: n as u32,
            n_noisy: n as u32,
            stride: pool.rows.stride as u32,
            width: crate::cells::width_of(dim) as u32,
            ..Propagation::default()
        };
        propagate(gpu, &[propagation])?;
        Ok(shared)
    }

    fn describe(&self, group: &mut Group) {
        (group.x, group.row_keys, group.inverse_degree) =
            (at(&self.x), at(&self.keys), at(&self.inverse_degree));
        if let Some(edges) = self.edges.as_deref() {
            (group.offsets, group.columns, group.weights) =
                (at(&edges.offsets), at(&edges.columns), at(&edges.weights));
        }
    }

    /// The number of edges of each noisy row.
    fn edge_counts(&self, gpu: &Gpu) -> Result<Option<Vec<u32>>> {
        let count = |edges: &Arc<Edges>| Ok(edges_per_row(&gpu.read(&edges.offsets, self.n + 1)?));
        self.edges.as_ref().map(count).transpose()
    }
}

/// The number of edges of the noisy rows of each cell.
struct EdgeCounts<'a> {
    shared: &'a [u32],
    rows: Vec<u32>,
    offsets: Vec<u32>,
    n_own: Vec<usize>,
}

impl PreparedGroup {
    fn edge_counts<'a>(&self, gpu: &Gpu, shared: &'a [u32]) -> Result<EdgeCounts<'a>> {
        let n_own: Vec<usize> = self.cells.iter().map(|cell| cell.n_own as usize).collect();
        let n_rows: usize = n_own.iter().sum();
        let offsets = match &self.own.offsets {
            Some(offsets) => gpu.read(offsets, n_rows + n_own.len())?,
            None => Vec::new(),
        };
        Ok(EdgeCounts { shared, rows: gpu.read(&self.own.names, n_rows)?, offsets, n_own })
    }

    /// The results of the cells, once they are trained. `host`: memory to be reused.
    fn relevance(&self, gpu: &Gpu, shared: Option<&[u32]>, host: &mut Vec<f32>) -> Result<Vec<Relevance>> {
        let n = self.group.n as usize;
        let counts = shared.map(|shared| self.edge_counts(gpu, shared)).transpose()?;
        host.resize(host.len().max(n * self.cells.len()), 0.0);
        gpu.stream.memcpy_dtoh(&self.probability, &mut host[..n * self.cells.len()])?;
        gpu.finish()?;
        let relevance = side_by_side(self.cells.len(), n, |cell| -> Result<Relevance> {
            let relevance = Relevance::new(host[cell * n..][..n].to_vec())?;
            Ok(match &counts {
                Some(counts) => relevance.with_reciprocal_neighbours(counts.of_cell(cell)),
                None => relevance,
            })
        });
        relevance.into_iter().collect()
    }
}

impl EdgeCounts<'_> {
    fn of_cell(&self, cell: usize) -> Vec<u32> {
        let first: usize = self.n_own[..cell].iter().sum();
        let rows = &self.rows[first..first + self.n_own[cell]];
        let own = edges_per_row(&self.offsets[first + cell..][..rows.len() + 1]);
        let mut counts = self.shared.to_vec();
        for (&row, own) in rows.iter().zip(own) {
            if let Some(count) = counts.get_mut(row as usize) {
                *count = own; // a noisy row; clean ones are numbered behind them
            }
        }
        counts
    }
}
