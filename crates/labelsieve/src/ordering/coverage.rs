//! Greedy facility location: which few rows stand for the whole pool?

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use labelsieve_numerics::kernels::dot;
use labelsieve_numerics::random::{Stream, row_key};
use rayon::prelude::*;

use crate::features::Features;
use crate::model::ClassProblem;

/// Rows of a pool that are to be covered, rows that may be chosen, and decided rows that cover, at most. Larger pools are drawn
/// from: what covers a thousand rows of a pool covers the pool, and 2,000 × 1,000 similarities take a fraction of a second at any
/// pool size.
const MAX_COVERED: usize = 1000;
const MAX_CHOSEN_FROM: usize = 2000;
const MAX_SEEN: usize = 2000;

/// How well the rows of a pool are covered by what a person has seen.
///
/// ```text
/// F(S) = Σ_i max_{j ∈ S} s_ij
/// ```
///
/// s: cosine similarity, not below 0. F is submodular: what a row adds only shrinks as others are chosen. So the gain that a row had
/// earlier is a bound of what it has now, and the best row is found after recomputing a few at the top of a heap (Minoux 1978).
///
/// The similarities are those of all pairs and not of neighbour lists: in pools much larger than a list is long, a row covers only what lists
/// it, so that the densest corner takes one look after the other (`docs/review-measured.md`).
pub(super) struct Coverage<'a> {
    noisy: &'a Features,
    /// The rows to be covered, and how well each is.
    rows: Vec<u32>,
    covered: Vec<f32>,
}

impl<'a> Coverage<'a> {
    /// Covered by the clean examples and by whatever was decided, the unsure ones too: those were looked at.
    pub fn of(problem: &ClassProblem<'a>) -> Coverage<'a> {
        let noisy = problem.noisy.features();
        let rows = drawn((0..noisy.len() as u32).collect(), MAX_COVERED, noisy);
        let decided = (0..noisy.len() as u32).filter(|&row| problem.decision(row as usize).is_some());
        let decided = drawn(decided.collect(), MAX_SEEN, noisy);
        let decided = decided.iter().map(|&row| noisy.row(row as usize));
        let seen: Vec<&[f32]> = problem.clean.rows().chain(decided).collect();
        let best =
            |&row: &u32| seen.iter().map(|seen| dot(noisy.row(row as usize), seen)).fold(0.0, f32::max);
        let covered = rows.par_iter().with_min_len(16).map(best).collect();
        Coverage { noisy, rows, covered }
    }

    /// The best `count` of `rows`, one after the other; equal gains go to the lower row.
    pub fn choose(mut self, rows: Vec<u32>, count: usize) -> Vec<u32> {
        let rows = drawn(rows, MAX_CHOSEN_FROM.max(count), self.noisy);
        let first = |&row: &u32| Bound { gain: self.gain(row), row, chosen_before: 0 };
        let mut heap = BinaryHeap::from(rows.par_iter().with_min_len(16).map(first).collect::<Vec<_>>());
        let mut chosen = Vec::with_capacity(count.min(heap.len()));
        while chosen.len() < count {
            let Some(best) = heap.pop() else { break };
            if best.chosen_before == chosen.len() {
                self.add(best.row);
                chosen.push(best.row);
            } else {
                heap.push(Bound { gain: self.gain(best.row), chosen_before: chosen.len(), ..best });
            }
        }
        chosen
    }

    /// What choosing `row` would add.
    fn gain(&self, row: u32) -> f32 {
        let row = self.noisy.row(row as usize);
        let gain =
            |(&other, &covered): (&u32, &f32)| (dot(self.noisy.row(other as usize), row) - covered).max(0.0);
        self.rows.iter().zip(&self.covered).map(gain).sum()
    }

    fn add(&mut self, row: u32) {
        let row = self.noisy.row(row as usize);
        for (&other, covered) in self.rows.iter().zip(&mut self.covered) {
            *covered = covered.max(dot(self.noisy.row(other as usize), row));
        }
    }
}

/// At most `count` of these rows, drawn by what they are, in ascending order.
fn drawn(mut rows: Vec<u32>, count: usize, noisy: &Features) -> Vec<u32> {
    if rows.len() > count {
        let stream = Stream::new(0);
        rows.sort_by_cached_key(|&row| (stream.bits(row_key(noisy.row(row as usize))), row));
        rows.truncate(count);
        rows.sort_unstable();
    }
    rows
}

/// What a row adds at most, as computed when so many had been chosen.
struct Bound {
    gain: f32,
    row: u32,
    chosen_before: usize,
}

impl Ord for Bound {
    fn cmp(&self, other: &Bound) -> Ordering {
        self.gain.total_cmp(&other.gain).then(other.row.cmp(&self.row))
    }
}

impl PartialOrd for Bound {
    fn partial_cmp(&self, other: &Bound) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Bound {
    fn eq(&self, other: &Bound) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Bound {}
