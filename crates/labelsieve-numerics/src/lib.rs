//! The numeric ground that the method, the networks and the GPU engine share.
//!
//! [`kernels`] holds the loops where the time goes, one version per [`level::Level`] of the machine; [`random`] draws numbers by
//! position, so that no thread passes state along; [`scratch`] says where large arrays lie; [`Watch`] follows running work and stops
//! it; [`Device`] names where work runs. Nothing here knows a class or a file.

mod device;
mod error;
mod fnv;
pub mod kernels;
pub mod level;
pub mod random;
mod rows;
pub mod scratch;
mod watch;

pub use device::Device;
pub use error::{Error, Result};
pub use fnv::Fnv1a;
pub use rows::unit_rows;
pub use scratch::{Access, Lent, Pages, Scratch};
pub use watch::Watch;
