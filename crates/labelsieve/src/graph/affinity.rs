//! The affinity matrix A of reciprocal neighbours and its normalised form Ã = D⁻¹(A + I).

use std::sync::Arc;

use rayon::prelude::*;

use super::neighbours::{Entry, Neighbours};
use crate::features::Features;
use crate::kernels::add_scaled;

/// A: `a_ij = [v_i·v_j]+` where i and j are among each other's neighbours, 0 elsewhere and on the diagonal.
/// Symmetric, stored row by row (CSR) with ascending columns; entries that clip to zero are left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Affinity {
    offsets: Vec<usize>,
    columns: Vec<u32>,
    weights: Vec<f32>,
}

impl Affinity {
    /// The reciprocal ones among `neighbours`.
    ///
    /// j belongs to i's list; whether i belongs to j's needs no search: it does exactly if it does not come after the
    /// last entry of j's list, since both lists hold the same similarity, bit for bit.
    pub fn reciprocal(neighbours: &Neighbours) -> Affinity {
        let n = neighbours.len();
        let rows: Vec<Vec<(u32, f32)>> = (0..n)
            .into_par_iter()
            .with_min_len(256)
            .map(|i| {
                let mut row = reciprocal_row(neighbours, i as u32);
                row.sort_unstable_by_key(|&(column, _)| column);
                row
            })
            .collect();
        let n_edges = rows.iter().map(Vec::len).sum();
        let mut graph = Affinity {
            offsets: Vec::with_capacity(n + 1),
            columns: Vec::with_capacity(n_edges),
            weights: Vec::with_capacity(n_edges),
        };
        graph.offsets.push(0);
        for row in rows {
            graph.columns.extend(row.iter().map(|&(column, _)| column));
            graph.weights.extend(row.iter().map(|&(_, weight)| weight));
            graph.offsets.push(graph.columns.len());
        }
        graph
    }

    /// Number of examples.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there are no examples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of stored entries, twice the number of edges.
    pub fn n_entries(&self) -> usize {
        self.columns.len()
    }

    /// Row `i` of A: its reciprocal neighbours and their affinities.
    #[inline(always)]
    pub fn row(&self, i: usize) -> (&[u32], &[f32]) {
        let range = self.offsets[i]..self.offsets[i + 1];
        (&self.columns[range.clone()], &self.weights[range])
    }

    /// How many reciprocal neighbours each of these examples has.
    pub fn n_neighbours(&self, rows: std::ops::Range<usize>) -> Vec<u32> {
        rows.map(|i| (self.offsets[i + 1] - self.offsets[i]) as u32).collect()
    }

    /// These rows alone, with the columns that they have.
    pub(crate) fn select(&self, rows: &[u32]) -> Affinity {
        let mut selected = Affinity { offsets: vec![0], columns: Vec::new(), weights: Vec::new() };
        for &row in rows {
            let (columns, weights) = self.row(row as usize);
            selected.columns.extend_from_slice(columns);
            selected.weights.extend_from_slice(weights);
            selected.offsets.push(selected.columns.len());
        }
        selected
    }

    /// Row sums of A.
    pub fn degrees(&self) -> Vec<f32> {
        (0..self.len()).map(|i| self.row(i).1.iter().sum()).collect()
    }
}

fn reciprocal_row(neighbours: &Neighbours, i: u32) -> Vec<(u32, f32)> {
    let (indices, similarities) = neighbours.of(i as usize);
    let is_reciprocal = |j: u32, similarity: f32| {
        let me = Entry { similarity, index: i };
        neighbours.last(j as usize).is_some_and(|last| !last.precedes(me))
    };
    indices
        .iter()
        .zip(similarities)
        .filter(|&(&j, &similarity)| similarity > 0.0 && is_reciprocal(j, similarity))
        .map(|(&j, &similarity)| (j, similarity))
        .collect()
}

/// Ã as an operator: D⁻¹(A + I), or the identity when there is no graph (the MLP).
#[derive(Clone, Debug)]
pub enum Propagation {
    /// Every example for itself: A = 0, so Ã = I.
    Identity(usize),
    /// Averages over an example and its reciprocal neighbours.
    Graph {
        /// A.
        affinity: Arc<Affinity>,
        /// The diagonal of D⁻¹.
        inverse_degree: Vec<f32>,
    },
}

impl Propagation {
    /// Ã of an affinity matrix.
    pub fn new(affinity: impl Into<Arc<Affinity>>) -> Propagation {
        let affinity = affinity.into();
        let inverse_degree = affinity.degrees().iter().map(|degree| 1.0 / (1.0 + degree)).collect();
        Propagation::Graph { affinity, inverse_degree }
    }

    /// Number of examples.
    pub fn len(&self) -> usize {
        match self {
            Propagation::Identity(n) => *n,
            Propagation::Graph { affinity, .. } => affinity.len(),
        }
    }

    /// Whether there are no examples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// These rows of Ã alone, with the columns that they have.
    pub(crate) fn select(&self, rows: &[u32]) -> Propagation {
        match self {
            Propagation::Identity(_) => Propagation::Identity(rows.len()),
            Propagation::Graph { affinity, inverse_degree } => Propagation::Graph {
                affinity: Arc::new(affinity.select(rows)),
                inverse_degree: rows.iter().map(|&row| inverse_degree[row as usize]).collect(),
            },
        }
    }

    /// Row `i` of A, or nothing when there is no graph.
    #[inline(always)]
    pub(crate) fn edges(&self, i: usize) -> (&[u32], &[f32]) {
        match self {
            Propagation::Identity(_) => (&[], &[]),
            Propagation::Graph { affinity, .. } => affinity.row(i),
        }
    }

    /// The diagonal of D⁻¹.
    #[inline(always)]
    pub(crate) fn inverse_degree(&self, i: usize) -> f32 {
        match self {
            Propagation::Identity(_) => 1.0,
            Propagation::Graph { inverse_degree, .. } => inverse_degree[i],
        }
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        match self {
            Propagation::Identity(_) => 0,
            Propagation::Graph { affinity, .. } => affinity.n_entries() * 8 + affinity.len() * 12,
        }
    }

    /// Ã V, row-major, for clean rows stacked on noisy ones.
    pub fn propagate(&self, clean: &Features, noisy: &Features) -> Vec<f32> {
        let mut out = vec![0f32; self.len() * clean.dim()];
        self.propagate_rows(clean, noisy, |i| i, &mut out);
        out
    }

    /// Some rows of Ã V: the n-th of `out` is row `which(n)`.
    pub(crate) fn propagate_rows(
        &self,
        clean: &Features,
        noisy: &Features,
        which: impl Fn(usize) -> usize + Sync,
        out: &mut [f32],
    ) {
        let (k, d) = (clean.len(), clean.dim());
        let row = |i: usize| if i < k { clean.row(i) } else { noisy.row(i - k) };
        out.par_chunks_mut(64 * d).enumerate().for_each(|(chunk, out)| {
            for (i, out) in out.chunks_exact_mut(d).enumerate().map(|(n, out)| (which(chunk * 64 + n), out)) {
                out.copy_from_slice(row(i));
                if let Propagation::Graph { affinity, inverse_degree } = self {
                    let (columns, weights) = affinity.row(i);
                    columns.iter().zip(weights).for_each(|(&j, &w)| add_scaled(out, w, row(j as usize)));
                    out.iter_mut().for_each(|v| *v *= inverse_degree[i]);
                }
            }
        });
    }
}
