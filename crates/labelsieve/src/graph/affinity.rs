//! The affinity matrix A of reciprocal neighbours and its normalised form Ã = D⁻¹(A + I).

use std::ops::Range;
use std::sync::Arc;

use labelsieve_numerics::kernels::{Aligned, add_scaled};
use labelsieve_numerics::scratch::{Access, Array, OptionalScratch, Scratch, streamed, stretches};
use rayon::prelude::*;

use super::neighbours::{Entry, Neighbours};
use super::sorted::{SortedRows, restore, stretches_of};
use crate::error::Result;
use crate::features::Features;

/// A: `a_ij = [v_i·v_j]+` where i and j are among each other's neighbours, 0 elsewhere and on the diagonal.
/// Symmetric, stored row by row (CSR) with ascending columns; entries that clip to zero are left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Affinity {
    offsets: Vec<usize>,
    columns: Array<u32>,
    weights: Array<f32>,
}

/// The edges of some rows, to be filled.
struct EdgeSlice<'a> {
    rows: Range<usize>,
    columns: &'a mut [u32],
    weights: &'a mut [f32],
}

/// An affinity that several models read, and the number of neighbours it was made with.
pub(crate) struct SharedAffinity {
    pub neighbours: usize,
    pub affinity: Arc<Affinity>,
}

/// Rows per unit of work.
const ROWS: usize = 256;

impl Affinity {
    /// **§4** of the paper: the affinity of the reciprocal ones among `neighbours`.
    ///
    /// For j in the list of i, whether i is in the list of j needs no search: it is exactly if it does not come after the last
    /// entry of that list, since both lists hold the same similarity, bit for bit.
    pub fn reciprocal(neighbours: &Neighbours) -> Affinity {
        Affinity::reciprocal_in(None, neighbours).expect("edges in memory")
    }

    /// As [`Affinity::reciprocal`], with the edges in `scratch` if there is one.
    pub(crate) fn reciprocal_in(scratch: OptionalScratch, neighbours: &Neighbours) -> Result<Affinity> {
        let n = neighbours.len();
        let list = neighbours.width() * size_of::<Entry>();
        let mut last: Vec<Option<Entry>> = Vec::with_capacity(n);
        for rows in streamed(n, list) {
            last.par_extend(rows.clone().into_par_iter().with_min_len(ROWS).map(|i| neighbours.last(i)));
            neighbours.release(rows);
        }
        let mut offsets = vec![0; n + 1];
        for rows in streamed(n, list) {
            let counts = offsets[1..][rows.clone()].par_iter_mut().zip(rows.clone()).with_min_len(ROWS);
            counts.for_each(|(count, i)| *count = reciprocal_row(neighbours, &last, i).count());
            neighbours.release(rows);
        }
        for i in 0..n {
            offsets[i + 1] += offsets[i];
        }
        let columns = Array::zeros(scratch, offsets[n])?;
        let weights = Array::zeros(scratch, offsets[n])?;
        let mut graph = Affinity { offsets, columns, weights };
        for rows in streamed(n, list) {
            graph.edges_mut(rows.clone()).into_par_iter().for_each_init(
                Vec::new,
                |row, EdgeSlice { rows, columns, weights }| {
                    let mut slots = columns.iter_mut().zip(weights);
                    for i in rows {
                        row.clear();
                        row.extend(reciprocal_row(neighbours, &last, i));
                        row.sort_unstable_by_key(|&(column, _)| column);
                        slots
                            .by_ref()
                            .zip(&*row)
                            .for_each(|((c, w), &(column, weight))| (*c, *w) = (column, weight));
                    }
                },
            );
            graph.release(rows.clone());
            neighbours.release(rows);
        }
        Ok(graph)
    }

    /// The edges of these rows, to be filled, in parts of [`ROWS`] rows.
    fn edges_mut(&mut self, rows: Range<usize>) -> Vec<EdgeSlice<'_>> {
        let all = self.offsets[rows.start]..self.offsets[rows.end];
        let mut columns = &mut self.columns[all.clone()];
        let mut weights = &mut self.weights[all];
        let mut parts = Vec::with_capacity(rows.len().div_ceil(ROWS));
        for start in rows.clone().step_by(ROWS) {
            let part = start..rows.end.min(start + ROWS);
            let count = self.offsets[part.end] - self.offsets[part.start];
            let (of_part, rest) = columns.split_at_mut(count);
            let (weights_of_part, weights_rest) = weights.split_at_mut(count);
            parts.push(EdgeSlice { rows: part, columns: of_part, weights: weights_of_part });
            columns = rest;
            weights = weights_rest;
        }
        parts
    }

    /// Hints that the edges of these rows are not needed for a while.
    pub(crate) fn release(&self, rows: Range<usize>) {
        let part = self.offsets[rows.start]..self.offsets[rows.end];
        self.columns.release(part.clone());
        self.weights.release(part);
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

    /// The number of reciprocal neighbours of each of these examples.
    pub fn n_neighbours(&self, rows: Range<usize>) -> Vec<u32> {
        rows.map(|i| (self.offsets[i + 1] - self.offsets[i]) as u32).collect()
    }

    /// A copy of these rows, with their columns unchanged.
    pub(crate) fn select(&self, rows: &[u32]) -> Affinity {
        let mut offsets = vec![0];
        let mut all_columns = Vec::new();
        let mut all_weights = Vec::new();
        for &row in rows {
            let (columns, weights) = self.row(row as usize);
            all_columns.extend_from_slice(columns);
            all_weights.extend_from_slice(weights);
            offsets.push(all_columns.len());
        }
        Affinity { offsets, columns: all_columns.into(), weights: all_weights.into() }
    }

    /// Row sums of A.
    pub fn degrees(&self) -> Vec<f32> {
        let mut degrees = Vec::with_capacity(self.len());
        for rows in streamed(self.len(), size_of::<[f32; 32]>()) {
            degrees.extend(rows.clone().map(|i| self.row(i).1.iter().sum::<f32>()));
            self.release(rows);
        }
        degrees
    }
}

/// The reciprocal neighbours of row `i` and their affinities, in the order of its list; `last`: the last entry of every list.
fn reciprocal_row<'a>(
    neighbours: &'a Neighbours,
    last: &'a [Option<Entry>],
    i: usize,
) -> impl Iterator<Item = (u32, f32)> + 'a {
    let (indices, similarities) = neighbours.of(i);
    let is_reciprocal = move |j: u32, similarity: f32| {
        let me = Entry { similarity, index: i as u32 };
        last[j as usize].is_some_and(|last| !last.precedes(me))
    };
    let pairs = indices.iter().zip(similarities).map(|(&j, &similarity)| (j, similarity));
    pairs.filter(move |&(j, similarity)| similarity > 0.0 && is_reciprocal(j, similarity))
}

/// Ã as an operator: D⁻¹(A + I), or the identity when there is no graph (the MLP).
#[derive(Clone, Debug)]
pub enum Propagation {
    /// Without a graph: A = 0, so Ã = I.
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

    /// A copy of these rows of Ã, with their columns unchanged.
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

    /// Memory use in bytes.
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
        let k = clean.len();
        self.propagate_by(|i| if i < k { clean.row(i) } else { noisy.row(i - k) }, which, clean.dim(), out);
    }

    /// As [`Propagation::propagate_rows`], where `row(i)` is row i of V, of d numbers.
    fn propagate_by<'a>(
        &self,
        row: impl Fn(usize) -> &'a [f32] + Sync,
        which: impl Fn(usize) -> usize + Sync,
        d: usize,
        out: &mut [f32],
    ) {
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

    /// The noisy rows of Ã V, for a pool that exceeds memory. Similar rows are adjacent in `sorted`, so a stretch of them reads few
    /// other rows.
    pub(crate) fn propagate_sorted(
        &self,
        clean: &Features,
        sorted: SortedRows,
        scratch: &dyn Scratch,
    ) -> Result<Aligned> {
        const MEAN_OF: usize = 32; // rows per mean, about
        let k = clean.len();
        let d = clean.dim();
        let n = sorted.len();
        let stretches = || stretches(n, MEAN_OF * d * size_of::<f32>(), scratch.memory() / 2);
        let mut by_place = Aligned::zeros_in(Some(scratch), n * d)?;
        let edges_stay = self.memory() < scratch.memory() / 4;
        sorted.features().expect(Access::Scattered);
        self.expect(Access::Scattered);
        for places in stretches() {
            let part = places.start * d..places.end * d;
            sorted.features().fetch(places.clone());
            let row =
                |i: usize| if i < k { clean.row(i) } else { sorted.features().row(sorted.place(i - k)) };
            self.propagate_by(row, |at| k + sorted.row(places.start + at), d, &mut by_place[part.clone()]);
            by_place.release(part);
            sorted.features().release(0..n);
            if !edges_stay {
                self.release(0..self.len());
            }
        }
        self.expect(Access::InOrder);
        sorted.features().expect(Access::InOrder);
        let Some(places) = sorted.into_places() else { return Ok(by_place) };
        let mut by_row = Aligned::zeros_in(Some(scratch), n * d)?;
        by_place.expect(Access::Scattered);
        for rows in stretches() {
            let part = rows.start * d..rows.end * d;
            for places in stretches_of(&places[rows.clone()]) {
                by_place.fetch(places.start * d..places.end * d);
            }
            restore(&by_place, d, &places[rows], &mut by_row[part.clone()]);
            by_row.release(part);
            by_place.release(0..n * d);
        }
        Ok(by_row)
    }

    /// Hints at how edges will be accessed from now on.
    fn expect(&self, access: Access) {
        if let Propagation::Graph { affinity, .. } = self {
            affinity.columns.expect(access);
            affinity.weights.expect(access);
        }
    }

    /// Hints that the edges of these rows are not needed for a while.
    pub(crate) fn release(&self, rows: Range<usize>) {
        if let Propagation::Graph { affinity, .. } = self {
            affinity.release(rows);
        }
    }
}
