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
use super::cudnn::{Cudnn, Direction, Plan, Problem};
use super::kernels::Kernels;
use super::schedule::Convolution;
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
        let (one, zero) = (1f32, 0f32);
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
            let plan = Plan::new(&queue.cudnn, &problem, direction, queue.precision)?;
            if plan.workspace > self.workspace.len() {
                self.workspace = queue.zeros(plan.workspace)?;
            }
            self.plans.insert(key, plan);
        }
        self.plans[&key].run(&queue.cudnn, input, weights, output, at(&self.workspace))
    }
}
