//! Exact neighbours without an N×N matrix.
//!
//! The naive algorithm measures all pairs, sorts each row and keeps the first fifty. Four things make it fast:
//!
//! 1. Similarity is symmetric, so only blocks on and above the diagonal are multiplied; a pair found there is offered
//!    to both its rows.
//! 2. Where rows live in few directions, blocks of [reduced](super::leading) rows are multiplied instead, a fraction of the work.
//!    Their products bound the similarities; only pairs whose bound reaches the floor of one of their rows, which is the similarity of
//!    its fiftieth best so far, are measured. Similar rows stand together, so that floors are high soon.
//! 3. Elsewhere blocks are multiplied by a [`Screen`], faster than exact but off by at most E. A row keeps every candidate whose
//!    score is within 2E of its fiftieth best: whoever falls below that has fifty certainly better rows.
//! 4. What survives is measured exactly with [`dot`](crate::kernels::dot) and sorted.
//!
//! The answer is therefore the naive one, bit for bit, in whatever order threads finish their blocks.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::candidates::{Candidates, Search};
use super::leading::Leading;
use super::neighbours::Neighbours;
use super::reduced::Reduced;
use crate::features::Features;
use crate::kernels::{Hit, ROW_STEP, Screen, Tile, dot_at, prefetch, rounding_bound};
use crate::level::Level;
use crate::watch::Watch;

/// The `count` nearest other rows of each row, unless stopped. `level` decides how fast, not what comes out.
pub(super) fn exact(level: Level, features: &Features, count: usize, watch: &Watch) -> Neighbours {
    let leading = Leading::choose(level, features, count.min(features.len().saturating_sub(1)));
    exact_by(level, features, count, leading.as_ref(), watch)
}

/// As [`exact`], bounded by the given directions, if any.
pub(super) fn exact_by(
    level: Level,
    features: &Features,
    count: usize,
    leading: Option<&Leading>,
    watch: &Watch,
) -> Neighbours {
    let n = features.len();
    let width = count.min(n.saturating_sub(1));
    let mut neighbours = Neighbours::blank(n, width);
    if width == 0 {
        return neighbours;
    }
    let reduced = leading.map(|leading| Reduced::new(leading, features, watch));
    let pass = match &reduced {
        Some(reduced) => Pass::bounded(level, features, width, reduced),
        None => Pass::full(level, features, width),
    };
    let as_they_are: Vec<u32>;
    let order = match &reduced {
        Some(reduced) => reduced.order(),
        None => {
            as_they_are = (0..n as u32).collect();
            &as_they_are
        }
    };
    let mut panels = pass.offer_all_pairs(order, watch);
    if watch.is_stopped() {
        return neighbours;
    }
    let n_rows = panels[0].rows().len();
    let mut lists = neighbours.lists_in(order);
    panels.par_iter_mut().zip(lists.par_chunks_mut(n_rows)).with_max_len(1).for_each(|(panel, lists)| {
        for (i, (indices, similarities)) in lists.iter_mut().enumerate() {
            for (slot, entry) in panel.best(i).iter().enumerate() {
                indices[slot] = entry.index;
                similarities[slot] = entry.similarity;
            }
        }
    });
    drop(lists);
    neighbours
}

/// One pass over all pairs.
struct Pass<'a> {
    search: Search<'a>,
    screen: Screen<'a>,
    /// How far the screen's score of a pair may be below its similarity, where scores only say which pairs to measure.
    slack: f32,
}

#[derive(Default)]
struct Scratch {
    scores: Vec<f32>,
    hits: Vec<Hit>,
    row_floor: Vec<f32>,
    column_floor: Vec<f32>,
}

impl<'a> Pass<'a> {
    /// Scores are similarities up to an error.
    fn full(level: Level, features: &'a Features, width: usize) -> Pass<'a> {
        let screen = Screen::new(level, features.as_slice());
        let search = Search { level, features, width, error: Some(screen.error_bound()) };
        Pass { search, screen, slack: 0.0 }
    }

    /// Scores bound similarities, and what they let pass is measured.
    fn bounded(level: Level, features: &'a Features, width: usize, reduced: &'a Reduced) -> Pass<'a> {
        let screen = Screen::new(level, reduced.as_slice());
        let slack = reduced.error_bound() + screen.error_bound() + rounding_bound(features.dim());
        Pass { search: Search { level, features, width, error: None }, screen, slack }
    }

    /// Offers every pair of rows to the candidates of both, until stopped. The screen has the rows in this `order`.
    fn offer_all_pairs(&self, order: &'a [u32], watch: &Watch) -> Vec<Candidates<'a>> {
        let n_rows = self.rows_per_panel(order.len());
        let panels: Vec<Mutex<Candidates>> =
            order.chunks(n_rows).map(|rows| Mutex::new(Candidates::new(self.search, rows))).collect();
        let n_tiles = panels.len() * (panels.len() + 1) / 2;
        let next = AtomicUsize::new(0); // threads take tiles in order, whoever is free
        (0..rayon::current_num_threads()).into_par_iter().with_max_len(1).for_each(|_| {
            let mut scratch = Scratch::default();
            loop {
                let t = next.fetch_add(1, Ordering::Relaxed);
                if t >= n_tiles || watch.is_stopped() {
                    break;
                }
                self.offer_tile(&panels, n_rows, tile(t, panels.len()), &mut scratch);
                watch.advance(t, n_tiles, order.len());
            }
        });
        let inner = |panel: Mutex<Candidates<'a>>| panel.into_inner().expect("no thread panics with a panel");
        panels.into_iter().map(inner).collect()
    }

    /// Offers the pairs of two panels, some columns at a time, so that the floors of the rows rise meanwhile.
    fn offer_tile(
        &self,
        panels: &[Mutex<Candidates>],
        n_rows: usize,
        (i, j): (usize, usize),
        scratch: &mut Scratch,
    ) {
        const COLUMNS: usize = 2 * ROW_STEP;
        let lock = |p: usize| panels[p].lock().expect("no thread panics with a panel");
        let rows = lock(i).rows();
        let columns = lock(j).rows(); // after the first is free again: the two may be the same
        for (first, columns) in (0..).step_by(COLUMNS).zip(columns.chunks(COLUMNS)) {
            let Scratch { scores, hits, row_floor, column_floor } = scratch;
            lock(i).copy_floors(0..rows.len(), self.slack, row_floor);
            lock(j).copy_floors(first..first + columns.len(), self.slack, column_floor);
            let (row_start, column_start) = (i * n_rows, j * n_rows + first);
            let tile = Tile {
                rows: row_start..row_start + rows.len(),
                columns: column_start..column_start + columns.len(),
                row_floor,
                column_floor,
            };
            hits.clear();
            self.screen.hits(&tile, scores, hits);
            if i == j {
                hits.retain(|hit| (hit.i as usize) < first + hit.j as usize);
            }
            if self.search.error.is_none() {
                self.measure(rows, columns, hits);
            }
            let mut panel = lock(i);
            hits.iter().for_each(|hit| panel.offer(hit.i as usize, hit.score, columns[hit.j as usize]));
            drop(panel);
            let mut panel = lock(j);
            hits.iter().for_each(|hit| panel.offer(first + hit.j as usize, hit.score, rows[hit.i as usize]));
        }
    }

    /// Panels of rows that a second-level cache holds two of; small sets still need blocks enough for all threads.
    fn rows_per_panel(&self, n: usize) -> usize {
        const PANEL_BYTES: usize = 384 << 10;
        let by_cache = match self.search.error {
            Some(_) => (PANEL_BYTES / (2 * self.search.features.dim())).max(1), // wide rows come a few at a time
            None => 4 * ROW_STEP,
        };
        by_cache.min(n.div_ceil(16)).next_multiple_of(ROW_STEP)
    }

    /// Replaces scores by similarities.
    fn measure(&self, rows: &[u32], columns: &[u32], hits: &mut [Hit]) {
        let Search { level, features, .. } = self.search;
        for h in 0..hits.len() {
            if let Some(soon) = hits.get(h + 2) {
                prefetch(features.row(columns[soon.j as usize] as usize));
            }
            let hit = &mut hits[h];
            let (a, b) = (rows[hit.i as usize], columns[hit.j as usize]);
            hit.score = dot_at(level, features.row(a as usize), features.row(b as usize));
        }
    }
}

/// The panels of tile `t`: the diagonal first, then ever farther from it, so that floors rise early and neighbours in time share
/// no panel.
fn tile(t: usize, n_panels: usize) -> (usize, usize) {
    let first = |step: usize| step * n_panels - step * step.saturating_sub(1) / 2; // tiles nearer to the diagonal
    let (mut step, mut end) = (0, n_panels);
    while end - step > 1 {
        let middle = step.midpoint(end);
        match first(middle) <= t {
            true => step = middle,
            false => end = middle,
        }
    }
    (t - first(step), t - first(step) + step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_all_pairs_of_panels_by_their_distance() {
        for n_panels in [1, 2, 3, 7, 40] {
            let expected = (0..n_panels).flat_map(|step| (0..n_panels - step).map(move |i| (i, i + step)));
            let n_tiles = n_panels * (n_panels + 1) / 2;
            assert!((0..n_tiles).map(|t| tile(t, n_panels)).eq(expected), "{n_panels} panels");
        }
    }
}
