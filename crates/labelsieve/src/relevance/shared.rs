//! What the choices of clean examples over one pool share, and where each differs.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use crate::features::Features;
use crate::graph::Propagation;
use crate::kernels::{Aligned, BLOCK};
use crate::random::row_key;

/// The noisy rows under an Ã that all choices have in common: that of the noisy rows alone, or of the only choice.
pub(super) struct Shared {
    pub dim: usize,
    /// The noisy rows of Ã V.
    pub x: Aligned,
    /// What each of them is, which decides on its dropout ([`row_key`]).
    pub keys: Vec<u64>,
    /// Ã, the noisy rows behind `n_clean` clean ones.
    pub propagation: Arc<Propagation>,
    pub n_clean: usize,
}

/// Where a choice differs: its clean rows, and the noisy ones whose edges are others because of them.
pub(super) struct Own {
    pub n_clean: usize,
    /// What the clean rows are ([`row_key`]).
    pub keys: Vec<u64>,
    /// These noisy rows, ascending.
    changed: Vec<u32>,
    /// Rows of Ã V and of Ã: the clean ones, then the changed ones.
    pub x: Aligned,
    pub propagation: Arc<Propagation>,
}

impl Shared {
    /// What the rows of the pool have without any clean example.
    pub fn of_pool(noisy: &Features, propagation: Propagation) -> Shared {
        let mut x = Aligned::zeros(noisy.len() * noisy.dim());
        propagation.propagate_rows(&Features::empty(noisy.dim()), noisy, |i| i, &mut x);
        let (propagation, keys) = (Arc::new(propagation), row_keys(noisy));
        Shared { dim: noisy.dim(), x, keys, propagation, n_clean: 0 }
    }

    /// A single choice, whose Ã is that of clean rows stacked on noisy ones.
    pub fn of_one(clean: &Features, noisy: &Features, propagation: Propagation) -> (Shared, Own) {
        let (k, dim) = (clean.len(), clean.dim());
        let mut x = Aligned::zeros(noisy.len() * dim);
        propagation.propagate_rows(clean, noisy, |i| k + i, &mut x);
        let mut of_clean = Aligned::zeros(k * dim);
        propagation.propagate_rows(clean, noisy, |i| i, &mut of_clean);
        let propagation = Arc::new(propagation);
        let own = Own {
            n_clean: k,
            keys: row_keys(clean),
            changed: Vec::new(),
            x: of_clean,
            propagation: Arc::clone(&propagation),
        };
        (Shared { dim, x, keys: row_keys(noisy), propagation, n_clean: k }, own)
    }

    /// One of several choices over the pool ([`Shared::of_pool`]), likewise.
    pub fn choice(&self, clean: &Features, noisy: &Features, propagation: &Propagation) -> Own {
        let k = clean.len();
        let is_changed = |&row: &u32| {
            let (before, after) = (self.propagation.edges(row as usize), propagation.edges(k + row as usize));
            // Shifted columns are compared as they come: of an edge to a clean row, before has none.
            let same_column = |(&a, &b): (&u32, &u32)| a + k as u32 == b;
            before.1 != after.1 || !before.0.iter().zip(after.0).all(same_column)
        };
        let changed: Vec<u32> =
            (0..noisy.len() as u32).into_par_iter().with_min_len(256).filter(is_changed).collect();
        let rows: Vec<u32> = (0..k as u32).chain(changed.iter().map(|row| k as u32 + row)).collect();
        let mut x = Aligned::zeros(rows.len() * clean.dim());
        propagation.propagate_rows(clean, noisy, |i| rows[i] as usize, &mut x);
        Own {
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

    /// Up to a block of rows of Ã V, from row `i` on.
    pub fn rows_from(&self, i: usize) -> &[f32] {
        &self.x[i * self.dim..(i + BLOCK).min(self.len()) * self.dim]
    }
}

impl Own {
    /// The changed rows among these: the place in the own rows, and the noisy row.
    pub fn changed_in(&self, rows: &Range<usize>) -> impl ExactSizeIterator<Item = (usize, usize)> + Clone {
        let place = |row: usize| self.changed.partition_point(|&changed| (changed as usize) < row);
        let (first, end) = (place(rows.start), place(rows.end));
        let own = self.n_clean + first;
        self.changed[first..end].iter().enumerate().map(move |(i, &row)| (own + i, row as usize))
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.x.len() * size_of::<f32>() + self.propagation.memory()
    }
}

fn row_keys(features: &Features) -> Vec<u64> {
    (0..features.len()).into_par_iter().with_min_len(256).map(|i| row_key(features.row(i))).collect()
}
