//! One GPU: its streams, its compiled kernels and its memory.
//!
//! Work goes to one stream, in order, so a buffer may be dropped as soon as its last use is queued: its memory returns to
//! the pool in the order of the stream. The neighbour search uses two more streams and joins them before it ends; rows of pools
//! come on one of their own ([`Uploads`](crate::rows::Uploads)).
#![expect(unsafe_code, reason = "the CUDA driver is a C library; each block says what makes it sound")]

use std::sync::Arc;

use cudarc::cublas::CudaBlas;
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, DeviceRepr, LaunchConfig, result, sys};

use crate::error::{CUDA_VERSION, Error, Result, version_text};
use crate::kernels::Kernels;

/// Queues a kernel. Arguments are numbers, device addresses ([`at`]) and structs that a kernel file declares alike.
macro_rules! launch {
    ($stream:expr, $kernel:expr, $shape:expr, $($argument:expr),+ $(,)?) => {{
        use cudarc::driver::PushKernelArg;
        // SAFETY: the arguments are those of the kernel of this name in `src/kernels`, which stays inside the sizes it is
        // given; the buffers they point into outlive their queued uses (see `gpu.rs`).
        unsafe { $stream.launch_builder(&$kernel)$(.arg(&$argument))+.launch($shape) }?;
    }};
}
pub(crate) use launch;

/// A GPU and everything made once for it.
pub(crate) struct Gpu {
    pub context: Arc<CudaContext>,
    pub stream: Arc<CudaStream>,
    /// For rows that are brought in while the other streams work.
    pub uploads: Arc<CudaStream>,
    pub blas: CudaBlas,
    /// Two streams with their own cuBLAS handles: products on one overlap with selection on the other.
    pub search: [(Arc<CudaStream>, CudaBlas); 2],
    pub kernels: Kernels,
    pub name: String,
    pool: Option<sys::CUmemoryPool>,
}

// SAFETY: handles of the CUDA driver may be used from any thread; `Cuda` lets in one at a time.
unsafe impl Send for Gpu {}
// SAFETY: as above.
unsafe impl Sync for Gpu {}

impl Gpu {
    /// Checks what is there, one thing after the other, so that the first thing missing is the one reported.
    pub fn open(index: usize) -> Result<Gpu> {
        check_libraries()?;
        result::init().map_err(no_devices(index))?;
        let version = driver_version()?;
        if version < CUDA_VERSION {
            return Err(Error::OldDriver { found: version_text(version) });
        }
        let count = result::device::get_count().map_err(no_devices(index))?.max(0) as usize;
        if index >= count {
            return Err(Error::NoDevice { index, count });
        }
        let context = CudaContext::new(index)?;
        let name = context.name()?;
        let (major, minor) = context.compute_capability()?;
        if major < 8 {
            return Err(Error::OldDevice { name, found: format!("{major}.{minor}") });
        }
        // SAFETY: streams are ordered by hand, see above.
        unsafe { context.disable_event_tracking() };
        let stream = context.new_stream()?;
        let with_blas = || -> Result<(Arc<CudaStream>, CudaBlas)> {
            let stream = context.new_stream()?;
            Ok((stream.clone(), CudaBlas::new(stream)?))
        };
        Ok(Gpu {
            blas: CudaBlas::new(stream.clone())?,
            search: [with_blas()?, with_blas()?],
            kernels: Kernels::compile(&context, &format!("sm_{major}{minor}"))?,
            pool: keep_freed_memory(&context)?,
            uploads: context.new_stream()?,
            name,
            stream,
            context,
        })
    }

    /// Memory for `len` numbers of any value.
    pub fn buffer<T: DeviceRepr>(&self, len: usize) -> Result<CudaSlice<T>> {
        // SAFETY: whoever asks fills the buffer before anything reads it.
        Ok(unsafe { self.stream.alloc(len.max(1)) }?)
    }

    /// Memory for `len` zeros.
    pub fn zeros<T: DeviceRepr + cudarc::driver::ValidAsZeroBits>(&self, len: usize) -> Result<CudaSlice<T>> {
        Ok(self.stream.alloc_zeros(len.max(1))?)
    }

    /// A copy of `values` on the device.
    pub fn copy<T: DeviceRepr>(&self, values: &[T]) -> Result<CudaSlice<T>> {
        let mut copy = self.buffer(values.len())?;
        if !values.is_empty() {
            self.stream.memcpy_htod(values, &mut copy)?;
        }
        Ok(copy)
    }

    /// A copy on the host, once everything queued is done.
    pub fn read<T: DeviceRepr + Default + Clone>(
        &self,
        values: &impl DevicePtr<T>,
        len: usize,
    ) -> Result<Vec<T>> {
        let mut copy = vec![T::default(); values.len()];
        self.stream.memcpy_dtoh(values, &mut copy)?;
        self.stream.synchronize()?;
        copy.truncate(len);
        Ok(copy)
    }

    /// Waits for everything queued.
    pub fn finish(&self) -> Result<()> {
        Ok(self.stream.synchronize()?)
    }

    /// Bytes that can still be had: what the device has free, and what this program freed and kept.
    pub fn available(&self) -> Result<usize> {
        let (free, _) = self.context.mem_get_info()?;
        Ok(free + self.pool.map_or(Ok(0), kept_memory)?)
    }
}

/// The address of a buffer.
pub(crate) fn at<T>(buffer: &CudaSlice<T>) -> u64 {
    buffer.device_ptr(buffer.stream()).0
}

/// 256 threads a block, one warp a row.
pub(crate) fn warp_per_row(n_rows: usize) -> LaunchConfig {
    blocks(n_rows.div_ceil(8), 256)
}

/// `n_blocks` blocks of `n_threads`.
pub(crate) fn blocks(n_blocks: usize, n_threads: usize) -> LaunchConfig {
    LaunchConfig {
        grid_dim: (n_blocks.max(1) as u32, 1, 1),
        block_dim: (n_threads as u32, 1, 1),
        shared_mem_bytes: 0,
    }
}

fn check_libraries() -> Result<()> {
    // SAFETY: loading these libraries runs only their own initialisers.
    let (driver, nvrtc, cublas) = unsafe {
        (
            sys::is_culib_present(),
            cudarc::nvrtc::sys::is_culib_present(),
            cudarc::cublas::sys::is_culib_present(),
        )
    };
    if !driver {
        return Err(Error::NoDriver);
    }
    for (is_present, name) in [(nvrtc, "NVRTC"), (cublas, "cuBLAS")] {
        if !is_present {
            return Err(Error::MissingLibrary { name });
        }
    }
    Ok(())
}

/// A driver without a GPU says so when it starts.
fn no_devices(index: usize) -> impl Fn(cudarc::driver::DriverError) -> Error {
    move |error| match error.0 {
        sys::CUresult::CUDA_ERROR_NO_DEVICE => Error::NoDevice { index, count: 0 },
        _ => error.into(),
    }
}

fn driver_version() -> Result<i32> {
    let mut version = 0;
    // SAFETY: the driver is loaded and writes one integer.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result()?;
    Ok(version)
}

/// Freed memory stays with the program: giving it back and asking again costs more than most kernels.
fn keep_freed_memory(context: &CudaContext) -> Result<Option<sys::CUmemoryPool>> {
    if !context.has_async_alloc() {
        return Ok(None);
    }
    let mut pool = std::ptr::null_mut();
    let mut threshold = u64::MAX;
    // SAFETY: the device exists; the attribute is a 64-bit number.
    unsafe {
        sys::cuDeviceGetDefaultMemPool(&mut pool, context.cu_device()).result()?;
        let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        sys::cuMemPoolSetAttribute(pool, attribute, (&raw mut threshold).cast()).result()?;
    }
    Ok(Some(pool))
}

fn kept_memory(pool: sys::CUmemoryPool) -> Result<usize> {
    let read = |attribute| -> Result<u64> {
        let mut bytes = 0u64;
        // SAFETY: the pool lives as long as the device; the attribute is a 64-bit number.
        unsafe { sys::cuMemPoolGetAttribute(pool, attribute, (&raw mut bytes).cast()) }.result()?;
        Ok(bytes)
    };
    let reserved = read(sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?;
    let used = read(sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?;
    Ok(reserved.saturating_sub(used) as usize)
}
