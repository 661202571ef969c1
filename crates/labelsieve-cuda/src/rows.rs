//! Rows of features on the device, each padded to a whole number of 16-byte words.
#![expect(unsafe_code, reason = "page-locked memory comes uninitialised")]

use std::ops::Range;

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

    /// Copies features to the device.
    pub fn upload(&mut self, gpu: &Gpu, features: &Features) -> Result<Rows> {
        let dim = features.dim();
        self.upload_with(gpu, features.len(), dim, |rows, out| {
            if dim == stride_of(dim) {
                return out.copy_from_slice(features.block(rows)); // one long copy, which is faster than many
            }
            for (i, out) in rows.zip(out.chunks_exact_mut(stride_of(dim))) {
                out[..dim].copy_from_slice(features.row(i));
                out[dim..].fill(0.0);
            }
        })
    }

    /// Copies `n` rows of `dim` numbers to the device; `fill` writes a range of them, padded.
    pub fn upload_with(
        &mut self,
        gpu: &Gpu,
        n: usize,
        dim: usize,
        fill: impl Fn(Range<usize>, &mut [f32]) + Sync,
    ) -> Result<Rows> {
        const ROWS: usize = 256; // per unit of work
        let stride = stride_of(dim);
        let mut values = gpu.room(n * stride)?;
        let rows_at_once = (STAGING_LEN / stride).max(1);
        for (step, first) in (0..n).step_by(rows_at_once).enumerate() {
            let end = n.min(first + rows_at_once);
            let (buffer, sent) = (&mut self.buffers[step % 2], &mut self.sent[step % 2]);
            if let Some(sent) = sent.take() {
                sent.synchronize()?;
            }
            let slice = &mut buffer.as_mut_slice()?[..(end - first) * stride];
            slice.par_chunks_mut(ROWS * stride).enumerate().for_each(|(chunk, out)| {
                let start = first + chunk * ROWS;
                fill(start..start + out.len() / stride, out);
            });
            gpu.stream.memcpy_htod(&*slice, &mut values.slice_mut(first * stride..end * stride))?;
            *sent = Some(gpu.stream.record_event(None)?);
        }
        Ok(Rows { values, n, dim, stride })
    }
}
