//! One stream with everything that queues work on it, and memory for it.
#![expect(
    unsafe_code,
    reason = "memory comes uninitialised, cuBLAS is a C library; each block says what makes it sound"
)]

use std::collections::HashMap;
use std::sync::Arc;

use cudarc::cublas::result::sgemm;
use cudarc::cublas::{CudaBlas, sys as blas};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DeviceRepr, LaunchConfig};

use super::ActivationPrecision;
use super::buffers::Buffers;
use super::kernels::Kernels;
use super::schedule::Convolution;
use crate::cudnn::convolution::{Direction, INPUT, OUTPUT, Problem, WEIGHTS};
use crate::cudnn::{Cudnn, Plan};
use crate::error::Result;
use crate::gpu::{at, blocks};

/// A stream with its handles. Buffers may be dropped once their last use is queued: memory returns in the stream's order.
pub(super) struct Queue {
    pub cudnn: Cudnn,
    blas: CudaBlas,
    pub stream: Arc<CudaStream>,
    pub kernels: Arc<Kernels>,
    pub precision: ActivationPrecision,
}

impl Queue {
    pub fn new(
        context: &Arc<CudaContext>,
        kernels: &Arc<Kernels>,
        precision: ActivationPrecision,
    ) -> Result<Queue> {
        context.bind_to_thread()?;
        let stream = context.new_stream()?;
        Ok(Queue {
            cudnn: Cudnn::new(&stream)?,
            blas: CudaBlas::new(stream.clone())?,
            kernels: kernels.clone(),
            stream,
            precision,
        })
    }

    /// Memory for `len` zeros.
    pub fn zeros<T: DeviceRepr + cudarc::driver::ValidAsZeroBits>(&self, len: usize) -> Result<CudaSlice<T>> {
        Ok(self.stream.alloc_zeros(len.max(1))?)
    }

    /// A copy of `values` on the device.
    pub fn copy<T: DeviceRepr>(&self, values: &[T]) -> Result<CudaSlice<T>> {
        Ok(self.stream.clone_htod(values)?)
    }

    /// A copy on the host, once everything queued is done.
    pub fn read<T: DeviceRepr + Default + Clone>(&self, values: &CudaSlice<T>, len: usize) -> Result<Vec<T>> {
        let mut copy = vec![T::default(); len];
        self.stream.memcpy_dtoh(&values.slice(..len), &mut copy)?;
        self.stream.synchronize()?;
        Ok(copy)
    }

    /// Row-major `out (m×n) = a · b` over k inner numbers, all `f32`: columns of `a` or rows of `b` are rows of what is given
    /// when [`Side::Across`] says so.
    pub fn product(
        &self,
        (a, a_side): (u64, Side),
        (b, b_side): (u64, Side),
        out: u64,
        (m, n, k): (usize, usize, usize),
    ) -> Result<()> {
        let one = 1f32;
        let zero = 0f32;
        let stride = |side, rows, columns| if side == Side::Along { columns } else { rows } as i32;
        // SAFETY: the addresses are buffers of the callers' shapes; the scalars are read before the call returns. cuBLAS
        // counts columns first, so it is asked for the transposed product of the transposed operands.
        unsafe {
            sgemm(
                *self.blas.handle(),
                b_side.operation(),
                a_side.operation(),
                n as i32,
                m as i32,
                k as i32,
                &one,
                b as *const f32,
                stride(b_side, k, n),
                a as *const f32,
                stride(a_side, m, k),
                &zero,
                out as *mut f32,
                n as i32,
            )?;
        }
        Ok(())
    }
}

/// Whether a matrix is given as it is or transposed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Side {
    Along,
    Across,
}

impl Side {
    fn operation(self) -> blas::cublasOperation_t {
        match self {
            Side::Along => blas::cublasOperation_t::CUBLAS_OP_N,
            Side::Across => blas::cublasOperation_t::CUBLAS_OP_T,
        }
    }
}

/// One thread per item.
pub(super) fn threads(items: usize) -> LaunchConfig {
    blocks(items.div_ceil(256), 256)
}

/// Buffers on the device, for batches of up to `capacity` images.
pub(super) struct Arena {
    capacity: usize,
    buffers: Vec<CudaSlice<u8>>,
}

impl Arena {
    /// An arena that holds nothing.
    pub fn empty() -> Arena {
        Arena { capacity: 0, buffers: Vec::new() }
    }

    /// Makes sure that `n_images` fit.
    pub fn fit(&mut self, queue: &Queue, buffers: &Buffers, n_images: usize) -> Result<()> {
        if n_images > self.capacity {
            *self = Arena::empty(); // first give back, then ask
            // SAFETY: everything is written by the forward or the backward pass before it is read.
            let buffer = |size: &usize| unsafe { queue.stream.alloc((size * n_images).max(1)) };
            let buffers = buffers.sizes.iter().map(buffer).collect::<std::result::Result<_, _>>()?;
            *self = Arena { capacity: n_images, buffers };
        }
        Ok(())
    }

    pub fn buffer(&self, number: usize) -> u64 {
        at(&self.buffers[number])
    }
}

/// The convolutions of a network by cuDNN, each planned once per batch size.
pub(super) struct Convolutions {
    plans: HashMap<(usize, usize, Direction), Plan>,
    workspace: CudaSlice<u8>,
}

impl Convolutions {
    pub fn new(queue: &Queue) -> Result<Convolutions> {
        Ok(Convolutions { plans: HashMap::new(), workspace: queue.zeros(1)? })
    }

    /// Queues one product of convolution number `number` of the schedule. Addresses of the operands or of their gradients.
    pub fn run(
        &mut self,
        queue: &Queue,
        number: usize,
        convolution: &Convolution,
        n_images: usize,
        direction: Direction,
        [input, weights, output]: [u64; 3],
    ) -> Result<()> {
        let key = (number, n_images, direction);
        if !self.plans.contains_key(&key) {
            let &Convolution { from, to, kernel, stride, padding, .. } = convolution;
            let problem = Problem { n_images, from, to, kernel, stride, padding: padding.top };
            let plan = problem.plan(&queue.cudnn, direction, queue.precision)?;
            if plan.workspace > self.workspace.len() {
                self.workspace = queue.zeros(plan.workspace)?;
            }
            self.plans.insert(key, plan);
        }
        let operands = [(INPUT, input), (WEIGHTS, weights), (OUTPUT, output)];
        self.plans[&key].run(&queue.cudnn, operands, at(&self.workspace))
    }
}

#[cfg(test)]
mod tests {
    use labelsieve_networks::{Architecture, Stem};

    use super::*;
    use crate::Cuda;
    use crate::networks::layout::Layout;
    use crate::networks::schedule::{Channels, Schedule, Work};

    /// Microseconds of each way to do a product, in cuDNN's order.
    fn times(cudnn: &Cudnn, stream: &Arc<CudaStream>, problem: &Problem, direction: Direction) -> Vec<f32> {
        let plans = problem.candidates(cudnn, direction, ActivationPrecision::Bf16, 8).unwrap();
        let weights = problem.from.channels * problem.to.channels * problem.kernel.pow(2);
        let lens = [problem.n_images * problem.from.len(), weights, problem.n_images * problem.to.len()];
        let buffers: Vec<CudaSlice<u16>> = lens.iter().map(|&len| stream.alloc_zeros(len).unwrap()).collect();
        let operands = [(INPUT, 0), (WEIGHTS, 1), (OUTPUT, 2)].map(|(name, i)| (name, at(&buffers[i])));
        let workspace = plans.iter().map(|plan| plan.workspace).max().unwrap_or(0);
        let workspace: CudaSlice<u8> = stream.alloc_zeros(workspace.max(1)).unwrap();
        let timed = Some(cudarc::driver::sys::CUevent_flags::CU_EVENT_DEFAULT);
        let time = |plan: &Plan| {
            let run = || plan.run(cudnn, operands, at(&workspace)).unwrap();
            (0..3).for_each(|_| run());
            let start = stream.record_event(timed).unwrap();
            (0..20).for_each(|_| run());
            start.elapsed_ms(&stream.record_event(timed).unwrap()).unwrap() * 1000.0 / 20.0
        };
        plans.iter().map(time).collect()
    }

    /// How good the first guess is, for a person to read: `cargo test … -- --ignored --nocapture ways_to_convolve`.
    #[test]
    #[ignore = "prints timings"]
    fn ways_to_convolve() {
        let cuda = Cuda::open(0).unwrap();
        let stream = cuda.gpu().context.new_stream().unwrap();
        let cudnn = Cudnn::new(&stream).unwrap();
        for (architecture, size, n_images) in [
            (Architecture::ResNet10, 224, 128),
            (Architecture::ConvNet128, 84, 256),
            (Architecture::ResNet10, 64, 256),
        ] {
            let network = architecture.network(size, size, Stem::for_images(size, size)).unwrap();
            let schedule = Schedule::new(&network, &Layout::new(&network, 0)).unwrap();
            let mut first = 0.0;
            let mut best = 0.0;
            for work in &schedule.work {
                let Work::Convolution(Convolution {
                    from,
                    to,
                    kernel,
                    stride,
                    padding,
                    input,
                    channels: Channels::All,
                    ..
                }) = *work
                else {
                    continue;
                };
                for direction in [Direction::Forward, Direction::Input, Direction::Weights] {
                    if input == 0 && direction == Direction::Input {
                        continue;
                    }
                    let problem = Problem { n_images, from, to, kernel, stride, padding: padding.top };
                    let times = times(&cudnn, &stream, &problem, direction);
                    first += times[0];
                    best += times.iter().copied().fold(f32::INFINITY, f32::min);
                    let flops = 2 * n_images * to.len() * from.channels * kernel.pow(2);
                    let rate = flops as f32 / times[0] / 1e6;
                    println!(
                        "{direction:?} {from:?} {to:?} k{kernel} s{stride}: {rate:.0} TFLOP/s, µs {times:.0?}"
                    );
                }
            }
            println!("{architecture} {size}: first guesses {first:.0} µs, best {best:.0} µs");
        }
    }
}
