//! Exact neighbours without an N×N matrix.
//!
//! The naive algorithm measures all pairs, sorts each row and keeps the first fifty. Four things make it fast:
//!
//! 1. Similarity is symmetric, so only blocks on and above the diagonal are multiplied; a pair found there is offered
//!    to both its rows.
//! 2. Where rows live in few directions, blocks of [reduced](super::leading) rows are multiplied instead, a fraction of the work.
//!    Their products bound the similarities; only pairs whose bound reaches the floor of one of their rows, the similarity of its
//!    fiftieth best so far, are measured. Similar rows are adjacent, so that floors rise soon.
//! 3. Elsewhere blocks are multiplied by a [`Screen`], faster than exact but off by at most E. A row keeps every candidate whose
//!    score is within 2E of its fiftieth best: below that, fifty rows are certainly better.
//! 4. The remaining candidates are measured exactly with [`dot`](labelsieve_numerics::kernels::dot) and sorted.
//!
//! The answer is therefore the naive one, bit for bit, regardless of the order in which threads finish.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use labelsieve_numerics::Watch;
use labelsieve_numerics::kernels::{Hit, ROW_STEP, RowSlice, Screen, Tile, dot_at, prefetch, rounding_bound};
use labelsieve_numerics::level::Level;
use rayon::prelude::*;

use super::candidates::{Candidates, Search};
use super::leading::Leading;
use super::neighbours::Neighbours;
use super::reduced::Reduced;
use crate::features::Features;

/// The `count` nearest other rows of each row, unless stopped. `level` affects the speed, not the result.
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
    let needed = features.len() > 1 && count > 0;
    let reduced = leading.filter(|_| needed).map(|leading| Reduced::new(leading, features, watch));
    search(level, features, count, reduced.as_ref(), None, watch)
}

/// Searches the given pairs of panels of [`PANEL`] reduced rows, or all pairs.
pub(super) fn search(
    level: Level,
    features: &Features,
    count: usize,
    reduced: Option<&Reduced>,
    tiles: Option<Tiles>,
    watch: &Watch,
) -> Neighbours {
    let n = features.len();
    let width = count.min(n.saturating_sub(1));
    let mut neighbours = Neighbours::blank(None, n, width).expect("lists in memory");
    if width == 0 {
        return neighbours;
    }
    let as_they_are: Vec<u32>;
    let order = match reduced {
        Some(reduced) => reduced.order(),
        None => {
            as_they_are = (0..n as u32).collect();
            &as_they_are
        }
    };
    let pass = match reduced {
        Some(reduced) => {
            Pass::bounded(level, features, width, order, reduced.as_slice(), reduced.error_bound())
        }
        None => Pass::full(level, features, width),
    };
    let mut panels = pass.panels(order);
    let tiles = tiles.unwrap_or(Tiles::Triangle(panels.len()));
    pass.offer(&panels, tiles, &|t| watch.advance(t, tiles.len(), n), watch);
    if watch.is_stopped() {
        return neighbours;
    }
    let panels = panels.iter_mut().map(inner).collect::<Vec<_>>();
    let n_rows = panels[0].rows().len();
    let mut lists = neighbours.lists_in(order);
    panels.into_par_iter().zip(lists.par_chunks_mut(n_rows)).with_max_len(1).for_each(|(panel, lists)| {
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

/// Reduced rows per panel, except in small sets.
pub(super) const PANEL: usize = 4 * ROW_STEP;

/// One pass over pairs.
pub(super) struct Pass<'a> {
    search: Search<'a>,
    screen: Screen<'a>,
    /// The features of each row of the screen, if scores only select the pairs to measure.
    features_of: &'a [u32],
    /// How far the score of a pair may be below its similarity, likewise.
    slack: f32,
}

#[derive(Default)]
struct Buffers {
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
        Pass { search, screen, features_of: &[], slack: 0.0 }
    }

    /// Scores are products of `rows`, which bound similarities up to `error`, and pairs that pass are measured. `features_of`: the
    /// row of the features behind each of `rows`.
    pub fn bounded(
        level: Level,
        features: &'a Features,
        width: usize,
        features_of: &'a [u32],
        rows: RowSlice<'a>,
        error: f32,
    ) -> Pass<'a> {
        let screen = Screen::new(level, rows);
        let slack = error + screen.error_bound() + rounding_bound(features.dim());
        Pass { search: Search { level, features, width, error: None }, screen, features_of, slack }
    }

    /// Candidates of rows, which the screen has in this `order`.
    fn panels(&self, order: &'a [u32]) -> Vec<Mutex<Candidates<'a>>> {
        let panel = |rows| Mutex::new(self.candidates(rows));
        order.chunks(self.rows_per_panel(order.len())).map(panel).collect()
    }

    /// An empty candidate set for a panel of rows.
    pub fn candidates<'r>(&self, rows: &'r [u32]) -> Candidates<'r>
    where
        'a: 'r,
    {
        Candidates::new(self.search, rows)
    }

    /// Offers the pairs of rows in `tiles` to the candidates of both, until stopped; `done` is called with the number of each
    /// finished tile.
    pub fn offer(
        &self,
        panels: &[Mutex<Candidates>],
        tiles: Tiles,
        done: &(dyn Fn(usize) + Sync),
        watch: &Watch,
    ) {
        let n_rows = lock(&panels[0]).rows().len();
        let next = AtomicUsize::new(0); // the next free thread takes the next tile
        (0..rayon::current_num_threads()).into_par_iter().with_max_len(1).for_each(|_| {
            let mut buffers = Buffers::default();
            loop {
                let t = next.fetch_add(1, Ordering::Relaxed);
                if t >= tiles.len() || watch.is_stopped() {
                    break;
                }
                self.offer_tile(panels, n_rows, tiles.at(t), &mut buffers);
                done(t);
            }
        });
    }

    /// Offers the pairs of two panels, some columns at a time, so that the floors of the rows rise meanwhile.
    fn offer_tile(
        &self,
        panels: &[Mutex<Candidates>],
        n_rows: usize,
        tile: (usize, usize),
        buffers: &mut Buffers,
    ) {
        const COLUMNS: usize = 2 * ROW_STEP;
        let (i, j) = tile;
        let lock = |p: usize| lock(&panels[p]);
        let rows = lock(i).rows();
        let columns = lock(j).rows(); // after the first is free again: the two may be the same
        for (first, columns) in (0..).step_by(COLUMNS).zip(columns.chunks(COLUMNS)) {
            let Buffers { scores, hits, row_floor, column_floor } = buffers;
            lock(i).copy_floors(0..rows.len(), self.slack, row_floor);
            lock(j).copy_floors(first..first + columns.len(), self.slack, column_floor);
            let row_start = i * n_rows;
            let column_start = j * n_rows + first;
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
                let features_of = |start: usize, n: usize| &self.features_of[start..start + n];
                self.measure(
                    features_of(row_start, rows.len()),
                    features_of(column_start, columns.len()),
                    hits,
                );
            }
            let mut panel = lock(i);
            hits.iter().for_each(|hit| panel.offer(hit.i as usize, hit.score, columns[hit.j as usize]));
            drop(panel);
            let mut panel = lock(j);
            hits.iter().for_each(|hit| panel.offer(first + hit.j as usize, hit.score, rows[hit.i as usize]));
        }
    }

    /// Two panels fit in a second-level cache; small sets are split further to occupy all threads.
    fn rows_per_panel(&self, n: usize) -> usize {
        const PANEL_BYTES: usize = 384 << 10;
        let by_cache = match self.search.error {
            Some(_) => (PANEL_BYTES / (2 * self.search.features.dim())).max(1), // wide rows come a few at a time
            None => PANEL,
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
            let a = rows[hit.i as usize];
            let b = columns[hit.j as usize];
            hit.score = dot_at(level, features.row(a as usize), features.row(b as usize));
        }
    }
}

fn lock<'p, 'a>(panel: &'p Mutex<Candidates<'a>>) -> MutexGuard<'p, Candidates<'a>> {
    panel.lock().expect("no thread panics with a panel")
}

/// The candidates of a panel that is no longer shared.
pub(super) fn inner<'p, 'a>(panel: &'p mut Mutex<Candidates<'a>>) -> &'p mut Candidates<'a> {
    panel.get_mut().expect("no thread panics with a panel")
}

/// The pairs of panels to search, in an order in which floors rise early and consecutive tiles share no panel.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tiles<'a> {
    /// All pairs of so many panels, diagonal first, then increasingly far apart.
    Triangle(usize),
    /// The first so many panels with each of so many after them.
    Rectangle(usize, usize),
    /// Explicit pairs.
    Listed(&'a [(u32, u32)]),
}

impl Tiles<'_> {
    pub fn len(self) -> usize {
        match self {
            Tiles::Triangle(n_panels) => n_panels * (n_panels + 1) / 2,
            Tiles::Rectangle(n_rows, n_columns) => n_rows * n_columns,
            Tiles::Listed(pairs) => pairs.len(),
        }
    }

    /// The panels of tile `t`.
    fn at(self, t: usize) -> (usize, usize) {
        match self {
            Tiles::Triangle(n_panels) => in_triangle(t, n_panels),
            Tiles::Rectangle(n_rows, n_columns) => {
                let step = t / n_rows;
                let i = t % n_rows;
                (i, n_rows + (i + step) % n_columns)
            }
            Tiles::Listed(pairs) => (pairs[t].0 as usize, pairs[t].1 as usize),
        }
    }
}

fn in_triangle(t: usize, n_panels: usize) -> (usize, usize) {
    let first = |step: usize| step * n_panels - step * step.saturating_sub(1) / 2; // tiles nearer to the diagonal
    let mut step = 0;
    let mut end = n_panels;
    while end - step > 1 {
        let middle = step.midpoint(end);
        if first(middle) <= t { step = middle } else { end = middle }
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
            let tiles = Tiles::Triangle(n_panels);
            assert!((0..tiles.len()).map(|t| tiles.at(t)).eq(expected), "{n_panels} panels");
        }
    }

    #[test]
    fn a_rectangle_has_every_pair_of_its_two_sides_once() {
        for (n_rows, n_columns) in [(1, 1), (1, 4), (3, 2), (5, 7)] {
            let tiles = Tiles::Rectangle(n_rows, n_columns);
            let mut found: Vec<(usize, usize)> = (0..tiles.len()).map(|t| tiles.at(t)).collect();
            found.sort_unstable();
            let expected = (0..n_rows).flat_map(|i| (n_rows..n_rows + n_columns).map(move |j| (i, j)));
            assert!(found.into_iter().eq(expected), "{n_rows} by {n_columns}");
        }
    }
}
