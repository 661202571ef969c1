//! A pool that memory does not hold, with its rows in an order in which similar ones stand together.
//!
//! Whoever looks at neighbours, a search or a mean over them, then needs few places of a large file at a time.

use std::ops::Range;

use labelsieve_numerics::Watch;
use labelsieve_numerics::level::Level;
use labelsieve_numerics::scratch::{Access, Element, Scratch, streamed};
use rayon::prelude::*;

use super::leading::Leading;
use super::reduced::{Pivots, in_order, reduce};
use crate::error::Result;
use crate::features::Features;

/// Rows of a pool by place: similar ones side by side where they live in few directions, else as they are.
pub(crate) struct SortedRows {
    leading: Option<Leading>,
    features: Features,
    /// Which row is at each place, and where each row is; none: where it always was.
    order: Option<Order>,
}

struct Order {
    rows: Vec<u32>,
    places: Vec<u32>,
}

impl SortedRows {
    /// Copies `features` to where a search for `count` neighbours of each row wants them.
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

    /// The same by the given directions, if any.
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
        let order = Order { rows, places };
        let features = order.sort(features, scratch, watch)?;
        Ok(SortedRows { leading, features, order: Some(order) })
    }

    /// Rows where they are.
    pub fn unsorted(features: &Features) -> SortedRows {
        SortedRows { leading: None, features: features.clone(), order: None }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.features.len()
    }

    /// The directions that most of the rows' length lies in, if a few have it.
    pub fn leading(&self) -> Option<&Leading> {
        self.leading.as_ref()
    }

    /// The rows, by place.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// Which row is at a place.
    #[inline(always)]
    pub fn row(&self, place: usize) -> usize {
        self.order.as_ref().map_or(place, |order| order.rows[place] as usize)
    }

    /// Where a row is.
    #[inline(always)]
    pub fn place(&self, row: usize) -> usize {
        self.order.as_ref().map_or(row, |order| order.places[row] as usize)
    }

    /// Where each row is, once the rows themselves are not needed any more; none where they were never moved.
    pub fn into_places(self) -> Option<Vec<u32>> {
        self.order.map(|order| order.places)
    }

    /// Where each row is; none where they were never moved.
    pub fn places(&self) -> Option<&[u32]> {
        self.order.as_ref().map(|order| &order.places[..])
    }
}

/// Which places, in stretches, some rows have: as many as there are clusters, if the rows follow each other.
pub(super) fn stretches_of(places: &[u32]) -> Vec<Range<usize>> {
    const GAP: usize = 8; // places that are read along
    let mut places = places.to_vec();
    places.sort_unstable();
    let near = |a: &u32, b: &u32| (b - a) as usize <= GAP;
    places.chunk_by(near).map(|run| run[0] as usize..run[run.len() - 1] as usize + 1).collect()
}

/// Brings what stands by place, `width` numbers each, into the order of rows, whose `places` are given.
pub(super) fn restore<T: Element>(by_place: &[T], width: usize, places: &[u32], out: &mut [T]) {
    out.par_chunks_mut(64 * width).zip(places.par_chunks(64)).for_each(|(out, places)| {
        for (&place, out) in places.iter().zip(out.chunks_exact_mut(width)) {
            out.copy_from_slice(&by_place[place as usize * width..][..width]);
        }
    });
}

impl Order {
    /// A copy of rows by place. Rows are read one after the other; as few places are written to at a time as there are
    /// clusters.
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

/// Rows by the pivot they are most similar to.
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
