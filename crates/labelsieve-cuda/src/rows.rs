//! Rows of features on the device, each padded to a whole number of 16-byte words.
#![expect(unsafe_code, reason = "page-locked memory comes uninitialised")]

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;

use cudarc::driver::{CudaEvent, CudaSlice, CudaStream, PinnedHostSlice};
use labelsieve::Features;

use crate::error::{Error, Result};
use crate::gpu::{Gpu, at, blocks, launch};

/// N rows of d numbers, `stride` apart; the padding is zero.
pub(crate) struct Rows {
    pub values: CudaSlice<f32>,
    pub n: usize,
    pub dim: usize,
    pub stride: usize,
}

impl Rows {
    /// Memory for `n` rows of `dim` numbers, which are any.
    fn new(gpu: &Gpu, n: usize, dim: usize) -> Result<Rows> {
        let stride = stride_of(dim);
        Ok(Rows { values: gpu.buffer(n * stride)?, n, dim, stride })
    }

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
        self.upload_with(gpu, features.len(), features.dim(), copied(features))
    }

    /// Copies `n` rows of `dim` numbers to the device; `fill` writes a range of them, padded.
    pub fn upload_with(
        &mut self,
        gpu: &Gpu,
        n: usize,
        dim: usize,
        fill: impl Fn(Range<usize>, &mut [f32]) + Sync,
    ) -> Result<Rows> {
        let mut rows = Rows::new(gpu, n, dim)?;
        self.send(&gpu.stream, &mut rows, fill)?;
        Ok(rows)
    }

    /// The same into rows that are there. They may be read once what is on the stream is done.
    fn send(
        &mut self,
        stream: &Arc<CudaStream>,
        rows: &mut Rows,
        fill: impl Fn(Range<usize>, &mut [f32]) + Sync,
    ) -> Result<()> {
        let Rows { ref mut values, n, stride, .. } = *rows;
        let rows_at_once = (STAGING_LEN / stride).max(1);
        for (step, first) in (0..n).step_by(rows_at_once).enumerate() {
            let end = n.min(first + rows_at_once);
            let buffer = &mut self.buffers[step % 2];
            let sent = &mut self.sent[step % 2];
            if let Some(sent) = sent.take() {
                sent.synchronize()?;
            }
            let slice = &mut buffer.as_mut_slice()?[..(end - first) * stride];
            let fill = |rows: Range<usize>, out: &mut [f32]| fill(first + rows.start..first + rows.end, out);
            fill_side_by_side(slice, stride, stride, fill);
            stream.memcpy_htod(&*slice, &mut values.slice_mut(first * stride..end * stride))?;
            *sent = Some(stream.record_event(None)?);
        }
        Ok(())
    }
}

/// Rows that come to the device while it does other things: a thread of their own sends them, in order.
pub(crate) struct Uploads<'s> {
    gpu: &'s Gpu,
    /// Nobody asked for these so far.
    to_come: VecDeque<&'s Features>,
    /// Bytes of those that were asked for before they are needed.
    ahead: VecDeque<usize>,
    /// How many these may be.
    max_ahead: usize,
    asked: Sender<(&'s Features, Rows)>,
    arrived: Receiver<Result<Rows>>,
}

impl<'s> Uploads<'s> {
    /// The thread ends with `self`.
    pub fn start(
        scope: &'s Scope<'s, '_>,
        gpu: &'s Gpu,
        staging: &'s mut Staging,
        to_come: VecDeque<&'s Features>,
        max_ahead: usize,
    ) -> Uploads<'s> {
        let (asked, requests) = channel::<(&Features, Rows)>();
        let (done, arrived) = channel();
        scope.spawn(move || {
            for (features, mut rows) in requests {
                let sent = staging.send(&gpu.uploads, &mut rows, copied(features));
                // Whatever happened, nothing must be on its way into memory that is given back.
                let all = gpu.uploads.synchronize().map_err(Into::into).and(sent);
                if done.send(all.map(|()| rows)).is_err() {
                    break;
                }
            }
        });
        Uploads { gpu, to_come, ahead: VecDeque::new(), max_ahead, asked, arrived }
    }

    /// The next rows. Those behind them are sent from now on, as many as there is space for. To be called when the device has
    /// nothing to do, because rows wait for what it does.
    pub fn next(&mut self) -> Result<Rows> {
        if self.ahead.pop_front().is_none()
            && let Some(features) = self.to_come.pop_front()
        {
            self.ask(features)?;
        }
        while let Some(&features) = self.to_come.front() {
            let bytes = features.len() * stride_of(features.dim()) * size_of::<f32>();
            if self.ahead.iter().sum::<usize>() + bytes > self.max_ahead {
                break;
            }
            match self.ask(features) {
                Err(Error::OutOfMemory) => break, // later, then
                other => other?,
            }
            self.ahead.push_back(bytes);
            self.to_come.pop_front();
        }
        self.arrived.recv().expect("the thread answers every request")
    }

    /// Takes the memory on the stream that gives it back, too.
    fn ask(&self, features: &'s Features) -> Result<()> {
        let rows = Rows::new(self.gpu, features.len(), features.dim())?;
        self.gpu.uploads.join(&self.gpu.stream)?;
        self.asked.send((features, rows)).expect("the thread lives as long as requests come");
        Ok(())
    }
}

/// Fills padded rows with features.
fn copied(features: &Features) -> impl Fn(Range<usize>, &mut [f32]) + Sync {
    let dim = features.dim();
    move |rows, out| {
        if dim == stride_of(dim) {
            return out.copy_from_slice(features.block(rows)); // one long copy, which is faster than many
        }
        for (i, out) in rows.zip(out.chunks_exact_mut(stride_of(dim))) {
            out[..dim].copy_from_slice(features.row(i));
            out[dim..].fill(0.0);
        }
    }
}

/// What each row is ([`row_key`](labelsieve_numerics::random::row_key)), in order.
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
    const MIN_NUMBERS: usize = 256 << 10; // numbers, for which a thread is worth its start
    const MAX_THREADS: usize = 8; // which saturate memory
    let n_rows = out.len() / stride;
    let n_threads = rayon::current_num_threads().min(MAX_THREADS).min(n_rows * cost / MIN_NUMBERS).max(1);
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
    fn rows_that_come_by_themselves_are_those_that_were_asked_for_in_order() {
        let gpu = match Gpu::open(0) {
            Ok(gpu) => gpu,
            Err(error) => return eprintln!("skipped: {error}"),
        };
        let draws = labelsieve_numerics::random::Stream::new(6);
        let features = [(30_000, 512), (3, 5), (20_000, 511)].map(|(n, dim)| {
            Features::new((0..n * dim).map(|i| draws.normal(i as u64)).collect(), dim).unwrap()
        });
        let mut staging = Staging::new(&gpu).unwrap();
        for max_ahead in [0, 96, usize::MAX] {
            std::thread::scope(|scope| {
                let mut uploads =
                    Uploads::start(scope, &gpu, &mut staging, features.iter().collect(), max_ahead);
                for features in &features {
                    let rows = uploads.next().unwrap();
                    let found = gpu.read(&rows.values, rows.n * rows.stride).unwrap();
                    let is_same = |(i, found): (usize, &[f32])| {
                        found[..rows.dim] == *features.row(i) && found[rows.dim..].iter().all(|&x| x == 0.0)
                    };
                    assert!(found.chunks_exact(rows.stride).enumerate().all(is_same));
                }
            });
        }
    }

    #[test]
    fn keys_are_those_of_the_cpu_in_order() {
        let gpu = match Gpu::open(0) {
            Ok(gpu) => gpu,
            Err(error) => return eprintln!("skipped: {error}"),
        };
        let draws = labelsieve_numerics::random::Stream::new(4);
        for (n, dim) in [(9_000, 90), (1, 1), (65, 512)] {
            let features =
                Features::new((0..n * dim).map(|i| draws.normal(i)).collect(), dim as usize).unwrap();
            let rows = Staging::new(&gpu).unwrap().upload(&gpu, &features).unwrap();
            let found = gpu.read(&row_keys(&gpu, &rows).unwrap(), n as usize).unwrap();
            assert!(found == features.rows().map(labelsieve_numerics::random::row_key).collect::<Vec<_>>());
        }
    }
}
