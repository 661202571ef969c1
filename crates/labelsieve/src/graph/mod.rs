//! From rows to the graph of a class: exact neighbours, the reciprocal ones, their affinity, Ã.

mod affinity;
mod approximate;
mod candidates;
mod columns;
mod leading;
mod neighbours;
mod noisy_graph;
mod outside;
mod reduced;
mod search;
mod sorted;
mod windows;

pub use affinity::{Affinity, Propagation};
pub(crate) use columns::{Columns, add_neighbours};
pub use neighbours::Neighbours;
pub use noisy_graph::{NoisyGraph, closest_clean};
#[doc(hidden)] // for our own crates
pub use outside::nearest_to;
pub(crate) use sorted::Sorted;

/// The paper's number of neighbours.
pub const NEIGHBOURS: usize = 50;

#[cfg(test)]
mod tests;
