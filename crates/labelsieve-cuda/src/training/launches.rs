//! The launches of a training: forward, backward and Adam for a batch of networks.

use cudarc::driver::{CudaSlice, LaunchConfig};
use labelsieve::relevance::Training;

use crate::cells::{
    Cell, Group, HIDDEN, OWN, OWN_SLAB, ROWS, TILE, X_SCALE, max_theta, n_parameters, rate_of,
    scale_of_halves,
};
use crate::error::Result;
use crate::gpu::{Gpu, at, blocks, launch};
use crate::kernels::{
    BACKWARD_NARROW_SHARED, BACKWARD_WIDE_SHARED, FORWARD_NARROW_SHARED, FORWARD_WIDE_SHARED,
};
use crate::memory::Tile;

/// The tiles of a launch, one per block.
struct BlockList {
    tiles: CudaSlice<Tile>,
    n: usize,
}

impl BlockList {
    fn new(gpu: &Gpu, sizes: impl Iterator<Item = (usize, usize)>) -> Result<BlockList> {
        let tiles: Vec<Tile> =
            sizes.flat_map(|(job, n)| (0..n).map(move |index| Tile::new(job, index))).collect();
        Ok(BlockList { n: tiles.len(), tiles: gpu.copy(&tiles)? })
    }
}

/// Queues a kernel over a list of tiles, unless it is empty.
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

/// A batch of networks and the tiles of each launch.
pub(super) struct Networks<'a> {
    gpu: &'a Gpu,
    groups: CudaSlice<Group>,
    cells: CudaSlice<Cell>,
    n_cells: usize,
    initial: BlockList,
    forward_wide: BlockList,
    forward_narrow: BlockList,
    sparse: BlockList,
    backward_wide: BlockList,
    backward_narrow: BlockList,
}

impl<'a> Networks<'a> {
    pub fn new(gpu: &'a Gpu, groups: &[Group], cells: &[Cell]) -> Result<Networks<'a>> {
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
            initial: BlockList::new(gpu, cells.iter().enumerate().map(initial))?,
            forward_wide: BlockList::new(
                gpu,
                wide().map(|(number, group)| (number, group.n_row_blocks() * group.n_chunks as usize)),
            )?,
            forward_narrow: BlockList::new(gpu, narrow(Group::n_row_blocks, |_, n| n.div_ceil(ROWS)))?,
            sparse: BlockList::new(gpu, sparse_shared.chain(sparse_own))?,
            backward_wide: BlockList::new(
                gpu,
                wide().map(|(number, group)| (number, group.n_slab_blocks() * group.n_chunks as usize)),
            )?,
            backward_narrow: BlockList::new(
                gpu,
                narrow(Group::n_slab_blocks, |group, n| n.div_ceil(OWN_SLAB) * group.n_column_blocks()),
            )?,
        })
    }

    /// Writes p of every noisy row, without dropout, to each cell's memory.
    pub fn train(&self, training: &Training) -> Result<()> {
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

    /// Adam's two corrections depend on the iteration alone and are computed here in `f64`, as on the CPU.
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
