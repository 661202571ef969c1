//! Greedy facility location: the few rows that best represent a pool.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use labelsieve_numerics::kernels::dot;
use labelsieve_numerics::random::{Stream, row_key};
use rayon::prelude::*;

use crate::features::Features;
use crate::model::ClassProblem;

/// Limits of the rows to be covered, the rows to choose from and the decided rows that cover. Larger pools are sampled: rows that
/// cover a thousand rows of a pool cover the pool, and 2,000 × 1,000 similarities take a fraction of a second at any pool size.
const MAX_COVERED: usize = 1000;
const MAX_CHOICES: usize = 2000;
const MAX_DECIDED: usize = 2000;

/// How well the rows of a pool are covered by the rows that a person has seen.
///
/// ```text
/// F(S) = Σ_i max_{j ∈ S} s_ij
/// ```
///
/// s: cosine similarity, not below 0. F is submodular: the gain of a row only shrinks as others are chosen. So an earlier gain is an
/// upper bound, and the best row is found by recomputing a few at the top of a heap (Minoux 1978).
///
/// Similarities are taken over all pairs rather than neighbour lists: in pools much larger than a list, a row would cover only
/// the rows that list it, so the densest region would be chosen again and again (`docs/review-measured.md`).
pub(super) struct Coverage<'a> {
    noisy: &'a Features,
    /// The rows to be covered, and how well each is.
    rows: Vec<u32>,
    covered: Vec<f32>,
}

impl<'a> Coverage<'a> {
    /// The coverage by the clean examples and all decided rows, including unsure ones, since those were seen too.
    pub fn of(problem: &ClassProblem<'a>) -> Coverage<'a> {
        let noisy = problem.noisy.features();
        let rows = sampled((0..noisy.len() as u32).collect(), MAX_COVERED, noisy);
        let decided = (0..noisy.len() as u32).filter(|&row| problem.decision(row as usize).is_some());
        let decided = sampled(decided.collect(), MAX_DECIDED, noisy);
        let decided = decided.iter().map(|&row| noisy.row(row as usize));
        let seen: Vec<&[f32]> = problem.clean.rows().chain(decided).collect();
        let best =
            |&row: &u32| seen.iter().map(|seen| dot(noisy.row(row as usize), seen)).fold(0.0, f32::max);
        let covered = rows.par_iter().with_min_len(16).map(best).collect();
        Coverage { noisy, rows, covered }
    }

    /// Chooses `count` of `rows` greedily; the lower row wins ties.
    pub fn choose(mut self, rows: Vec<u32>, count: usize) -> Vec<u32> {
        let rows = sampled(rows, MAX_CHOICES.max(count), self.noisy);
        let first = |&row: &u32| GainBound { gain: self.gain(row), row, chosen_before: 0 };
        let mut heap = BinaryHeap::from(rows.par_iter().with_min_len(16).map(first).collect::<Vec<_>>());
        let mut chosen = Vec::with_capacity(count.min(heap.len()));
        while chosen.len() < count {
            let Some(best) = heap.pop() else { break };
            if best.chosen_before == chosen.len() {
                self.add(best.row);
                chosen.push(best.row);
            } else {
                heap.push(GainBound { gain: self.gain(best.row), chosen_before: chosen.len(), ..best });
            }
        }
        chosen
    }

    /// The increase of F if `row` is chosen.
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

/// At most `count` of these rows, sampled by content so that their order does not matter, ascending.
fn sampled(mut rows: Vec<u32>, count: usize, noisy: &Features) -> Vec<u32> {
    if rows.len() > count {
        let stream = Stream::new(0);
        rows.sort_by_cached_key(|&row| (stream.bits(row_key(noisy.row(row as usize))), row));
        rows.truncate(count);
        rows.sort_unstable();
    }
    rows
}

/// An upper bound on the gain of a row, computed when `chosen_before` rows had been chosen.
struct GainBound {
    gain: f32,
    row: u32,
    chosen_before: usize,
}

impl Ord for GainBound {
    fn cmp(&self, other: &GainBound) -> Ordering {
        self.gain.total_cmp(&other.gain).then(other.row.cmp(&self.row))
    }
}

impl PartialOrd for GainBound {
    fn partial_cmp(&self, other: &GainBound) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for GainBound {
    fn eq(&self, other: &GainBound) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for GainBound {}
