//! The rows that networks over one pool share, and the rows in which each differs.

use std::ops::Range;
use std::sync::Arc;

use labelsieve_numerics::kernels::{Aligned, BLOCK};
use labelsieve_numerics::random::row_key;
use rayon::prelude::*;

use super::units::HIDDEN;
use crate::error::Result;
use crate::features::Features;
use crate::graph::NoisyPool;
use crate::graph::Propagation;

/// Bytes per noisy row for training one network, in addition to Ã V and edges: its hidden units, a key, and a number each of s, p,
/// their gradient, the loss (twice) and D⁻¹.
const BYTES_PER_ROW: usize = (HIDDEN + 2 + 6) * size_of::<f32>();

/// The noisy rows under an Ã that all cells share: that of the noisy rows alone, or of the only cell.
pub(super) struct PoolRows {
    pub dim: usize,
    /// The noisy rows of Ã V.
    pub x: Aligned,
    /// Keys of the noisy rows, which determine their dropout ([`row_key`]).
    pub keys: Vec<u64>,
    /// Ã, the noisy rows after `n_clean` clean ones.
    pub propagation: Arc<Propagation>,
    pub n_clean: usize,
    /// The first so many rows stay in memory; later ones are loaded and released.
    n_resident: usize,
}

/// The rows in which a cell differs: its clean rows, and the noisy rows whose edges change because of them.
pub(super) struct CellRows {
    pub n_clean: usize,
    /// Keys of the clean rows.
    pub keys: Vec<u64>,
    /// The changed noisy rows, ascending.
    changed: Vec<u32>,
    /// Rows of Ã V and of Ã: the clean ones, then the changed ones.
    pub x: Aligned,
    pub propagation: Arc<Propagation>,
}

impl PoolRows {
    /// The rows of the pool without clean examples.
    pub fn of_pool(noisy: &Features, propagation: Propagation) -> PoolRows {
        let mut x = Aligned::zeros(noisy.len() * noisy.dim());
        propagation.propagate_rows(&Features::empty(noisy.dim()), noisy, |i| i, &mut x);
        let propagation = Arc::new(propagation);
        let keys = row_keys(noisy);
        PoolRows { dim: noisy.dim(), x, keys, propagation, n_clean: 0, n_resident: usize::MAX }
    }

    /// A single cell, whose Ã is that of clean rows stacked on noisy ones.
    pub fn of_one(
        clean: &Features,
        pool: &NoisyPool,
        propagation: Propagation,
    ) -> Result<(PoolRows, CellRows)> {
        let k = clean.len();
        let dim = clean.dim();
        let noisy = pool.features();
        let mut of_clean = Aligned::zeros(k * dim);
        propagation.propagate_rows(clean, noisy, |i| i, &mut of_clean);
        let x = pool.propagate(clean, &propagation)?;
        let propagation = Arc::new(propagation);
        let own = CellRows {
            n_clean: k,
            keys: row_keys(clean),
            changed: Vec::new(),
            x: of_clean,
            propagation: Arc::clone(&propagation),
        };
        let n_resident = pool.scratch().map_or(usize::MAX, |scratch| {
            let edges = propagation.memory();
            let buffers = noisy.len() * BYTES_PER_ROW;
            scratch.memory().saturating_sub(buffers) / (dim * size_of::<f32>() + edges / noisy.len().max(1))
        });
        Ok((PoolRows { dim, x, keys: row_keys(noisy), propagation, n_clean: k, n_resident }, own))
    }

    /// The rows of one of several cells over the pool ([`PoolRows::of_pool`]), with Ã likewise.
    pub fn choice(&self, clean: &Features, noisy: &Features, propagation: &Propagation) -> CellRows {
        let k = clean.len();
        let is_changed = |&row: &u32| {
            let before = self.propagation.edges(row as usize);
            let after = propagation.edges(k + row as usize);
            // Columns are shifted by k; an edge to a clean row has no counterpart before.
            let same_column = |(&a, &b): (&u32, &u32)| a + k as u32 == b;
            before.1 != after.1 || !before.0.iter().zip(after.0).all(same_column)
        };
        let changed: Vec<u32> =
            (0..noisy.len() as u32).into_par_iter().with_min_len(256).filter(is_changed).collect();
        let rows: Vec<u32> = (0..k as u32).chain(changed.iter().map(|row| k as u32 + row)).collect();
        let mut x = Aligned::zeros(rows.len() * clean.dim());
        propagation.propagate_rows(clean, noisy, |i| rows[i] as usize, &mut x);
        CellRows {
            n_clean: k,
            keys: row_keys(clean),
            changed,
            x,
            propagation: Arc::new(propagation.select(&rows)),
        }
    }

    /// Number of noisy rows.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    #[inline(always)]
    pub fn row(&self, i: usize) -> &[f32] {
        &self.x[i * self.dim..(i + 1) * self.dim]
    }

    /// Rows `start..start + n` in blocks. Those that do not stay in memory are prefetched and released after use.
    pub fn blocks(&self, start: usize, n: usize) -> impl Iterator<Item = Range<usize>> + '_ {
        const STRETCH: usize = 16 * BLOCK;
        let end = start + n;
        let stretches = (start..end).step_by(STRETCH).map(move |from| from..end.min(from + STRETCH));
        let mut before = start..start;
        stretches.chain(std::iter::once(end..end)).flat_map(move |stretch| {
            self.release(std::mem::replace(&mut before, stretch.clone()));
            if stretch.start >= self.n_resident {
                self.x.fetch(stretch.end * self.dim..end.min(stretch.end + STRETCH) * self.dim);
            }
            (stretch.start..stretch.end).step_by(BLOCK).map(move |from| from..stretch.end.min(from + BLOCK))
        })
    }

    /// Hints that these rows and their edges are not needed for a while.
    pub fn release(&self, rows: Range<usize>) {
        if rows.start >= self.n_resident {
            self.x.release(rows.start * self.dim..rows.end * self.dim);
            self.propagation.release(self.n_clean + rows.start..self.n_clean + rows.end);
        }
    }

    /// Up to a block of rows of Ã V, from row `i` on.
    pub fn rows_from(&self, i: usize) -> &[f32] {
        &self.x[i * self.dim..(i + BLOCK).min(self.len()) * self.dim]
    }
}

impl CellRows {
    /// The changed rows among these: the position in the own rows, and the noisy row.
    pub fn changed_in(&self, rows: &Range<usize>) -> impl ExactSizeIterator<Item = (usize, usize)> + Clone {
        let place = |row: usize| self.changed.partition_point(|&changed| (changed as usize) < row);
        let first = place(rows.start);
        let end = place(rows.end);
        let own = self.n_clean + first;
        self.changed[first..end].iter().enumerate().map(move |(i, &row)| (own + i, row as usize))
    }

    /// Memory use in bytes.
    pub fn memory(&self) -> usize {
        self.x.len() * size_of::<f32>() + self.propagation.memory()
    }
}

fn row_keys(features: &Features) -> Vec<u64> {
    let mut keys = vec![0; features.len()];
    keys.par_chunks_mut(256).enumerate().for_each(|(chunk, keys)| {
        let rows = chunk * 256..chunk * 256 + keys.len();
        keys.iter_mut().zip(rows.clone()).for_each(|(key, row)| *key = row_key(features.row(row)));
        features.release(rows);
    });
    keys
}
