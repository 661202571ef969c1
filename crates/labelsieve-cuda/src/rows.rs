//! Rows of features on the device, each padded to a whole number of 16-byte words.
#![expect(unsafe_code, reason = "page-locked memory comes uninitialised")]

use std::ops::Range;

use cudarc::driver::{CudaEvent, CudaSlice, PinnedHostSlice};
use labelsieve::Features;

use crate::error::Result;
use crate::gpu::{Gpu, at, blocks, launch};

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
        let stride = stride_of(dim);
        let mut values = gpu.buffer(n * stride)?;
        let rows_at_once = (STAGING_LEN / stride).max(1);
        for (step, first) in (0..n).step_by(rows_at_once).enumerate() {
            let end = n.min(first + rows_at_once);
            let (buffer, sent) = (&mut self.buffers[step % 2], &mut self.sent[step % 2]);
            if let Some(sent) = sent.take() {
                sent.synchronize()?;
            }
            let slice = &mut buffer.as_mut_slice()?[..(end - first) * stride];
            let fill = |rows: Range<usize>, out: &mut [f32]| fill(first + rows.start..first + rows.end, out);
            fill_side_by_side(slice, stride, stride, fill);
            gpu.stream.memcpy_htod(&*slice, &mut values.slice_mut(first * stride..end * stride))?;
            *sent = Some(gpu.stream.record_event(None)?);
        }
        Ok(Rows { values, n, dim, stride })
    }
}

/// What each row is ([`row_key`](labelsieve::random::row_key)), in order.
pub(crate) fn row_keys(gpu: &Gpu, rows: &Rows) -> Result<CudaSlice<u64>> {
    let keys = gpu.buffer(rows.n)?;
    launch!(
        gpu.stream,
        gpu.kernels.find_row_keys,
        blocks(rows.n.div_ceil(64), 256),
        rows.address(),
        rows.n as u32,
        rows.dim as u32,
        rows.stride as u32,
        at(&keys),
    );
    Ok(keys)
}

/// Fills rows of `stride` values by several threads, each its share of them. `cost`: numbers that a row makes a thread read or
/// write.
///
/// These are not rayon's threads, because the GPU is locked meanwhile: a thread that waits for others in rayon may begin
/// another task in the meantime, and when that task wants the GPU, it waits for itself.
pub(crate) fn fill_side_by_side<T: Send>(
    out: &mut [T],
    stride: usize,
    cost: usize,
    fill: impl Fn(Range<usize>, &mut [T]) + Sync,
) {
    const LEAST: usize = 256 << 10; // numbers, for which a thread is worth its start
    const MOST_THREADS: usize = 8; // which saturate memory
    let n_rows = out.len() / stride;
    let n_threads = rayon::current_num_threads().min(MOST_THREADS).min(n_rows * cost / LEAST).max(1);
    let share = n_rows.div_ceil(n_threads).max(1);
    let mut parts = out.chunks_mut(share * stride).enumerate().map(|(part, out)| {
        let start = part * share;
        (start..start + out.len() / stride, out)
    });
    std::thread::scope(|scope| {
        let own = parts.next();
        for (rows, out) in parts {
            let fill = &fill;
            scope.spawn(move || fill(rows, out));
        }
        if let Some((rows, out)) = own {
            fill(rows, out);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_filled_once_whatever_the_number_of_threads() {
        for n in [0, 1, 5, 1_000, 200_003] {
            let stride = 8;
            let mut out = vec![0.0; n * stride];
            fill_side_by_side(&mut out, stride, stride, |rows, out| {
                for (row, out) in rows.zip(out.chunks_exact_mut(stride)) {
                    out.iter_mut().for_each(|x| *x += 1.0 + row as f32);
                }
            });
            assert!(
                out.chunks_exact(stride)
                    .enumerate()
                    .all(|(row, out)| out.iter().all(|x| *x == 1.0 + row as f32))
            );
        }
    }

    #[test]
    fn keys_are_those_of_the_cpu_in_order() {
        let gpu = match Gpu::open(0) {
            Ok(gpu) => gpu,
            Err(error) => return eprintln!("skipped: {error}"),
        };
        let draws = labelsieve::random::Stream::new(4);
        for (n, dim) in [(9_000, 90), (1, 1), (65, 512)] {
            let features =
                Features::new((0..n * dim).map(|i| draws.normal(i)).collect(), dim as usize).unwrap();
            let rows = Staging::new(&gpu).unwrap().upload(&gpu, &features).unwrap();
            let found = gpu.read(&row_keys(&gpu, &rows).unwrap(), n as usize).unwrap();
            assert!(found == features.rows().map(labelsieve::random::row_key).collect::<Vec<_>>());
        }
    }
}
