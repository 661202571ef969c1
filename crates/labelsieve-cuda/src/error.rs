//! Failures between the program and the GPU.

use cudarc::cublas::result::CublasError;
use cudarc::driver::{DriverError, sys};

/// The reason why a GPU cannot be used, or stopped working.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// No NVIDIA driver on this machine.
    #[error("no NVIDIA driver found (libcuda cannot be loaded)")]
    NoDriver,
    /// A driver that is too old for the libraries this program uses.
    #[error("the NVIDIA driver supports CUDA {found}, expected {} or newer", needed())]
    OldDriver {
        /// The CUDA version the driver supports.
        found: String,
    },
    /// The driver works but has no GPU with this index.
    #[error("no GPU number {index}: this machine has {count}")]
    NoDevice {
        /// The GPU asked for.
        index: usize,
        /// The number of GPUs.
        count: usize,
    },
    /// A GPU without the instructions that the kernels use.
    #[error("{name} has compute capability {found}, expected 8.0 or newer")]
    OldDevice {
        /// The GPU.
        name: String,
        /// Its compute capability.
        found: String,
    },
    /// A library of the CUDA toolkit is missing.
    #[error("{name} of CUDA 13 cannot be loaded (looked in the library path)")]
    MissingLibrary {
        /// The library.
        name: &'static str,
    },
    /// cuDNN is missing, which only networks need.
    #[error("cuDNN 9 cannot be loaded (looked in the library path); networks need it on a GPU")]
    MissingCudnn,
    /// A kernel that the installed compiler rejects.
    #[error("cannot compile {file} for {architecture}: {log}")]
    Compile {
        /// The kernel file.
        file: &'static str,
        /// The GPU's architecture.
        architecture: String,
        /// The output of the compiler.
        log: String,
    },
    /// A class too large for the GPU, even alone.
    #[error("a class of {rows} rows needs {needed} MiB of GPU memory, but {available} MiB are free")]
    TooLarge {
        /// Its rows.
        rows: usize,
        /// Bytes needed.
        needed: usize,
        /// Bytes available.
        available: usize,
    },
    /// A batch too large for the GPU.
    #[error(
        "a batch of {images} images of {height}×{width} does not fit the GPU's memory: lower the batch size"
    )]
    BatchTooLarge {
        /// Its images.
        images: usize,
        /// Their height.
        height: usize,
        /// Their width.
        width: usize,
    },
    /// Memory ran out in spite of the plan.
    #[error("the GPU is out of memory")]
    OutOfMemory,
    /// Any other failure of the driver, of cuBLAS or of cuDNN.
    #[error("the GPU failed: {0}")]
    Failed(String),
    /// An error of the method itself.
    #[error(transparent)]
    Method(#[from] labelsieve::Error),
}

impl From<labelsieve_numerics::Error> for Error {
    fn from(error: labelsieve_numerics::Error) -> Error {
        Error::Method(error.into())
    }
}

/// A result with the error of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The CUDA version this program requires, as drivers report it.
pub(crate) const CUDA_VERSION: i32 = 13000;

/// `13.0` for 13000.
pub(crate) fn version_text(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

fn needed() -> String {
    version_text(CUDA_VERSION)
}

impl From<DriverError> for Error {
    fn from(error: DriverError) -> Error {
        match error.0 {
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => Error::OutOfMemory,
            _ => Error::Failed(error.to_string()),
        }
    }
}

impl From<CublasError> for Error {
    fn from(error: CublasError) -> Error {
        match error.0 {
            cudarc::cublas::sys::cublasStatus_t::CUBLAS_STATUS_ALLOC_FAILED => Error::OutOfMemory,
            _ => Error::Failed(format!("{error:?}")),
        }
    }
}

impl From<Error> for labelsieve_networks::Error {
    fn from(error: Error) -> labelsieve_networks::Error {
        labelsieve_networks::Error::Device(error.to_string())
    }
}

impl From<Error> for labelsieve::Error {
    fn from(error: Error) -> labelsieve::Error {
        match error {
            Error::Method(error) => error,
            error => labelsieve::Error::Engine(error.to_string()),
        }
    }
}

impl From<Error> for labelsieve_files::work::Error {
    fn from(error: Error) -> labelsieve_files::work::Error {
        labelsieve_files::work::Error::stage(error)
    }
}
