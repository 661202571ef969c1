//! From the rows of a class to its graph: exact neighbours, the reciprocal ones among them, their affinity, Ã.

mod affinity;
mod approximate;
mod candidates;
mod columns;
mod leading;
mod neighbours;
mod noisy_graph;
mod outside;
mod pool;
mod reduced;
mod search;
mod sorted;
mod windows;

pub(crate) use affinity::SharedAffinity;
pub use affinity::{Affinity, Propagation};
pub(crate) use columns::{Columns, add_neighbours};
pub use neighbours::Neighbours;
pub use noisy_graph::{NoisyGraph, closest_clean};
#[doc(hidden)] // for our own crates
pub use outside::nearest_to;
pub use pool::NoisyPool;
pub(crate) use sorted::SortedRows;

/// The paper's number of neighbours.
pub const NEIGHBOURS: usize = 50;

#[cfg(test)]
mod tests;
