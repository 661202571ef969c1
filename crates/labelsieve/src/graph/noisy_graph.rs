//! The part of a class's graph that does not depend on which examples are clean.

use labelsieve_numerics::kernels::dot;
use labelsieve_numerics::scratch::{OptionalScratch, streamed};
use rayon::prelude::*;

use super::neighbours::{Entry, Neighbours, keep_first};
use crate::error::Result;
use crate::features::Features;

/// The neighbours of a class's noisy examples among themselves, found once and reused for every choice of clean ones.
///
/// The naive algorithm rebuilds everything when a clean example is added. But a row's fifty nearest among *clean and noisy*
/// are the first fifty of its nearest noisy fifty merged with the k clean rows: only k·N similarities are new.
#[derive(Clone, Debug, PartialEq)]
pub struct NoisyGraph {
    neighbours: Neighbours,
    count: usize,
}

impl NoisyGraph {
    /// Searches the `count` nearest noisy neighbours of each noisy example.
    pub fn new(noisy: &Features, count: usize) -> NoisyGraph {
        NoisyGraph { neighbours: Neighbours::exact(noisy, count), count }
    }

    /// A graph of lists from another search for `count` neighbours.
    pub fn from_neighbours(neighbours: Neighbours, count: usize) -> NoisyGraph {
        NoisyGraph { neighbours, count }
    }

    /// The lists: as many neighbours as asked for, or all others when there are fewer.
    pub fn neighbours(&self) -> &Neighbours {
        &self.neighbours
    }

    /// Neighbours kept per example.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Memory use in bytes.
    pub fn memory(&self) -> usize {
        self.neighbours.memory()
    }

    /// The neighbours of all examples, clean rows first: exactly `Neighbours::exact` of the stacked rows.
    pub fn insert(&self, clean: &Features, noisy: &Features) -> Neighbours {
        self.insert_in(None, clean, noisy).expect("lists in memory")
    }

    /// As [`NoisyGraph::insert`], with the lists in `scratch` if there is one.
    pub(crate) fn insert_in(
        &self,
        scratch: OptionalScratch,
        clean: &Features,
        noisy: &Features,
    ) -> Result<Neighbours> {
        let k = clean.len();
        let z = noisy.len();
        let width = self.count.min((k + z).saturating_sub(1));
        let mut merged = Neighbours::blank(scratch, k + z, width)?;
        if width == 0 {
            return Ok(merged);
        }
        let to_clean = similarities_to_clean(clean, noisy);
        for rows in streamed(k + z, width * size_of::<Entry>()) {
            let part = rows.start * width..rows.end * width;
            let (indices, similarities) = merged.lists_mut();
            indices[part.clone()]
                .par_chunks_exact_mut(width)
                .zip(similarities[part].par_chunks_exact_mut(width))
                .zip(rows.clone())
                .with_min_len(64)
                .for_each_init(Vec::new, |entries, ((indices, similarities), i)| {
                    entries.clear();
                    if i < k {
                        entries_of_clean(i, clean, &to_clean, entries);
                    } else if self.is_unchanged(i - k, k, &to_clean, width) {
                        let (noisy, kept) = self.neighbours.of(i - k);
                        indices.iter_mut().zip(noisy).for_each(|(index, &noisy)| *index = noisy + k as u32);
                        similarities.copy_from_slice(kept);
                        return;
                    } else {
                        self.entries_of_noisy(i - k, k, &to_clean, entries);
                    }
                    keep_first(entries, width);
                    for (slot, entry) in entries.iter().enumerate() {
                        indices[slot] = entry.index;
                        similarities[slot] = entry.similarity;
                    }
                });
            merged.release(rows.clone());
            self.neighbours.release(rows.start.saturating_sub(k)..rows.end.saturating_sub(k));
        }
        Ok(merged)
    }

    /// Whether no clean row comes before the last neighbour of noisy example `i`, so that its list stays the same.
    fn is_unchanged(&self, i: usize, k: usize, to_clean: &[f32], width: usize) -> bool {
        let is_full = self.neighbours.width() == width;
        // Of equal ones the clean row comes first: its index is lower.
        let is_behind = |last: Entry| to_clean[i * k..(i + 1) * k].iter().all(|&s| s < last.similarity);
        is_full && self.neighbours.last(i).is_some_and(is_behind)
    }

    /// The noisy neighbours of noisy example `i`, shifted past the `k` clean rows, and all clean rows.
    fn entries_of_noisy(&self, i: usize, k: usize, to_clean: &[f32], entries: &mut Vec<Entry>) {
        let clean = to_clean[i * k..(i + 1) * k].iter().enumerate();
        entries.extend(clean.map(|(c, &similarity)| Entry { similarity, index: c as u32 }));
        let (indices, similarities) = self.neighbours.of(i);
        let noisy = indices.iter().zip(similarities);
        entries.extend(noisy.map(|(&index, &similarity)| Entry { similarity, index: index + k as u32 }));
    }
}

/// Every other row, with its similarity to clean example `c`.
fn entries_of_clean(c: usize, clean: &Features, to_clean: &[f32], entries: &mut Vec<Entry>) {
    let k = clean.len();
    let others = (0..k).filter(|&other| other != c);
    entries.extend(
        others.map(|other| Entry { similarity: dot(clean.row(c), clean.row(other)), index: other as u32 }),
    );
    let noisy = to_clean.iter().skip(c).step_by(k).enumerate();
    entries.extend(noisy.map(|(i, &similarity)| Entry { similarity, index: (k + i) as u32 }));
}

/// For each noisy example the most similar clean one and their similarity; the first of equals.
pub fn closest_clean(clean: &Features, noisy: &Features) -> Vec<(usize, f32)> {
    let closest = |row: &[f32]| {
        let better = |best: (usize, f32), (c, &s): (usize, &f32)| if s > best.1 { (c, s) } else { best };
        row.iter().enumerate().fold((0, f32::NEG_INFINITY), better)
    };
    similarities_to_clean(clean, noisy).chunks_exact(clean.len().max(1)).map(closest).collect()
}

/// z×k similarities of the noisy to the clean examples.
fn similarities_to_clean(clean: &Features, noisy: &Features) -> Vec<f32> {
    let k = clean.len();
    let mut out = vec![0f32; noisy.len() * k];
    if k == 0 {
        return out;
    }
    out.par_chunks_mut(64 * k).enumerate().for_each(|(chunk, out)| {
        let rows = chunk * 64..chunk * 64 + out.len() / k;
        for (row, out) in rows.clone().zip(out.chunks_exact_mut(k)) {
            for (c, out) in out.iter_mut().enumerate() {
                *out = dot(noisy.row(row), clean.row(c));
            }
        }
        noisy.release(rows);
    });
    out
}
