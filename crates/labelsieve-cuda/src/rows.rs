//! Rows of features on the device, each padded to a whole number of 16-byte words.
#![expect(unsafe_code, reason = "page-locked memory comes uninitialised")]

use cudarc::driver::{CudaEvent, CudaSlice, PinnedHostSlice};
use labelsieve::Features;
use rayon::prelude::*;

use crate::error::Result;
use crate::gpu::{Gpu, at};

/// N rows of d numbers, `stride` apart; the padding is zero.
pub(crate) struct Rows {
    pub values: CudaSlice<f32>,
    pub n: usize,
    pub dim: usize,
    pub stride: usize,
}

impl Rows {
    pub fn address(&self) -> u64 {
        at(&self.values)
    }
}

/// Numbers from one row to the next.
pub(crate) fn stride_of(dim: usize) -> usize {
    dim.next_multiple_of(4)
}

/// Two page-locked buffers: while the device fetches one, the threads fill the other. Copies straight from ordinary memory
/// would go through a single thread of the driver.
pub(crate) struct Staging {
    buffers: [PinnedHostSlice<f32>; 2],
    sent: [Option<CudaEvent>; 2],
}

const STAGING_LEN: usize = 8 << 20; // 32 MiB each

impl Staging {
    pub fn new(gpu: &Gpu) -> Result<Staging> {
        // SAFETY: every part of a buffer is written before it is sent.
        let buffer = || unsafe { gpu.context.alloc_pinned(STAGING_LEN) };
        Ok(Staging { buffers: [buffer()?, buffer()?], sent: [None, None] })
    }

    /// Copies rows to the device.
    pub fn upload(&mut self, gpu: &Gpu, features: &Features) -> Result<Rows> {
        let (n, dim) = (features.len(), features.dim());
        let stride = stride_of(dim);
        let mut values = gpu.room(n * stride)?;
        let rows_at_once = (STAGING_LEN / stride).max(1);
        for (step, first) in (0..n).step_by(rows_at_once).enumerate() {
            let rows = rows_at_once.min(n - first);
            let (buffer, sent) = (&mut self.buffers[step % 2], &mut self.sent[step % 2]);
            if let Some(sent) = sent.take() {
                sent.synchronize()?;
            }
            let slice = &mut buffer.as_mut_slice()?[..rows * stride];
            fill(slice, features.block(first..first + rows), dim, stride);
            let mut target = values.slice_mut(first * stride..(first + rows) * stride);
            gpu.stream.memcpy_htod(&*slice, &mut target)?;
            *sent = Some(gpu.stream.record_event(None)?);
        }
        Ok(Rows { values, n, dim, stride })
    }
}

fn fill(out: &mut [f32], rows: &[f32], dim: usize, stride: usize) {
    const ROWS: usize = 256;
    out.par_chunks_mut(ROWS * stride).zip(rows.par_chunks(ROWS * dim)).for_each(|(out, rows)| {
        if dim == stride {
            out.copy_from_slice(rows);
            return;
        }
        for (out, row) in out.chunks_exact_mut(stride).zip(rows.chunks_exact(dim)) {
            out[..dim].copy_from_slice(row);
            out[dim..].fill(0.0);
        }
    });
}
