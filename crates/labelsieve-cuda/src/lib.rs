//! Labelsieve on NVIDIA GPUs.
//!
//! ```no_run
//! use labelsieve_cuda::open;
//! use labelsieve_numerics::Device;
//!
//! let opened = open("auto".parse::<Device>()?, |notice| eprintln!("warning: {notice}"))?;
//! eprintln!("working on {opened}"); // cuda:0 (NVIDIA H200), or cpu (no NVIDIA driver found …)
//! let engine = opened.engine(); // &dyn labelsieve::engine::Engine
//! # Ok::<(), labelsieve_cuda::Error>(())
//! ```
//!
//! CUDA is needed neither to build this crate nor to start a program that uses it: the driver, NVRTC and cuBLAS are loaded
//! when a GPU is opened, and the kernels in `src/kernels` are compiled then for that GPU.
//!
//! In the order of the pipeline: `rows.rs` uploads features, `search/` finds neighbours, `graph.rs` makes edges, `training.rs`
//! (with `cells.rs`: jobs that share a pool) and `label_propagation.rs` solve batches of jobs, which `plan.rs` plans and `batch.rs`
//! runs. Neighbours and edges equal those of the CPU bit for bit, X = Ã V to 22 bits; trained relevance agrees up to the rounding of
//! a hundred steps (mostly 10⁻⁶) and is reproducible.
//!
//! `networks/` trains and runs convolutional networks ([`OpenDevice::learners`]), `transformers/` runs vision transformers
//! ([`Cuda::transformer_operations`]); only these need cuDNN. With [`ActivationPrecision::F32`] features differ from those of the CPU
//! by 10⁻⁶ of their length; both are reproducible in either precision.

mod batch;
mod cells;
mod cosine;
mod cuda;
mod cudnn;
mod device;
mod error;
mod fallback;
mod gpu;
mod graph;
mod kernels;
mod label_propagation;
mod memory;
mod networks;
mod plan;
mod prototype;
mod rows;
mod search;
mod similarity;
mod training;
mod transformers;

pub use batch::Phases;
pub use cuda::Cuda;
pub use device::{OpenDevice, open};
pub use error::{Error, Result};
pub use fallback::{Fallback, FallbackEmbedder};
pub use networks::{ActivationPrecision, CudaLearners};
pub use transformers::{CudaOperations, DeviceLinear, DeviceNorm, DeviceRows};
