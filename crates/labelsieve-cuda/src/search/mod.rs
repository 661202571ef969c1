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
use directions::Directions;
use full::Screen;

use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::rows::Rows;

/// The most neighbours a row can ask for; candidates beyond twice that many are measured early.
pub(crate) const MAX_NEIGHBOURS: usize = 256;

/// Candidate slots per row, as in the kernel files.
const CAPACITY: usize = 512;

/// For each row its `width` nearest others, best first.
pub(crate) struct Lists {
    pub indices: CudaSlice<u32>,
    pub similarities: CudaSlice<f32>,
    pub width: usize,
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
    match in_stages(gpu, rows, &screen, &lists) {
        Ok(true) => return Ok(lists),
        Ok(false) | Err(Error::OutOfMemory) => (), // the full search needs less
        Err(error) => return Err(error),
    }
    full::search(gpu, rows, &screen, None, &lists)?;
    Ok(lists)
}

/// Fills the lists in stages, if that pays and there is memory for it; tells whether it did.
fn in_stages(gpu: &Gpu, rows: &Rows, screen: &Screen, lists: &Lists) -> Result<bool> {
    if !staged::may_pay(rows.n, rows.dim, lists.width) || gpu.available()? < staged::bytes(rows.n, rows.dim) {
        return Ok(false);
    }
    let Some(directions) = Directions::new(gpu, rows)? else { return Ok(false) };
    let Some(p) = staged::choose(gpu, rows, screen, &directions, lists.width)? else { return Ok(false) };
    staged::search(gpu, rows, screen, (&directions, p), lists)?;
    Ok(true)
}
