//! Candidates that are really clean or test examples: a pool that contains the test photos makes every figure a lie.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use rayon::prelude::*;

/// Examples on one side of the comparison.
#[derive(Clone, Copy, Debug)]
pub struct GuardRows<'a> {
    /// Unit rows of `dim` numbers, one after the other.
    pub features: &'a [f32],
    /// Numbers per row.
    pub dim: usize,
    /// A digest of each row's file, where the collection has one; empty strings are unknown.
    pub content_hashes: Option<&'a [String]>,
}

/// Why a candidate is taken for a guarded example.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Leak {
    /// How sure that is.
    pub kind: LeakKind,
    /// The guarded row; the first of several.
    pub guard_row: usize,
}

/// How a candidate resembles a guarded example.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LeakKind {
    /// The same file or the same feature row, byte for byte.
    Identical,
    /// Cosine similarity at or above the threshold.
    NearDuplicate {
        /// The largest similarity to a guarded row.
        similarity: f32,
    },
}

/// For each candidate, the guarded example it leaks, if any. Both sides must have the same `dim`.
///
/// Every candidate is compared with every guarded row, in blocks that fit the cache; no approximate index stands
/// between a test photo and its copy.
pub fn find_leaks(candidates: GuardRows, guard: GuardRows, threshold: f32) -> Vec<Option<Leak>> {
    assert_eq!(candidates.dim, guard.dim, "candidate and guard features differ in their number of columns");
    let same_row = first_rows(guard.features.chunks_exact(guard.dim).map(RowBits));
    let same_file = first_rows(guard.content_hashes.unwrap_or_default().iter());
    let n_candidates = candidates.features.len() / candidates.dim;
    let identical = |row: usize| {
        let features = &candidates.features[row * candidates.dim..][..candidates.dim];
        let hash = candidates.content_hashes.map(|hashes| &hashes[row]).filter(|hash| !hash.is_empty());
        let by_row = same_row.get(&RowBits(features)).filter(|_| features.iter().any(|&v| v != 0.0));
        hash.and_then(|hash| same_file.get(&hash)).or(by_row).copied()
    };
    let mut leaks: Vec<Option<Leak>> = (0..n_candidates)
        .into_par_iter()
        .map(|row| identical(row).map(|guard_row| Leak { kind: LeakKind::Identical, guard_row }))
        .collect();
    mark_near_duplicates(&mut leaks, candidates.features, guard.features, guard.dim, threshold);
    leaks
}

fn first_rows<K: Hash + Eq>(keys: impl Iterator<Item = K>) -> HashMap<K, usize> {
    let mut rows = HashMap::new();
    for (row, key) in keys.enumerate() {
        rows.entry(key).or_insert(row);
    }
    rows
}

/// A feature row that equals another only when every bit does.
struct RowBits<'a>(&'a [f32]);

impl PartialEq for RowBits<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0.iter().map(|v| v.to_bits()).eq(other.0.iter().map(|v| v.to_bits()))
    }
}

impl Eq for RowBits<'_> {}

impl Hash for RowBits<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.iter().for_each(|v| v.to_bits().hash(state));
    }
}

fn mark_near_duplicates(
    leaks: &mut [Option<Leak>],
    candidates: &[f32],
    guard: &[f32],
    dim: usize,
    threshold: f32,
) {
    const BLOCK: usize = 256; // 256 × 256 similarities and two blocks of 512 columns stay in a core's own cache
    let blocks = leaks.par_chunks_mut(BLOCK).zip(candidates.par_chunks(BLOCK * dim));
    blocks.for_each_init(Vec::new, |similarities, (leaks, rows)| {
        let mut nearest = vec![(f32::NEG_INFINITY, 0); leaks.len()];
        for (block, guard_rows) in guard.chunks(BLOCK * dim).enumerate() {
            let n_guard = guard_rows.len() / dim;
            similarities.resize(leaks.len() * n_guard, 0.0);
            product_with_transposed(rows, guard_rows, similarities, dim);
            for (nearest, similarities) in nearest.iter_mut().zip(similarities.chunks_exact(n_guard)) {
                for (column, &similarity) in similarities.iter().enumerate() {
                    if similarity > nearest.0 {
                        *nearest = (similarity, block * BLOCK + column);
                    }
                }
            }
        }
        for (leak, (similarity, guard_row)) in leaks.iter_mut().zip(nearest) {
            if leak.is_none() && similarity >= threshold {
                *leak = Some(Leak { kind: LeakKind::NearDuplicate { similarity }, guard_row });
            }
        }
    });
}

/// `out = a · bᵀ` for row-major `a` (n×d), `b` (m×d) and `out` (n×m).
fn product_with_transposed(a: &[f32], b: &[f32], out: &mut [f32], d: usize) {
    let (n, m) = (a.len() / d, b.len() / d);
    assert!(a.len() == n * d && b.len() == m * d && out.len() == n * m, "shapes disagree");
    // SAFETY: the three slices have exactly the shapes that the strides walk over, checked above, and `out` is
    // borrowed mutably, so it overlaps neither input.
    unsafe {
        gemm::gemm(
            n,
            m,
            d,
            out.as_mut_ptr(),
            1,
            m as isize,
            false,
            a.as_ptr(),
            1,
            d as isize,
            b.as_ptr(),
            d as isize,
            1,
            0.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows(features: &[f32]) -> GuardRows<'_> {
        GuardRows { features, dim: 2, content_hashes: None }
    }

    #[test]
    fn copies_and_near_copies_are_told_from_strangers() {
        let candidates = [1.0, 0.0, 0.8, 0.6, 0.0, 1.0];
        let guard = [0.6, 0.8, 1.0, 0.0];
        let leaks = find_leaks(rows(&candidates), rows(&guard), 0.95);
        assert_eq!(leaks[0], Some(Leak { kind: LeakKind::Identical, guard_row: 1 }));
        let Some(Leak { kind: LeakKind::NearDuplicate { similarity }, guard_row: 0 }) = leaks[1] else {
            panic!("{:?}", leaks[1])
        };
        assert!((similarity - 0.96).abs() < 1e-6);
        assert_eq!(leaks[2], None);
    }

    #[test]
    fn the_same_file_is_identical_whatever_its_features() {
        let hashes = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        let (left, right) = (hashes(&["aa", "", "bb"]), hashes(&["", "bb"]));
        let candidates = GuardRows { content_hashes: Some(&left), ..rows(&[1.0, 0.0, 1.0, 0.0, 1.0, 0.0]) };
        let guard = GuardRows { content_hashes: Some(&right), ..rows(&[0.0, 1.0, 0.0, 1.0]) };
        let leaks = find_leaks(candidates, guard, 0.95);
        assert_eq!(leaks, [None, None, Some(Leak { kind: LeakKind::Identical, guard_row: 1 })]);
    }

    #[test]
    fn rows_of_zeros_resemble_nothing() {
        assert_eq!(find_leaks(rows(&[0.0, 0.0]), rows(&[0.0, 0.0]), 0.95), [None]);
    }

    #[test]
    fn no_guard_means_no_leaks() {
        assert_eq!(find_leaks(rows(&[1.0, 0.0]), rows(&[]), 0.5), [None]);
    }

    proptest! {
        #[test]
        fn blocks_find_what_one_row_at_a_time_finds(
            angles in proptest::collection::vec(0.0f32..6.3, 1..600),
            guard_angles in proptest::collection::vec(0.0f32..6.3, 1..600),
        ) {
            let unit = |angles: &[f32]| angles.iter().flat_map(|a| [a.cos(), a.sin()]).collect::<Vec<f32>>();
            let (candidates, guard) = (unit(&angles), unit(&guard_angles));
            let leaks = find_leaks(rows(&candidates), rows(&guard), 0.9999);
            for (row, leak) in candidates.chunks_exact(2).zip(leaks) {
                let best = guard.chunks_exact(2).map(|g| row[0] * g[0] + row[1] * g[1]).fold(-1.0, f32::max);
                if (best - 0.9999).abs() > 1e-5 {
                    prop_assert_eq!(leak.is_some(), best > 0.9999);
                }
            }
        }
    }
}
