//! The numerics that the method, the networks and the GPU engine share.
//!
//! [`kernels`] holds the hot loops, one version per [`level::Level`] of the machine; [`random`] draws numbers by position, so
//! that threads share no state; [`scratch`] holds arrays that exceed memory; [`Watch`] reports progress and cancels work;
//! [`Device`] names the device that work runs on. This crate knows neither classes nor files.

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
pub use scratch::{Access, BorrowedArray, Pages, Scratch};
pub use watch::Watch;
