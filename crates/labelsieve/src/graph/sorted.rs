//! A pool that exceeds memory, with its rows sorted so that similar ones are adjacent.
//!
//! A search, or a mean over neighbours, then reads few parts of a large file at a time.

use std::ops::Range;

use labelsieve_numerics::Watch;
use labelsieve_numerics::level::Level;
use labelsieve_numerics::scratch::{Access, Element, Scratch, streamed};
use rayon::prelude::*;

use super::leading::Leading;
use super::reduced::{Pivots, in_order, reduce};
use crate::error::Result;
use crate::features::Features;

/// Rows of a pool by place: similar ones are adjacent if they lie in few directions, else the order is unchanged.
pub(crate) struct SortedRows {
    leading: Option<Leading>,
    features: Features,
    /// None if the order is unchanged.
    order: Option<RowOrder>,
}

/// A permutation of rows.
struct RowOrder {
    /// The row at each place.
    rows: Vec<u32>,
    /// The place of each row.
    places: Vec<u32>,
}

impl SortedRows {
    /// Copies `features` in the order that suits a search for `count` neighbours of each row.
    pub fn new(
        level: Level,
        features: &Features,
        count: usize,
        scratch: &dyn Scratch,
        watch: &Watch,
    ) -> Result<SortedRows> {
        let leading = Leading::choose(level, features, count.min(features.len().saturating_sub(1)));
        SortedRows::by(leading, features, scratch, watch)
    }

    /// As [`SortedRows::new`], by the given directions, if any.
    pub fn by(
        leading: Option<Leading>,
        features: &Features,
        scratch: &dyn Scratch,
        watch: &Watch,
    ) -> Result<SortedRows> {
        let Some(directions) = &leading else { return Ok(SortedRows::unsorted(features)) };
        let rows = order(directions, features, watch);
        watch.check()?;
        let mut places = vec![0u32; rows.len()];
        (0..).zip(&rows).for_each(|(place, &row)| places[row as usize] = place);
        let order = RowOrder { rows, places };
        let features = order.sort(features, scratch, watch)?;
        Ok(SortedRows { leading, features, order: Some(order) })
    }

    /// The rows in their own order, not copied.
    pub fn unsorted(features: &Features) -> SortedRows {
        SortedRows { leading: None, features: features.clone(), order: None }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.features.len()
    }

    /// The leading directions of the rows, if a few hold most of their length.
    pub fn leading(&self) -> Option<&Leading> {
        self.leading.as_ref()
    }

    /// The rows, by place.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// The row at a place.
    #[inline(always)]
    pub fn row(&self, place: usize) -> usize {
        self.order.as_ref().map_or(place, |order| order.rows[place] as usize)
    }

    /// The place of a row.
    #[inline(always)]
    pub fn place(&self, row: usize) -> usize {
        self.order.as_ref().map_or(row, |order| order.places[row] as usize)
    }

    /// The place of each row, dropping the rows themselves; none if the order is unchanged.
    pub fn into_places(self) -> Option<Vec<u32>> {
        self.order.map(|order| order.places)
    }

    /// The place of each row; none if the order is unchanged.
    pub fn places(&self) -> Option<&[u32]> {
        self.order.as_ref().map(|order| &order.places[..])
    }
}

/// The places of some rows, joined to stretches. Consecutive rows have about one stretch per cluster.
pub(super) fn stretches_of(places: &[u32]) -> Vec<Range<usize>> {
    const GAP: usize = 8; // unneeded places that a stretch may include
    let mut places = places.to_vec();
    places.sort_unstable();
    let near = |a: &u32, b: &u32| (b - a) as usize <= GAP;
    places.chunk_by(near).map(|run| run[0] as usize..run[run.len() - 1] as usize + 1).collect()
}

/// Copies rows of `width` numbers, stored by place, to the order of rows with these `places`.
pub(super) fn restore<T: Element>(by_place: &[T], width: usize, places: &[u32], out: &mut [T]) {
    out.par_chunks_mut(64 * width).zip(places.par_chunks(64)).for_each(|(out, places)| {
        for (&place, out) in places.iter().zip(out.chunks_exact_mut(width)) {
            out.copy_from_slice(&by_place[place as usize * width..][..width]);
        }
    });
}

impl RowOrder {
    /// A copy of the rows by place. Rows are read in order, and written to about as many places at a time as there are clusters.
    fn sort(&self, features: &Features, scratch: &dyn Scratch, watch: &Watch) -> Result<Features> {
        let d = features.dim();
        let mut sorted = scratch.floats(features.len() * d)?;
        sorted.expect(Access::Scattered);
        for rows in streamed(features.len(), d * size_of::<f32>()) {
            watch.check()?;
            let out = (*sorted).as_mut();
            for row in rows.clone() {
                out[self.places[row] as usize * d..][..d].copy_from_slice(features.row(row));
            }
            features.release(rows);
            sorted.release(0..features.len() * d);
        }
        sorted.expect(Access::InOrder);
        Ok(Features::moved(sorted, d, features.n_zero()))
    }
}

/// Rows ordered by their most similar pivot.
fn order(leading: &Leading, features: &Features, watch: &Watch) -> Vec<u32> {
    let n = features.len();
    let pivots = Pivots::new(leading, features);
    let mut clusters = vec![0u32; n];
    let mut reduced = Vec::new();
    for rows in streamed(n, features.dim() * size_of::<f32>()) {
        reduced.resize(rows.len() * (leading.len() + 1), 0.0);
        reduce(leading, features, rows.clone(), &mut reduced, watch);
        pivots.assign(&reduced, &mut clusters[rows.clone()], watch);
        features.release(rows);
    }
    in_order(&clusters)
}
