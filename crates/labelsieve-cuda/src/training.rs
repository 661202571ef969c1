//! GCN and MLP: many networks trained at once, a few launches an iteration. The arithmetic is in `network.cu`.

use std::sync::Arc;

use cudarc::driver::{CudaSlice, LaunchConfig};
use labelsieve::Relevance;
use labelsieve::engine::Job;
use labelsieve::relevance::{Training, lambda_of, loss_weights};
use labelsieve_numerics::random::Stream;

use crate::batch::{BatchModel, LoadedPool, upload_rows};
use crate::cells::{
    Cell, Group, HIDDEN, MAX_CELLS, OWN, OWN_SLAB, ROWS, TILE, X_SCALE, max_slot_bytes, max_theta,
    n_parameters, rate_of, scale_of_halves, x_bytes,
};
use crate::error::Result;
use crate::gpu::{Gpu, at, blocks, launch};
use crate::graph::{
    ChangedRows, CleanRows, EdgeBuffers, Edges, NoisyEdges, Propagation, edges_per_row, insertion_bytes,
    propagate,
};
use crate::kernels::{
    BACKWARD_NARROW_SHARED, BACKWARD_WIDE_SHARED, FORWARD_NARROW_SHARED, FORWARD_WIDE_SHARED,
};
use crate::memory::{Carver, Tile};
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

/// X of the noisy rows by themselves, which every cell has but for its own rows.
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

    /// Most clean rows are near `neighbours` others, which they give an edge and cost another; a hub among them may change more.
    /// Then memory may run out in spite of the plan, and a smaller batch is tried.
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

/// What the rows of a job weigh in the loss: all clean and all noisy ones alike, or each for itself, clean rows first.
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

    /// Tells the cell, and how large its gradients can get: |∂L/∂a| is at most the row's weight, and ∂s is a sum of up to
    /// 1 + count of them with factors of at most 1. Comes back where the weights differ from row to row.
    fn describe(&self, gpu: &Gpu, cell: &mut Cell, count: Option<usize>) -> Result<Option<CudaSlice<f32>>> {
        let terms = 1.001 * (1 + count.unwrap_or(0)) as f32;
        cell.shared_scale = scale_of_halves(terms * self.max_noisy);
        cell.own_scale = scale_of_halves(terms * self.max_noisy.max(self.max_clean));
        (cell.clean_weight, cell.noisy_weight) = (self.clean, self.noisy);
        cell.n_clean = self.n_clean as u32;
        let each = self.each.as_ref().map(|weights| gpu.copy(weights)).transpose()?;
        cell.loss_weights = each.as_ref().map_or(0, at);
        Ok(each)
    }
}

/// `make` of 0, 1, …, by several threads where each costs this many numbers.
fn side_by_side<R: Send>(n: usize, cost: usize, make: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let mut made: Vec<Option<R>> = (0..n).map(|_| None).collect();
    fill_side_by_side(&mut made, 1, cost, |items, made| {
        items.zip(made).for_each(|(item, made)| *made = Some(make(item)));
    });
    made.into_iter().map(|made| made.expect("every item is made")).collect()
}

/// Cells with so many rows and edges of their own in memory that starts at `base`, and the bytes that takes.
fn lay_out_cells(base: u64, n: usize, dim: usize, totals: &[(usize, usize)]) -> (Vec<Cell>, usize) {
    let mut carver = Carver::new(base);
    let cells = totals.iter().map(|&(n_own, n_edges)| {
        let bytes = Cell::lay_out(0, n, n_own, n_edges, dim).1;
        Cell::lay_out(carver.take(bytes), n, n_own, n_edges, dim).0
    });
    (cells.collect(), carver.taken())
}

/// The own rows of all cells, one after the other: which they are, what they are, and where their edges begin, with one number
/// more for each cell.
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

    /// Where the rows of each job are.
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

    /// How many edges each row has among the noisy ones.
    fn edge_counts(&self, gpu: &Gpu) -> Result<Option<Vec<u32>>> {
        let count = |edges: &Arc<Edges>| Ok(edges_per_row(&gpu.read(&edges.offsets, self.n + 1)?));
        self.edges.as_ref().map(count).transpose()
    }
}

/// How many edges the noisy rows of each cell have.
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

    /// What the cells say, once they are trained. `host`: memory to be used again.
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

/// A list of work that a launch goes through, a block each.
struct Work {
    tiles: CudaSlice<Tile>,
    n: usize,
}

impl Work {
    fn new(gpu: &Gpu, sizes: impl Iterator<Item = (usize, usize)>) -> Result<Work> {
        let tiles: Vec<Tile> =
            sizes.flat_map(|(job, n)| (0..n).map(move |index| Tile::new(job, index))).collect();
        Ok(Work { n: tiles.len(), tiles: gpu.copy(&tiles)? })
    }
}

/// Queues a kernel over a list of work, if there is any.
macro_rules! launch_over {
    ($networks:expr, $kernel:ident, $work:expr, $threads:expr, $shared:expr $(, $argument:expr)* $(,)?) => {
        if $work.n > 0 {
            let gpu = $networks.gpu;
            let shape = blocks($work.n, $threads);
            let shape = LaunchConfig { shared_mem_bytes: $shared, ..shape };
            launch!(
                gpu.stream,
                gpu.kernels.$kernel,
                shape,
                at(&$work.tiles),
                at(&$networks.groups),
                at(&$networks.cells),
                $($argument),*
            );
        }
    };
}

/// A batch of networks and the lists of work that each launch goes through.
struct Networks<'a> {
    gpu: &'a Gpu,
    groups: CudaSlice<Group>,
    cells: CudaSlice<Cell>,
    n_cells: usize,
    initial: Work,
    forward_wide: Work,
    forward_narrow: Work,
    sparse: Work,
    backward_wide: Work,
    backward_narrow: Work,
}

impl<'a> Networks<'a> {
    fn new(gpu: &'a Gpu, groups: &[Group], cells: &[Cell]) -> Result<Networks<'a>> {
        let group_of = |cell: &Cell| &groups[cell.group as usize];
        let wide = || groups.iter().enumerate().filter(|(_, group)| !group.is_narrow());
        // A single cell's group, and every cell's own rows.
        let narrow = |shared: fn(&Group) -> usize, own: fn(&Group, usize) -> usize| {
            cells.iter().enumerate().flat_map(move |(number, cell)| {
                let group = group_of(cell);
                let shared = if group.is_narrow() { shared(group) } else { 0 };
                [(number, shared), (number | OWN, own(group, cell.n_own as usize))]
            })
        };
        let in_tiles = |n: u32| (n as usize).div_ceil(TILE);
        let sparse_shared = groups.iter().enumerate().map(|(number, group)| (number, in_tiles(group.n)));
        let sparse_own = cells.iter().enumerate().map(|(number, cell)| (number | OWN, in_tiles(cell.n_own)));
        let initial = |(number, cell): (usize, &Cell)| {
            (number, n_parameters(group_of(cell).width as usize).div_ceil(256))
        };
        Ok(Networks {
            gpu,
            groups: gpu.copy(groups)?,
            cells: gpu.copy(cells)?,
            n_cells: cells.len(),
            initial: Work::new(gpu, cells.iter().enumerate().map(initial))?,
            forward_wide: Work::new(
                gpu,
                wide().map(|(number, group)| (number, group.n_row_blocks() * group.n_chunks as usize)),
            )?,
            forward_narrow: Work::new(gpu, narrow(Group::n_row_blocks, |_, n| n.div_ceil(ROWS)))?,
            sparse: Work::new(gpu, sparse_shared.chain(sparse_own))?,
            backward_wide: Work::new(
                gpu,
                wide().map(|(number, group)| (number, group.n_slab_blocks() * group.n_chunks as usize)),
            )?,
            backward_narrow: Work::new(
                gpu,
                narrow(Group::n_slab_blocks, |group, n| n.div_ceil(OWN_SLAB) * group.n_column_blocks()),
            )?,
        })
    }

    /// Leaves p of every noisy row, in evaluation mode, in each cell's memory.
    fn train(&self, training: &Training) -> Result<()> {
        let theta_scale = scale_of_halves(max_theta(training));
        launch_over!(self, initial_parameters, self.initial, 256, 0, theta_scale);
        let threshold = (training.dropout * 65536.0) as u32;
        let scale = 1.0 / (1.0 - training.dropout);
        for iteration in 0..training.iterations {
            self.forward(iteration, threshold, scale, theta_scale)?;
            launch_over!(self, probability, self.sparse, 256, 0, 0u32);
            launch_over!(self, gather, self.sparse, 256, 0);
            launch_over!(self, backward_wide, self.backward_wide, 256, BACKWARD_WIDE_SHARED);
            let shared = BACKWARD_NARROW_SHARED;
            launch_over!(self, backward_narrow, self.backward_narrow, 256, shared, OWN_SLAB as u32);
            self.adam_step(training, iteration, scale, theta_scale)?;
        }
        self.forward(0, 0, 1.0, theta_scale)?;
        launch_over!(self, probability, self.sparse, 256, 0, 1u32);
        Ok(())
    }

    /// Active units and s.
    fn forward(&self, iteration: usize, threshold: u32, scale: f32, theta_scale: f32) -> Result<()> {
        let iteration = iteration as u32;
        let unscale = 1.0 / (X_SCALE * theta_scale);
        let wide = FORWARD_WIDE_SHARED;
        let narrow = FORWARD_NARROW_SHARED;
        launch_over!(self, forward_wide, self.forward_wide, 256, wide, iteration, threshold, scale, unscale);
        launch_over!(
            self,
            forward_narrow,
            self.forward_narrow,
            256,
            narrow,
            iteration,
            threshold,
            scale,
            unscale
        );
        Ok(())
    }

    /// Adam's two corrections are numbers of the iteration alone, made here in `f64` as on the CPU.
    fn adam_step(&self, training: &Training, iteration: usize, scale: f32, theta_scale: f32) -> Result<()> {
        let gpu = self.gpu;
        let step = iteration as i32 + 1;
        let rate = rate_of(training, iteration);
        let rate = (f64::from(rate) / (1.0 - f64::from(0.9f32).powi(step))) as f32;
        let root = (1.0 - f64::from(0.999f32).powi(step)).sqrt() as f32;
        launch!(
            gpu.stream,
            gpu.kernels.adam,
            blocks(self.n_cells * HIDDEN, 512),
            at(&self.groups),
            at(&self.cells),
            rate,
            root,
            training.weight_decay,
            scale,
            theta_scale,
        );
        Ok(())
    }
}
