//! Search in stages, for many rows that [few directions](super::directions) hold.
//!
//! 1. A sample says which floor some hundred rows will reach, row by row: a guess.
//! 2. All pairs are bounded by their leads, and those that reach the floor of a row are noted for it. Similarity is
//!    symmetric, so half of the pairs are enough.
//! 3. Survivors are measured exactly. When `width` of them reach the floor, nobody else can be nearer. Else the guess was
//!    wrong, or more survived than a list holds; but what was measured is a floor that cannot be wrong, for a second try.
//! 4. Rows that even that leaves with too many, duplicates for instance, are searched in full.
#![expect(unsafe_code, reason = "structs of plain numbers, handed to kernels")]

use cudarc::driver::{CudaSlice, DeviceRepr, LaunchConfig};

use super::directions::{Directions, Leads};
use super::full::{self, Chosen, Pass, Screen};
use super::{CAPACITY, Lists};
use crate::error::Result;
use crate::gpu::{Gpu, at, blocks, launch, warp_per_row};
use crate::kernels::pairs_shared;
use crate::rows::Rows;

/// With fewer rows the directions cost more than they save.
const MIN_ROWS: usize = 40_000;
/// Longer lists of neighbours would need longer lists of survivors.
const MAX_NEIGHBOURS: usize = 64;

/// Rows and columns of the pairs by which the number of directions is chosen.
const PROBES: usize = 256;
const PROBED: usize = 2048;
/// The most survivors per row, on average, that may pay: most lists are too short then.
const MAX_SURVIVORS: f64 = 800.0;

/// Scores of a sample that a floor is guessed from.
const SAMPLED_SCORES: usize = 32;
/// How many times as many rows as are wanted should reach the floor, and how many the spare one, should these be too few.
const REACHING: f32 = 3.0;
const REACHING_SPARE: f32 = 9.0;

/// As in `pairs.cu` and `floors.cu`.
const TILE_ROWS: usize = 256;
const SEGMENT: usize = 16_384;
const FLOOR_STEPS: usize = 8192;

/// As `Side` in `pairs.cu`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Side {
    leads: u64,
    ids: u64,
    floors: u64,
    n: u64,
}

/// As `Lists` in the kernel files.
#[repr(C)]
#[derive(Clone, Copy)]
struct SurvivorLists {
    ids: u64,
    counts: u64,
}

/// As `Again` in `survivors.cu`.
#[repr(C)]
#[derive(Clone, Copy)]
struct AgainAddresses {
    ids: u64,
    floors: u64,
    count: u64,
}

// SAFETY: `repr(C)`, and the kernels declare the same fields; all three.
unsafe impl DeviceRepr for Side {}
// SAFETY: as above.
unsafe impl DeviceRepr for SurvivorLists {}
// SAFETY: as above.
unsafe impl DeviceRepr for AgainAddresses {}

/// Whether to look for directions at all.
pub(super) fn may_pay(n: usize, dim: usize, width: usize) -> bool {
    n >= MIN_ROWS && (128..=8192).contains(&dim) && width <= MAX_NEIGHBOURS
}

/// Memory for `n` rows of `dim` numbers, at most.
pub(super) fn bytes(n: usize, dim: usize) -> usize {
    const MAX_WIDTH: usize = 128;
    let leads = 3 * MAX_WIDTH * 2; // as they come, in order, and once more for a second try
    let floors_and_ids = 11 * 4;
    n * (CAPACITY * 4 + leads + floors_and_ids) + Directions::bytes(dim)
}

/// The number of directions that makes the search fastest; none if the full search is faster.
pub(super) fn choose(
    gpu: &Gpu,
    rows: &Rows,
    screen: &Screen,
    directions: &Directions,
    width: usize,
) -> Result<Option<usize>> {
    const LIKELY_MARGIN: f32 = 1e-3;
    let probe_step = rows.n / PROBES;
    let sample_step = rows.n / PROBED;
    let ids: Vec<u32> = (0..PROBES).map(|probe| (probe * probe_step) as u32).collect();
    let ids = gpu.copy(&ids)?;
    let floors = guess(gpu, rows, screen, Some(Chosen { ids: &ids, n: PROBES }), width)?;
    let p = directions.count;
    let probes = gpu.buffer(PROBES * p)?;
    let sample = gpu.buffer(p * PROBED)?;
    directions.coordinates(gpu, rows, (0, PROBES, probe_step), (p, p), &probes)?;
    directions.turned_coordinates(gpu, rows, (PROBED, sample_step), &sample)?;
    let counts = gpu.zeros::<u32>(3)?;
    launch!(
        gpu.stream,
        gpu.kernels.count_survivors,
        blocks(PROBES, 256),
        at(&probes),
        p as u32,
        p as u32,
        at(&sample),
        PROBED as u32,
        at(&floors.guess),
        LIKELY_MARGIN,
        at(&counts),
    );
    let counts = gpu.read(&counts, 3)?;
    let survivors = |count: u32| f64::from(count) / (PROBES * PROBED) as f64 * rows.n as f64;
    let mut best = (full_cost(rows.n), None);
    for (p, count) in [63, 95, 127].into_iter().zip(counts) {
        let survivors = survivors(count);
        let cost = staged_cost(rows.n, p, survivors);
        if p <= directions.count && survivors <= MAX_SURVIVORS && cost < best.0 {
            best = (cost, Some(p));
        }
    }
    Ok(best.1)
}

/// Nanoseconds per row on an H200.
fn full_cost(n: usize) -> f64 {
    3.6e-3 * n as f64
}

/// As above: half the pairs, survivors to measure, rows to be screened again because theirs do not fit a list, and what it
/// costs to find directions and floors.
fn staged_cost(n: usize, p: usize, survivors: f64) -> f64 {
    let pairs = n as f64 / 2.0 * (3e-4 + 2.9e-6 * (p + 1) as f64);
    let measured = 0.35 * survivors.min(CAPACITY as f64);
    let share_again = ((survivors - 200.0) / 700.0).clamp(0.0, 1.0);
    let again = share_again * (2.0 * pairs + 90.0 + 0.07 * full_cost(n));
    pairs + measured + again + 3e6 / n as f64
}

/// The neighbours of all rows, by the first `p` directions.
pub(super) fn search(
    gpu: &Gpu,
    rows: &Rows,
    screen: &Screen,
    (directions, p): (&Directions, usize),
    lists: &Lists,
) -> Result<()> {
    let n = rows.n;
    let floors = guess(gpu, rows, screen, None, lists.width)?;
    let leads = Leads::new(gpu, rows, directions, p)?;
    let stage =
        Stage { gpu, rows, lists, survivors: gpu.buffer(n * CAPACITY)?, spare: &floors.spare, leads: &leads };
    let ordered = Ordered::new(gpu, &leads, &floors.guess, n)?;
    let again = Again::new(gpu, n)?;
    let rest = Again::new(gpu, n)?;
    stage.run(ordered.side(n), ordered.side(n), Mirrored::Yes, Some(&again), &rest)?;
    let n_again = again.len(gpu)?;
    if n_again > 0 {
        let gathered = gather(gpu, &leads, &again.ids, n_again)?;
        let side =
            Side { leads: at(&gathered), ids: at(&again.ids), floors: at(&again.floors), n: n_again as u64 };
        stage.run(side, ordered.side(n), Mirrored::No, None, &rest)?;
    }
    let n_rest = rest.len(gpu)?;
    if n_rest > 0 {
        full::search(gpu, rows, screen, Some(Chosen { ids: &rest.ids, n: n_rest }), lists)?;
    }
    Ok(())
}

/// Scores that rows' neighbours will probably reach.
struct Floors {
    guess: CudaSlice<f32>,
    /// Lower, for rows whose guess was too high to learn from.
    spare: CudaSlice<f32>,
}

/// Guesses floors of all rows, or of those chosen.
fn guess(gpu: &Gpu, rows: &Rows, screen: &Screen, chosen: Option<Chosen>, width: usize) -> Result<Floors> {
    let n = chosen.map_or(rows.n, |chosen| chosen.n);
    let n_columns = (rows.n / 64).clamp(2048, 8192).min(rows.n);
    let column_step = rows.n / n_columns;
    let floors = Floors { guess: gpu.buffer(n)?, spare: gpu.buffer(n)? };
    let pass = Pass { gpu, rows, screen, chosen, n_columns, column_step, width: SAMPLED_SCORES, margin: 0.0 };
    pass.run(|block, first_row, n_rows| {
        launch!(
            block.stream,
            gpu.kernels.guess_floors,
            warp_per_row(n_rows),
            at(&block.candidates),
            at(&block.counts),
            n_rows as u32,
            first_row as u32,
            rows.n as f32 / n_columns as f32,
            REACHING * width as f32,
            REACHING_SPARE * width as f32,
            at(&floors.guess),
            at(&floors.spare),
        );
        Ok(())
    })?;
    Ok(floors)
}

/// Rows by their floors, lowest first.
struct Ordered {
    leads: CudaSlice<u16>,
    ids: CudaSlice<u32>,
    floors: CudaSlice<f32>,
}

impl Ordered {
    fn new(gpu: &Gpu, leads: &Leads, guess: &CudaSlice<f32>, n: usize) -> Result<Ordered> {
        let steps = gpu.zeros::<u32>(FLOOR_STEPS)?;
        let ids = gpu.buffer::<u32>(n)?;
        let floors = gpu.buffer::<f32>(n)?;
        let all = blocks(n.div_ceil(256), 256);
        launch!(gpu.stream, gpu.kernels.count_steps, all, at(guess), n as u32, leads.margin, at(&steps));
        launch!(gpu.stream, gpu.kernels.start_steps, blocks(1, 1024), at(&steps));
        launch!(
            gpu.stream,
            gpu.kernels.order_rows,
            all,
            at(guess),
            n as u32,
            leads.margin,
            at(&steps),
            at(&ids),
            at(&floors),
        );
        Ok(Ordered { leads: gather(gpu, leads, &ids, n)?, ids, floors })
    }

    fn side(&self, n: usize) -> Side {
        Side { leads: at(&self.leads), ids: at(&self.ids), floors: at(&self.floors), n: n as u64 }
    }
}

fn gather(gpu: &Gpu, leads: &Leads, ids: &CudaSlice<u32>, n: usize) -> Result<CudaSlice<u16>> {
    let words = leads.width / 8;
    let gathered = gpu.buffer(n * leads.width)?;
    launch!(
        gpu.stream,
        gpu.kernels.gather_rows,
        blocks((n * words).div_ceil(256), 256),
        at(&leads.values),
        at(ids),
        n as u32,
        words as u32,
        at(&gathered),
    );
    Ok(gathered)
}

/// Whether both sides of the pairs are the same rows in the order of their floors.
#[derive(Clone, Copy, PartialEq)]
enum Mirrored {
    Yes,
    No,
}

struct Stage<'a> {
    gpu: &'a Gpu,
    rows: &'a Rows,
    lists: &'a Lists,
    /// Lists of every row.
    survivors: CudaSlice<u32>,
    spare: &'a CudaSlice<f32>,
    leads: &'a Leads,
}

impl Stage<'_> {
    /// Screens rows against columns, measures who survives and notes the rows that are still without neighbours.
    fn run(
        &self,
        rows: Side,
        columns: Side,
        mirrored: Mirrored,
        again: Option<&Again>,
        rest: &Again,
    ) -> Result<()> {
        let gpu = self.gpu;
        let n = rows.n as usize;
        let counts = gpu.zeros::<u32>(n)?;
        let survivors = SurvivorLists { ids: at(&self.survivors), counts: at(&counts) };
        let segments = (columns.n as usize).div_ceil(SEGMENT) as u32;
        let shape = LaunchConfig {
            grid_dim: (n.div_ceil(TILE_ROWS) as u32, segments, 1),
            block_dim: (256, 1, 1),
            shared_mem_bytes: pairs_shared(self.leads.width),
        };
        let screen_pairs = gpu.kernels.screen_pairs(self.leads.width);
        launch!(
            gpu.stream,
            screen_pairs,
            shape,
            rows,
            columns,
            survivors,
            u32::from(mirrored == Mirrored::Yes),
        );
        launch!(
            gpu.stream,
            gpu.kernels.rank_survivors,
            warp_per_row(n),
            survivors,
            rows.ids,
            rows.floors,
            n as u32,
            at(&self.leads.values),
            self.leads.width as u32,
            self.leads.margin,
            self.lists.width as u32,
            self.rows.address(),
            self.rows.dim as u32,
            self.rows.stride as u32,
            at(self.spare),
            again.map_or(AgainAddresses { ids: 0, floors: 0, count: 0 }, Again::addresses),
            rest.addresses(),
            at(&self.lists.indices),
            at(&self.lists.similarities),
        );
        Ok(())
    }
}

/// Rows without neighbours yet, in any order.
struct Again {
    ids: CudaSlice<u32>,
    floors: CudaSlice<f32>,
    count: CudaSlice<u32>,
}

impl Again {
    fn new(gpu: &Gpu, n: usize) -> Result<Again> {
        Ok(Again { ids: gpu.buffer(n)?, floors: gpu.buffer(n)?, count: gpu.zeros(1)? })
    }

    fn addresses(&self) -> AgainAddresses {
        AgainAddresses { ids: at(&self.ids), floors: at(&self.floors), count: at(&self.count) }
    }

    fn len(&self, gpu: &Gpu) -> Result<usize> {
        Ok(gpu.read(&self.count, 1)?[0] as usize)
    }
}
