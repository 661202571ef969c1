//! Exact neighbours, without an N×N matrix: fast products say who may be near, exact similarities decide.
//!
//! Rows are screened [in full](full), in 16-bit floats, or, where there are many and [few directions](directions) hold
//! most of them, [in stages](staged): by these directions alone and a bound on the rest.

mod directions;
mod full;
mod staged;
#[cfg(test)]
mod tests;

use cudarc::driver::CudaSlice;

use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::rows::Rows;

use directions::Directions;
use full::Screen;

/// The most neighbours a row can ask for; candidates beyond twice that many are measured early.
pub(crate) const MOST_NEIGHBOURS: usize = 256;

/// Candidate slots per row, as in the kernel files.
const CAPACITY: usize = 512;

/// For each row its `width` nearest others, best first.
pub(crate) struct Lists {
    pub indices: CudaSlice<u32>,
    pub similarities: CudaSlice<f32>,
    pub width: usize,
}

/// What a search of `count` neighbours of `n` rows of `dim` numbers needs beside the full one's memory.
pub(crate) fn staged_bytes(n: usize, dim: usize, count: usize) -> usize {
    if staged::may_pay(n, dim, count) { staged::bytes(n, dim) } else { 0 }
}

/// The `count` nearest other rows of each row.
pub(crate) fn nearest(gpu: &Gpu, rows: &Rows, count: usize) -> Result<Lists> {
    let width = count.min(rows.n.saturating_sub(1));
    let lists =
        Lists { indices: gpu.buffer(rows.n * width)?, similarities: gpu.buffer(rows.n * width)?, width };
    if width == 0 {
        return Ok(lists);
    }
    let screen = Screen::new(gpu, rows)?;
    if staged::may_pay(rows.n, rows.dim, width)
        && let Some(directions) = Directions::new(gpu, rows)?
        && let Some(p) = staged::choose(gpu, rows, &screen, &directions, width)?
    {
        match staged::search(gpu, rows, &screen, (&directions, p), &lists) {
            Err(Error::OutOfMemory) => (), // the full search needs less
            done => return done.map(|()| lists),
        }
    }
    full::search(gpu, rows, &screen, None, &lists)?;
    Ok(lists)
}
