//! Exact neighbours among more rows than memory holds.
//!
//! Rows are split into windows of which two fit in memory. Each window is searched by itself, then every pair of windows; the best
//! candidates of each row so far are kept in a scratch space between rounds. Similar rows are adjacent ([`SortedRows`]), so floors
//! are high after the first round, and the pairs left to be measured lie in the two current windows. The order of pairs does not
//! affect the result ([`search`](super::search)).

use std::ops::Range;
use std::sync::Mutex;

use labelsieve_numerics::Watch;
use labelsieve_numerics::kernels::RowSlice;
use labelsieve_numerics::level::Level;
use labelsieve_numerics::scratch::{Access, Array, Scratch, streamed};
use rayon::prelude::*;

use super::candidates::Candidates;
use super::neighbours::{Entry, Neighbours};
use super::reduced::reduce;
use super::search::{PANEL, Pass, Tiles, inner};
use super::sorted::{SortedRows, restore, stretches_of};
use crate::error::Result;

/// Marks an empty slot of a neighbour list.
const EMPTY_SLOT: u32 = u32::MAX;

/// The `count` nearest other rows of each row.
pub(super) fn exact(
    level: Level,
    sorted: &SortedRows,
    count: usize,
    scratch: &dyn Scratch,
    watch: &Watch,
) -> Result<Neighbours> {
    let n = sorted.len();
    let width = count.min(n.saturating_sub(1));
    if width == 0 {
        return Neighbours::blank(Some(scratch), n, width);
    }
    let mut windows = Windows {
        level,
        sorted,
        width,
        n_rows: rows_per_window(sorted, width, scratch.memory().saturating_sub(16 * n)),
        indices: Array::zeros(Some(scratch), n * width)?,
        similarities: Array::zeros(Some(scratch), n * width)?,
    };
    windows.search(watch)?;
    let Windows { indices, similarities, .. } = windows;
    let Some(places) = sorted.places() else {
        return Ok(Neighbours::from_arrays(n, width, indices, similarities));
    };
    let mut neighbours = Neighbours::blank(Some(scratch), n, width)?;
    indices.expect(Access::Scattered);
    similarities.expect(Access::Scattered);
    for rows in streamed(n, width * size_of::<Entry>()) {
        let part = rows.start * width..rows.end * width;
        for places in stretches_of(&places[rows.clone()]) {
            indices.fetch(places.start * width..places.end * width);
            similarities.fetch(places.start * width..places.end * width);
        }
        let (to_indices, to_similarities) = neighbours.lists_mut();
        restore(&indices, width, &places[rows.clone()], &mut to_indices[part.clone()]);
        restore(&similarities, width, &places[rows.clone()], &mut to_similarities[part]);
        neighbours.release(rows);
        indices.release(0..n * width);
        similarities.release(0..n * width);
    }
    Ok(neighbours)
}

/// The rows per window such that two windows fit in `memory`: features, screened rows, candidates and lists.
fn rows_per_window(sorted: &SortedRows, width: usize, memory: usize) -> usize {
    let row = sorted.features().dim() * size_of::<f32>();
    let screened = sorted.leading().map_or(row, |leading| (leading.len() + 1) * size_of::<f32>());
    let bytes = row + screened * 3 / 2 + Candidates::bytes_per_row(width) + width * size_of::<Entry>();
    let n_rows = (memory / (2 * bytes) / PANEL).max(1) * PANEL;
    // One window if all rows fit, else windows of about the same size.
    let n = sorted.len();
    if n <= 2 * n_rows { n } else { n.div_ceil(n.div_ceil(n_rows)).next_multiple_of(PANEL) }
}

/// The state of a search.
struct Windows<'a> {
    level: Level,
    sorted: &'a SortedRows,
    /// Neighbours wanted per row.
    width: usize,
    /// Rows per window.
    n_rows: usize,
    /// The best of each row so far, by place.
    indices: Array<u32>,
    similarities: Array<f32>,
}

/// Rows whose products, plus `error`, bound similarities.
struct ScreenedRows {
    values: Vec<f32>,
    dim: usize,
    error: f32,
}

impl Windows<'_> {
    fn search(&mut self, watch: &Watch) -> Result<()> {
        let n = self.sorted.len();
        let windows: Vec<Range<usize>> =
            (0..n).step_by(self.n_rows).map(|start| start..n.min(start + self.n_rows)).collect();
        let with_themselves = windows.iter().map(|window| vec![window.clone()]);
        let with_others = (0..windows.len())
            .flat_map(|a| (a + 1..windows.len()).map(move |b| (a, b)))
            .map(|(a, b)| vec![windows[a].clone(), windows[b].clone()]);
        let rounds: Vec<Vec<Range<usize>>> = with_themselves.chain(with_others).collect();
        let n_tiles: usize = rounds.iter().map(|windows| tiles(windows).len()).sum();
        let mut n_done = 0;
        for windows in rounds {
            self.round(&windows, &|t| watch.advance(n_done + t, n_tiles, n), watch);
            watch.check()?;
            n_done += tiles(&windows).len();
        }
        Ok(())
    }

    /// All pairs within one window, or across two.
    fn round(&mut self, windows: &[Range<usize>], done: &(dyn Fn(usize) + Sync), watch: &Watch) {
        let places: Vec<u32> = windows.iter().cloned().flatten().map(|place| place as u32).collect();
        let rows: Vec<u32> = places.iter().map(|&place| self.sorted.row(place as usize) as u32).collect();
        let screened = self.screened(windows, watch);
        let rows_of_screen = RowSlice { values: &screened.values, dim: screened.dim };
        let pass = Pass::bounded(
            self.level,
            self.sorted.features(),
            self.width,
            &places,
            rows_of_screen,
            screened.error,
        );
        let mut panels: Vec<Mutex<Candidates>> =
            rows.chunks(PANEL).map(|rows| Mutex::new(pass.candidates(rows))).collect();
        if windows.len() > 1 {
            self.resume(windows, &mut panels);
        }
        pass.offer(&panels, tiles(windows), done, watch);
        if !watch.is_stopped() {
            self.keep(windows, &mut panels);
        }
    }

    /// The rows that a screen multiplies.
    fn screened(&self, windows: &[Range<usize>], watch: &Watch) -> ScreenedRows {
        let features = self.sorted.features();
        let n: usize = windows.iter().map(Range::len).sum();
        let Some(leading) = self.sorted.leading() else {
            let rows = windows.iter().flat_map(|window| features.block(window.clone()));
            return ScreenedRows { values: rows.copied().collect(), dim: features.dim(), error: 0.0 };
        };
        let dim = leading.len() + 1;
        let mut reduced = vec![0f32; n * dim];
        let mut rest = &mut reduced[..];
        for window in windows {
            let (of_window, behind) = rest.split_at_mut(window.len() * dim);
            reduce(leading, features, window.clone(), of_window, watch);
            rest = behind;
        }
        ScreenedRows { values: reduced, dim, error: leading.error_bound() }
    }

    fn resume(&mut self, windows: &[Range<usize>], panels: &mut [Mutex<Candidates>]) {
        self.with_lists(windows, panels, |panel, i, indices, similarities| {
            let found = indices.iter().zip(&*similarities).take_while(|(index, _)| **index != EMPTY_SLOT);
            panel.resume(i, found.map(|(&index, &similarity)| Entry { similarity, index }));
        });
    }

    fn keep(&mut self, windows: &[Range<usize>], panels: &mut [Mutex<Candidates>]) {
        self.with_lists(windows, panels, |panel, i, indices, similarities| {
            let best = panel.best(i);
            indices.fill(EMPTY_SLOT);
            for (slot, entry) in best.iter().enumerate() {
                indices[slot] = entry.index;
                similarities[slot] = entry.similarity;
            }
        });
        for window in windows {
            let part = window.start * self.width..window.end * self.width;
            self.indices.release(part.clone());
            self.similarities.release(part);
            self.sorted.features().release(window.clone());
        }
    }

    /// Calls `work` for every row of some windows, with its panel, its number in it, and its list.
    fn with_lists(
        &mut self,
        windows: &[Range<usize>],
        panels: &mut [Mutex<Candidates>],
        work: impl Fn(&mut Candidates, usize, &mut [u32], &mut [f32]) + Sync,
    ) {
        let width = self.width;
        let mut panels = panels.iter_mut();
        for window in windows {
            let part = window.start * width..window.end * width;
            let lists = self.indices[part.clone()]
                .par_chunks_mut(PANEL * width)
                .zip(self.similarities[part].par_chunks_mut(PANEL * width));
            let of_window: Vec<&mut Candidates> =
                panels.by_ref().take(window.len().div_ceil(PANEL)).map(inner).collect();
            of_window.into_par_iter().zip(lists).for_each(|(panel, (indices, similarities))| {
                let lists = indices.chunks_exact_mut(width).zip(similarities.chunks_exact_mut(width));
                lists.enumerate().for_each(|(i, (indices, similarities))| {
                    work(panel, i, indices, similarities);
                });
            });
        }
    }
}

fn tiles(windows: &[Range<usize>]) -> Tiles<'static> {
    let n_panels = |window: &Range<usize>| window.len().div_ceil(PANEL);
    match windows {
        [alone] => Tiles::Triangle(n_panels(alone)),
        [first, second, ..] => Tiles::Rectangle(n_panels(first), n_panels(second)),
        [] => Tiles::Triangle(0),
    }
}
