//! Pieces of one allocation, and lists of equal pieces of unequal jobs.
#![expect(unsafe_code, reason = "reads by address; the block says what makes it sound")]

use cudarc::driver::{DeviceRepr, result};

use crate::error::Result;
use crate::gpu::Gpu;

/// Hands out pieces of memory that starts at `base`, each at a multiple of 256 bytes.
pub(crate) struct Carver {
    base: u64,
    taken: usize,
}

impl Carver {
    pub fn new(base: u64) -> Carver {
        Carver { base, taken: 0 }
    }

    /// The address of the next `bytes`.
    pub fn take(&mut self, bytes: usize) -> u64 {
        let address = self.base + self.taken as u64;
        self.taken += bytes.next_multiple_of(256);
        address
    }

    pub fn taken(&self) -> usize {
        self.taken
    }
}

/// Piece `index` of job `job`, processed by one block of a launch. Laid out as in the kernel files.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tile {
    job: u32,
    index: u32,
}

// SAFETY: `repr(C)`, and the kernels declare the same fields.
unsafe impl DeviceRepr for Tile {}

impl Tile {
    pub fn new(job: usize, index: usize) -> Tile {
        Tile { job: job as u32, index: index as u32 }
    }
}

/// Splits the rows of every job into tiles of `size`; no tile holds rows of two jobs.
pub(crate) fn row_tiles(sizes: impl Iterator<Item = usize>, size: usize) -> Vec<Tile> {
    sizes.enumerate().flat_map(|(job, n)| (0..n.div_ceil(size)).map(move |i| Tile::new(job, i))).collect()
}

/// `len` numbers that a job left at `address`, once everything queued is done.
pub(crate) fn read_at<T: DeviceRepr + Default + Clone>(
    gpu: &Gpu,
    address: u64,
    len: usize,
) -> Result<Vec<T>> {
    let mut values = vec![T::default(); len];
    gpu.context.bind_to_thread()?;
    // SAFETY: the address lies in the job's memory, which holds at least `len` numbers from there on and outlives the copy.
    unsafe { result::memcpy_dtoh_async(&mut values, address, gpu.stream.cu_stream()) }?;
    gpu.finish()?;
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_aligned_and_do_not_overlap() {
        let mut carver = Carver::new(4096);
        assert_eq!(
            [carver.take(1), carver.take(256), carver.take(0), carver.take(9)],
            [4096, 4352, 4608, 4608]
        );
        assert_eq!(carver.taken(), 768);
    }

    #[test]
    fn tiles_cover_every_row_of_every_job_once() {
        let tiles = row_tiles([5, 0, 4, 1].into_iter(), 4);
        assert_eq!(tiles, [(0, 0), (0, 1), (2, 0), (3, 0)].map(|(job, index)| Tile::new(job, index)));
    }
}
