//! The candidate neighbours of rows during a search.

use std::ops::Range;

use labelsieve_numerics::kernels::{dot_at, prefetch};
use labelsieve_numerics::level::Level;

use super::neighbours::{Entry, keep_first};
use crate::features::Features;

/// The settings of a search.
#[derive(Clone, Copy)]
pub(super) struct Search<'a> {
    pub level: Level,
    pub features: &'a Features,
    /// Neighbours wanted per row.
    pub width: usize,
    /// A bound on the difference of scores from similarities; none if they are equal.
    pub error: Option<f32>,
}

/// The candidates of a panel of rows.
pub(super) struct Candidates<'a> {
    search: Search<'a>,
    rows: &'a [u32],
    /// Slots per row.
    capacity: usize,
    /// For each row, the score below which a candidate cannot be among its neighbours.
    floors: Vec<f32>,
    counts: Vec<u32>,
    entries: Vec<Entry>,
}

impl<'a> Candidates<'a> {
    /// Bytes per row for `width` neighbours if scores are similarities.
    pub fn bytes_per_row(width: usize) -> usize {
        capacity(width, None) * size_of::<Entry>() + size_of::<(f32, u32, u32)>()
    }

    pub fn new(search: Search<'a>, rows: &'a [u32]) -> Candidates<'a> {
        let capacity = capacity(search.width, search.error);
        Candidates {
            search,
            rows,
            capacity,
            floors: vec![f32::NEG_INFINITY; rows.len()],
            counts: vec![0; rows.len()],
            entries: vec![Entry { similarity: 0.0, index: 0 }; rows.len() * capacity],
        }
    }

    /// The rows of the panel.
    pub fn rows(&self) -> &'a [u32] {
        self.rows
    }

    /// The floors of some rows, lowered by `slack`.
    pub fn copy_floors(&self, rows: Range<usize>, slack: f32, floors: &mut Vec<f32>) {
        floors.clear();
        floors.extend(self.floors[rows].iter().map(|floor| floor - slack));
    }

    /// Records a candidate of row `i` (within the panel), unless its score is below the floor.
    #[inline(always)]
    pub fn offer(&mut self, i: usize, score: f32, index: u32) {
        if score < self.floors[i] {
            return;
        }
        let count = self.counts[i] as usize;
        self.entries[i * self.capacity + count] = Entry { similarity: score, index };
        self.counts[i] += 1;
        if count + 1 == self.capacity {
            self.raise_floor(i);
        }
    }

    /// Raises the floor of a full row and drops the candidates below it. If scores do not separate them (as with duplicates), the
    /// order of neighbour lists does.
    #[cold]
    fn raise_floor(&mut self, i: usize) {
        let width = self.search.width;
        let margin = self.margin();
        let slots = &mut self.entries[i * self.capacity..(i + 1) * self.capacity];
        slots.select_nth_unstable_by(width - 1, by_score);
        let mut floor = slots[width - 1].similarity - margin;
        let mut count = width;
        for slot in width..self.capacity {
            if slots[slot].similarity >= floor {
                slots[count] = slots[slot];
                count += 1;
            }
        }
        if count > (width + self.capacity) / 2 {
            measure(&self.search, self.rows[i], &mut slots[..count]);
            slots[..count].select_nth_unstable_by(width - 1, Entry::order);
            floor = slots[width - 1].similarity - margin;
            count = width;
        }
        self.floors[i] = floor;
        self.counts[i] = count as u32;
    }

    /// The neighbours of row `i` (within the panel).
    pub fn best(&mut self, i: usize) -> Vec<Entry> {
        let slots = &self.entries[i * self.capacity..][..self.counts[i] as usize];
        let mut best: Vec<Entry> = slots.to_vec();
        if best.len() > self.search.width {
            best.select_nth_unstable_by(self.search.width - 1, by_score);
            let floor = best[self.search.width - 1].similarity - self.margin();
            best.retain(|entry| entry.similarity >= floor);
        }
        measure(&self.search, self.rows[i], &mut best);
        keep_first(&mut best, self.search.width);
        best
    }

    /// Restores the best candidates of row `i` (within the panel) from an earlier [`Candidates::best`].
    pub fn resume(&mut self, i: usize, best: impl Iterator<Item = Entry>) {
        let slots = &mut self.entries[i * self.capacity..(i + 1) * self.capacity];
        let mut count = 0;
        best.for_each(|entry| {
            slots[count] = entry;
            count += 1;
        });
        self.counts[i] = count as u32;
        if count == self.search.width {
            self.floors[i] = slots[count - 1].similarity;
        }
    }

    /// How far below the last of the best so far the score of a neighbour may be.
    fn margin(&self) -> f32 {
        2.0 * self.search.error.unwrap_or(0.0)
    }
}

/// Slots per row. Exact scores are expensive, so few slots make floors rise soon; inexact scores leave more candidates undecided.
fn capacity(width: usize, error: Option<f32>) -> usize {
    let spare = if error.is_some() { width * 3 / 2 } else { width / 2 };
    (width + spare).max(16)
}

/// Higher scores first, in any order among ties.
fn by_score(a: &Entry, b: &Entry) -> std::cmp::Ordering {
    b.similarity.total_cmp(&a.similarity)
}

/// Replaces inexact scores by similarities to `row`.
fn measure(search: &Search, row: u32, entries: &mut [Entry]) {
    if search.error.is_none() {
        return;
    }
    let features = search.features;
    let a = features.row(row as usize);
    for i in 0..entries.len() {
        if let Some(soon) = entries.get(i + 2) {
            prefetch(features.row(soon.index as usize)); // candidates are scattered, so latency dominates
        }
        entries[i].similarity = dot_at(search.level, a, features.row(entries[i].index as usize));
    }
}
