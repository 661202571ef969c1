//! Exact neighbours without an N×N matrix.
//!
//! The naive algorithm measures all pairs, sorts each row and keeps the first fifty. Three things make it fast:
//!
//! 1. Similarity is symmetric, so only blocks on and above the diagonal are multiplied; a pair found there is offered
//!    to both its rows.
//! 2. Blocks are multiplied by a [`Screen`], faster than exact but off by at most E. A row keeps every candidate whose
//!    score is within 2E of its fiftieth best: whoever falls below that has fifty certainly better rows.
//! 3. The few candidates that survive are measured exactly with [`dot`](crate::kernels::dot) and sorted.
//!
//! The answer is therefore the naive one, bit for bit, in whatever order threads finish their blocks.

use std::sync::Mutex;

use rayon::prelude::*;

use super::neighbours::{Entry, Neighbours, keep_first};
use crate::features::Features;
use crate::kernels::{Hit, ROW_STEP, Screen, Tile, dot_at, prefetch};
use crate::level::Level;
use crate::watch::Watch;

/// The `count` nearest other rows of each row, unless stopped. `level` decides how fast, not what comes out.
pub(super) fn exact(level: Level, features: &Features, count: usize, watch: &Watch) -> Neighbours {
    let n = features.len();
    let width = count.min(n.saturating_sub(1));
    let mut neighbours = Neighbours::blank(n, width);
    if width == 0 {
        return neighbours;
    }
    let mut pools = screen_all_pairs(level, features, width, watch);
    if watch.is_stopped() {
        return neighbours;
    }
    let n_rows = pools[0].len();
    let (indices, similarities) = neighbours.lists_mut();
    indices
        .par_chunks_mut(n_rows * width)
        .zip(similarities.par_chunks_mut(n_rows * width))
        .zip(&mut pools)
        .for_each(|((indices, similarities), pool)| {
            let lists = indices.chunks_exact_mut(width).zip(similarities.chunks_exact_mut(width));
            for (i, (indices, similarities)) in lists.enumerate() {
                for (slot, entry) in pool.best(features, i).iter().enumerate() {
                    indices[slot] = entry.index;
                    similarities[slot] = entry.similarity;
                }
            }
        });
    neighbours
}

/// Offers every pair of rows to the pools of both, until stopped.
fn screen_all_pairs(level: Level, features: &Features, width: usize, watch: &Watch) -> Vec<Pool> {
    let n = features.len();
    let screen = Screen::new(level, features);
    let n_rows = rows_per_panel(n, features.dim());
    let pools: Vec<Mutex<Pool>> = (0..n)
        .step_by(n_rows)
        .map(|start| {
            Mutex::new(Pool::new(level, (start, n_rows.min(n - start)), width, screen.error_bound()))
        })
        .collect();
    // The diagonal first, then ever farther from it: floors rise early, and neighbours in time share no pool.
    let p = pools.len();
    let tiles: Vec<(usize, usize)> =
        (0..p).flat_map(|step| (0..p - step).map(move |i| (i, i + step))).collect();
    tiles.par_iter().enumerate().with_max_len(1).for_each_init(Scratch::default, |scratch, (t, &(i, j))| {
        if !watch.is_stopped() {
            screen_tile(features, &screen, &pools, (i, j), scratch);
            watch.advance(t, tiles.len(), n);
        }
    });
    pools.into_iter().map(|pool| pool.into_inner().expect("no thread panics while it holds a pool")).collect()
}

#[derive(Default)]
struct Scratch {
    scores: Vec<f32>,
    hits: Vec<Hit>,
    row_floor: Vec<f32>,
    column_floor: Vec<f32>,
}

fn screen_tile(
    features: &Features,
    screen: &Screen,
    pools: &[Mutex<Pool>],
    (i, j): (usize, usize),
    scratch: &mut Scratch,
) {
    let lock = |p: usize| pools[p].lock().expect("no thread panics while it holds a pool");
    let rows = lock(i).copy_floors(&mut scratch.row_floor);
    let columns = lock(j).copy_floors(&mut scratch.column_floor);
    let (row_start, column_start) = (rows.start, columns.start);
    let tile = Tile { rows, columns, row_floor: &scratch.row_floor, column_floor: &scratch.column_floor };
    scratch.hits.clear();
    screen.hits(&tile, &mut scratch.scores, &mut scratch.hits);
    if i == j {
        scratch.hits.retain(|hit| hit.i < hit.j);
    }
    let mut pool = lock(i);
    for hit in &scratch.hits {
        pool.offer(features, hit.i as usize, hit.score, column_start as u32 + hit.j);
    }
    drop(pool);
    let mut pool = lock(j);
    for hit in &scratch.hits {
        pool.offer(features, hit.j as usize, hit.score, row_start as u32 + hit.i);
    }
}

/// Two panels of 16-bit rows should share a second-level cache; small sets still need blocks enough for all threads.
fn rows_per_panel(n: usize, dim: usize) -> usize {
    const PANEL_BYTES: usize = 384 << 10;
    let by_cache = (PANEL_BYTES / (2 * dim)).max(1); // rows wider than the cache come a few at a time
    let by_size = n.div_ceil(16);
    by_cache.min(by_size).next_multiple_of(ROW_STEP)
}

/// The candidates of a panel of consecutive rows.
struct Pool {
    level: Level,
    start: usize,
    width: usize,
    /// Slots per row.
    capacity: usize,
    /// Twice the screen's error.
    margin: f32,
    /// For each row, the score below which nothing can be among its neighbours any more.
    floors: Vec<f32>,
    counts: Vec<u32>,
    entries: Vec<Entry>,
}

impl Pool {
    fn new(level: Level, (start, n_rows): (usize, usize), width: usize, error: f32) -> Pool {
        let capacity = (2 * width + width / 2).max(16);
        Pool {
            level,
            start,
            width,
            capacity,
            margin: 2.0 * error,
            floors: vec![f32::NEG_INFINITY; n_rows],
            counts: vec![0; n_rows],
            entries: vec![Entry { similarity: 0.0, index: 0 }; n_rows * capacity],
        }
    }

    fn len(&self) -> usize {
        self.floors.len()
    }

    fn copy_floors(&self, floors: &mut Vec<f32>) -> std::ops::Range<usize> {
        floors.clear();
        floors.extend_from_slice(&self.floors);
        self.start..self.start + self.len()
    }

    /// Takes note of a candidate of row `i` (within the panel), unless it is certainly too far.
    #[inline(always)]
    fn offer(&mut self, features: &Features, i: usize, score: f32, index: u32) {
        if score < self.floors[i] {
            return;
        }
        let count = self.counts[i] as usize;
        self.entries[i * self.capacity + count] = Entry { similarity: score, index };
        self.counts[i] += 1;
        if count + 1 == self.capacity {
            self.make_room(features, i);
        }
    }

    /// Raises the floor of a full row. Where the screen cannot tell enough of them apart (duplicates, say), exact
    /// similarities do.
    #[cold]
    fn make_room(&mut self, features: &Features, i: usize) {
        let slots = &mut self.entries[i * self.capacity..(i + 1) * self.capacity];
        slots.select_nth_unstable_by(self.width - 1, by_score);
        let mut floor = slots[self.width - 1].similarity - self.margin;
        let mut count = self.width;
        for slot in self.width..self.capacity {
            if slots[slot].similarity >= floor {
                slots[count] = slots[slot];
                count += 1;
            }
        }
        if count > self.capacity * 3 / 4 {
            measure(self.level, features, self.start + i, &mut slots[..count]);
            slots[..count].select_nth_unstable_by(self.width - 1, Entry::order);
            floor = slots[self.width - 1].similarity - self.margin;
            count = self.width;
        }
        self.floors[i] = floor;
        self.counts[i] = count as u32;
    }

    /// The neighbours of row `i` (within the panel), measured exactly.
    fn best(&mut self, features: &Features, i: usize) -> Vec<Entry> {
        let slots = &self.entries[i * self.capacity..][..self.counts[i] as usize];
        let mut best: Vec<Entry> = slots.to_vec();
        if best.len() > self.width {
            best.select_nth_unstable_by(self.width - 1, by_score);
            let floor = best[self.width - 1].similarity - self.margin;
            best.retain(|entry| entry.similarity >= floor);
        }
        measure(self.level, features, self.start + i, &mut best);
        keep_first(&mut best, self.width);
        best
    }
}

/// Higher scores first. Scores are not exact, so ties among them mean nothing.
fn by_score(a: &Entry, b: &Entry) -> std::cmp::Ordering {
    b.similarity.total_cmp(&a.similarity)
}

/// Replaces scores by exact similarities to `row`.
fn measure(level: Level, features: &Features, row: usize, entries: &mut [Entry]) {
    let a = features.row(row);
    for i in 0..entries.len() {
        if let Some(soon) = entries.get(i + 2) {
            prefetch(features.row(soon.index as usize)); // candidates are scattered; waiting for them is the cost
        }
        entries[i].similarity = dot_at(level, a, features.row(entries[i].index as usize));
    }
}
