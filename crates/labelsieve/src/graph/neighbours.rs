//! Neighbour lists: for each row the most similar others, best first.

use std::ops::Range;

use labelsieve_numerics::Watch;
use labelsieve_numerics::level::Level;
use labelsieve_numerics::scratch::{Array, OptionalScratch, Scratch};

use super::sorted::SortedRows;
use crate::error::{Error, Result, check};
use crate::features::Features;

/// The `count` most similar other rows of each row (all others when there are fewer), by inner product, best first.
/// Equal similarities are ordered by lower index; a row is never its own neighbour, whatever its duplicates.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbours {
    n: usize,
    width: usize,
    indices: Array<u32>,
    similarities: Array<f32>,
}

impl Neighbours {
    /// Exact search over all pairs.
    pub fn exact(features: &Features, count: usize) -> Neighbours {
        super::search::exact(Level::current(), features, count, Watch::unwatched())
    }

    /// As [`Neighbours::exact`], with progress and cancellation by `watch`.
    pub fn exact_watched(features: &Features, count: usize, watch: &Watch) -> Result<Neighbours> {
        let neighbours = super::search::exact(Level::current(), features, count, watch);
        watch.check()?; // a cancelled search is incomplete
        Ok(neighbours)
    }

    /// The neighbours of very many rows with about the `wanted` recall, and the recall measured on some rows. It is 1 if the search
    /// was exact, because rows are too few or too similar for skipping pairs to pay.
    pub fn approximate(
        features: &Features,
        count: usize,
        wanted: f64,
        watch: &Watch,
    ) -> Result<(Neighbours, f64)> {
        let found = super::approximate::approximate(Level::current(), features, count, wanted, watch);
        watch.check()?;
        Ok(found)
    }

    /// Lists from another search: for each of `n` rows, its `width` nearest in the order of [`Neighbours`].
    pub fn from_lists(
        n: usize,
        width: usize,
        indices: Vec<u32>,
        similarities: Vec<f32>,
    ) -> Result<Neighbours> {
        for found in [indices.len(), similarities.len()] {
            if found != n * width {
                return Err(Error::Length { what: "neighbour lists", expected: n * width, found });
            }
        }
        if let Some(index) = indices.iter().find(|&&index| index as usize >= n) {
            check(false, "neighbour", "the index of a row", index)?;
        }
        Ok(Neighbours { n, width, indices: indices.into(), similarities: similarities.into() })
    }

    /// As [`Neighbours::from_lists`], for lists known to be valid.
    pub(super) fn from_arrays(
        n: usize,
        width: usize,
        indices: Array<u32>,
        similarities: Array<f32>,
    ) -> Neighbours {
        Neighbours { n, width, indices, similarities }
    }

    /// As [`Neighbours::exact_watched`], for rows that exceed memory.
    pub(crate) fn exact_sorted(
        sorted: &SortedRows,
        count: usize,
        scratch: &dyn Scratch,
        watch: &Watch,
    ) -> Result<Neighbours> {
        super::windows::exact(Level::current(), sorted, count, scratch, watch)
    }

    /// Lists of `width` entries for `n` rows, to be filled through [`Neighbours::lists_mut`].
    pub(super) fn blank(scratch: OptionalScratch, n: usize, width: usize) -> Result<Neighbours> {
        let indices = Array::zeros(scratch, n * width)?;
        let similarities = Array::zeros(scratch, n * width)?;
        Ok(Neighbours { n, width, indices, similarities })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.n
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Neighbours per row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The neighbours of row `i` and their similarities.
    pub fn of(&self, i: usize) -> (&[u32], &[f32]) {
        let range = i * self.width..(i + 1) * self.width;
        (&self.indices[range.clone()], &self.similarities[range])
    }

    /// All lists, one after the other: indices and similarities.
    pub fn lists(&self) -> (&[u32], &[f32]) {
        (&self.indices, &self.similarities)
    }

    /// Memory use in bytes.
    pub fn memory(&self) -> usize {
        self.indices.len() * 8
    }

    /// All lists, to be filled: indices and similarities, `width` of each per row.
    pub(super) fn lists_mut(&mut self) -> (&mut [u32], &mut [f32]) {
        (&mut self.indices, &mut self.similarities)
    }

    /// Hints that the lists of these rows are not needed for a while.
    pub(super) fn release(&self, rows: Range<usize>) {
        let part = rows.start * self.width..rows.end * self.width;
        self.indices.release(part.clone());
        self.similarities.release(part);
    }

    /// The lists of rows in a given order, which holds each row once, to be filled.
    pub(super) fn lists_in(&mut self, order: &[u32]) -> Vec<(&mut [u32], &mut [f32])> {
        let width = self.width;
        let (indices, similarities) = self.lists_mut();
        let lists = indices.chunks_exact_mut(width).zip(similarities.chunks_exact_mut(width));
        let mut lists: Vec<Option<_>> = lists.map(Some).collect();
        order.iter().map(|&row| lists[row as usize].take().expect("each row once")).collect()
    }

    /// The last neighbour of row `i`: another row is a neighbour exactly if it does not come after it.
    pub(super) fn last(&self, i: usize) -> Option<Entry> {
        let (indices, similarities) = self.of(i);
        Some(Entry { similarity: *similarities.last()?, index: *indices.last()? })
    }
}

/// One entry of a neighbour list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Entry {
    pub similarity: f32,
    pub index: u32,
}

impl Entry {
    /// The order of every neighbour list: more similar first, then lower index.
    #[inline(always)]
    pub fn precedes(self, other: Entry) -> bool {
        self.similarity > other.similarity
            || (self.similarity == other.similarity && self.index < other.index)
    }

    /// [`Entry::precedes`] as an ordering, for sorting. Similarities are finite and never -0.0.
    pub fn order(&self, other: &Entry) -> std::cmp::Ordering {
        other.similarity.total_cmp(&self.similarity).then(self.index.cmp(&other.index))
    }
}

/// Keeps the first `count` entries in list order, sorted.
pub(super) fn keep_first(entries: &mut Vec<Entry>, count: usize) {
    if entries.len() > count {
        entries.select_nth_unstable_by(count, Entry::order);
        entries.truncate(count);
    }
    entries.sort_unstable_by(Entry::order);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_found_elsewhere_are_checked_before_they_are_trusted() {
        let found = Neighbours::from_lists(2, 1, vec![1, 0], vec![0.5, 0.5]).unwrap();
        assert_eq!(found.of(1), (&[0u32][..], &[0.5f32][..]));
        let short = Neighbours::from_lists(2, 1, vec![1], vec![0.5, 0.5]).unwrap_err();
        assert_eq!(short.to_string(), "neighbour lists: expected 2 values, found 1");
        let beyond = Neighbours::from_lists(2, 1, vec![1, 2], vec![0.5, 0.5]).unwrap_err();
        assert_eq!(beyond.to_string(), "neighbour: expected the index of a row, found 2");
    }
}
