//! Greedy facility location over neighbour lists: which few rows stand for the whole pool?

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use rayon::prelude::*;

use crate::graph::{Neighbours, NoisyGraph, closest_clean};
use crate::model::ClassProblem;

/// How well every row is covered by what a person has seen, and who covers whom.
///
/// ```text
/// F(S) = Σ_i w_i max_{j ∈ S} s_ij
/// ```
///
/// s: cosine similarity, where row j is among the neighbours of row i (1 for i itself), 0 elsewhere; w: how much it matters that
/// row i is covered. F is submodular: what a row adds only shrinks as others are chosen. So the gain that a row had earlier is a
/// bound of what it has now, and the best row is found after recomputing a few at the top of a heap (Minoux 1978).
pub(super) struct Coverage {
    /// Who lists a row, one range per row: the reverse of `neighbours`.
    offsets: Vec<usize>,
    listed_by: Vec<(u32, f32)>,
    covered: Vec<f32>,
}

impl Coverage {
    /// Covered by the clean examples and by whatever was decided, the unsure ones too: those were looked at.
    pub fn of(problem: &ClassProblem, graph: &NoisyGraph) -> Coverage {
        let neighbours = graph.neighbours();
        let (offsets, listed_by) = reversed(neighbours);
        let closest = closest_clean(problem.clean, problem.noisy.features());
        let covered = closest.iter().map(|&(_, similarity)| similarity.max(0.0)).collect();
        let mut coverage = Coverage { offsets, listed_by, covered };
        (0..neighbours.len())
            .filter(|&row| problem.decision(row).is_some())
            .for_each(|row| coverage.add(row));
        coverage
    }

    /// The best `count` of `rows`, one after the other; equal gains go to the lower row.
    pub fn choose(mut self, rows: &[u32], weights: &[f32], count: usize) -> Vec<u32> {
        let first = |&row: &u32| Bound { gain: self.gain(row as usize, weights), row, chosen_before: 0 };
        let mut heap = BinaryHeap::from(rows.par_iter().with_min_len(256).map(first).collect::<Vec<_>>());
        let mut chosen = Vec::with_capacity(count.min(heap.len()));
        while chosen.len() < count {
            let Some(best) = heap.pop() else { break };
            if best.chosen_before == chosen.len() {
                self.add(best.row as usize);
                chosen.push(best.row);
            } else {
                let gain = self.gain(best.row as usize, weights);
                heap.push(Bound { gain, chosen_before: chosen.len(), ..best });
            }
        }
        chosen
    }

    /// Rows that `row` covers, and how well.
    fn covers(&self, row: usize) -> impl Iterator<Item = (usize, f32)> + use<'_> {
        let listed_by = &self.listed_by[self.offsets[row]..self.offsets[row + 1]];
        listed_by.iter().map(|&(other, similarity)| (other as usize, similarity)).chain([(row, 1.0)])
    }

    /// What choosing `row` would add.
    fn gain(&self, row: usize, weights: &[f32]) -> f32 {
        self.covers(row).map(|(other, s)| weights[other] * (s - self.covered[other]).max(0.0)).sum()
    }

    fn add(&mut self, row: usize) {
        let range = self.offsets[row]..self.offsets[row + 1];
        for &(other, similarity) in &self.listed_by[range] {
            let covered = &mut self.covered[other as usize];
            *covered = covered.max(similarity);
        }
        self.covered[row] = 1.0;
    }
}

/// For each row those that list it, in order.
fn reversed(neighbours: &Neighbours) -> (Vec<usize>, Vec<(u32, f32)>) {
    let (indices, similarities) = neighbours.lists();
    let mut offsets = vec![0usize; neighbours.len() + 1];
    indices.iter().for_each(|&row| offsets[row as usize + 1] += 1);
    for row in 0..neighbours.len() {
        offsets[row + 1] += offsets[row];
    }
    let mut next = offsets.clone();
    let mut listed_by = vec![(0, 0.0); indices.len()];
    for (place, (&row, &similarity)) in indices.iter().zip(similarities).enumerate() {
        let slot = &mut next[row as usize];
        listed_by[*slot] = ((place / neighbours.width()) as u32, similarity);
        *slot += 1;
    }
    (offsets, listed_by)
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
