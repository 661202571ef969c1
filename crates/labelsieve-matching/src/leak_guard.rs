//! Detecting candidates that are copies of clean or test examples: a pool with test photos would invalidate every evaluation.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use labelsieve::{Features, Result};
use labelsieve_numerics::kernels::{dot, product_with_transposed, rounding_bound};
use rayon::prelude::*;

/// The examples that must not occur among the candidates: clean and test ones.
pub struct LeakGuard<'a> {
    features: &'a Features,
    row_of_bits: HashMap<RowBits<'a>, usize>,
    row_of_hash: HashMap<&'a str, usize>,
    threshold: f32,
}

/// A candidate that is a copy of a guarded example.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Leak {
    /// The evidence.
    pub kind: LeakKind,
    /// The guarded row; the first of several.
    pub guard_row: usize,
}

/// The kind of similarity to a guarded example.
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

/// Rows per comparison: 256 × 256 similarities and two blocks of 512 columns fit in a core's own cache.
const BLOCK: usize = 256;

impl<'a> LeakGuard<'a> {
    /// Guards `features`. `content_hashes` are digests of the files, one per row, if the collection has them; an empty one is
    /// unknown. Rows with a cosine similarity of at least `threshold` are near-duplicates.
    pub fn new(features: &'a Features, content_hashes: &'a [String], threshold: f32) -> LeakGuard<'a> {
        let mut row_of_bits = HashMap::new();
        let mut row_of_hash = HashMap::new();
        for (row, bits) in features.rows().enumerate().filter(|(_, bits)| is_known(bits)) {
            row_of_bits.entry(RowBits(bits)).or_insert(row);
        }
        for (row, hash) in content_hashes.iter().enumerate().filter(|(_, hash)| !hash.is_empty()) {
            row_of_hash.entry(hash.as_str()).or_insert(row);
        }
        LeakGuard { features, row_of_bits, row_of_hash, threshold }
    }

    /// For each candidate, the guarded example it leaks, if any.
    ///
    /// Every candidate is compared with every guarded row: an approximate index could miss the copy of a test photo. As in the
    /// graph, a fast product screens and `dot` decides.
    pub fn leaks(&self, candidates: &Features, content_hashes: &[String]) -> Result<Vec<Option<Leak>>> {
        self.features.check_width("the set of candidates", candidates, "the guarded set")?;
        let mut leaks = vec![None; candidates.len()];
        leaks.par_chunks_mut(BLOCK).enumerate().for_each_init(Vec::new, |scratch, (block, leaks)| {
            let first_row = block * BLOCK;
            let nearest = self.nearest(candidates.block(first_row..first_row + leaks.len()), scratch);
            for (position, (leak, nearest)) in leaks.iter_mut().zip(nearest).enumerate() {
                let row = first_row + position;
                let hash = content_hashes.get(row).map_or("", String::as_str);
                let same_file = self.row_of_hash.get(hash);
                let same_row = self.row_of_bits.get(&RowBits(candidates.row(row)));
                let identical =
                    same_file.or(same_row).map(|&guard_row| Leak { kind: LeakKind::Identical, guard_row });
                *leak = identical.or(nearest);
            }
        });
        Ok(leaks)
    }

    /// The nearest guarded row of each of `rows`, where it is near enough.
    fn nearest(&self, rows: &[f32], scratch: &mut Vec<f32>) -> Vec<Option<Leak>> {
        let dim = self.features.dim();
        let screen = self.threshold - rounding_bound(dim);
        let mut nearest = vec![(f32::NEG_INFINITY, 0); rows.len() / dim];
        for first in (0..self.features.len()).step_by(BLOCK) {
            let guard = self.features.block(first..(first + BLOCK).min(self.features.len()));
            let n_guard = guard.len() / dim;
            scratch.resize(nearest.len() * n_guard, 0.0);
            product_with_transposed(rows, guard, scratch, dim);
            for ((nearest, products), row) in
                nearest.iter_mut().zip(scratch.chunks_exact(n_guard)).zip(rows.chunks_exact(dim))
            {
                for (column, _) in products.iter().enumerate().filter(|&(_, &product)| product >= screen) {
                    let similarity = dot(row, self.features.row(first + column));
                    if similarity > nearest.0 {
                        *nearest = (similarity, first + column);
                    }
                }
            }
        }
        let leak = |(similarity, guard_row)| {
            let kind = LeakKind::NearDuplicate { similarity };
            (similarity >= self.threshold).then_some(Leak { kind, guard_row })
        };
        nearest.into_iter().map(leak).collect()
    }
}

/// An all-zero feature vector does not identify its photo.
fn is_known(row: &[f32]) -> bool {
    row.iter().any(|&value| value != 0.0)
}

/// A feature row compared bit by bit.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows(values: &[f32]) -> Features {
        Features::new(values.to_vec(), 2).unwrap()
    }

    fn leaks(candidates: &Features, guard: &Features, threshold: f32) -> Vec<Option<Leak>> {
        LeakGuard::new(guard, &[], threshold).leaks(candidates, &[]).unwrap()
    }

    #[test]
    fn copies_and_near_copies_are_distinguished_from_other_photos() {
        let leaks = leaks(&rows(&[1.0, 0.0, 0.8, 0.6, 0.0, 1.0]), &rows(&[0.6, 0.8, 1.0, 0.0]), 0.95);
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
        let guard = rows(&[0.0, 1.0, 0.0, 1.0]);
        let guard_hashes = hashes(&["", "bb"]);
        let candidates = rows(&[1.0, 0.0, 1.0, 0.0, 1.0, 0.0]);
        let guard = LeakGuard::new(&guard, &guard_hashes, 0.95);
        let leaks = guard.leaks(&candidates, &hashes(&["aa", "", "bb"])).unwrap();
        assert_eq!(leaks, [None, None, Some(Leak { kind: LeakKind::Identical, guard_row: 1 })]);
    }

    #[test]
    fn all_zero_feature_vectors_are_not_copies() {
        assert_eq!(leaks(&rows(&[0.0, 0.0]), &rows(&[0.0, 0.0]), 0.95), [None]);
    }

    #[test]
    fn no_guard_means_no_leaks() {
        assert_eq!(leaks(&rows(&[1.0, 0.0]), &Features::empty(2), 0.5), [None]);
    }

    #[test]
    fn another_width_is_refused() {
        let wide = Features::new(vec![1.0, 0.0, 0.0], 3).unwrap();
        let error = LeakGuard::new(&wide, &[], 0.9).leaks(&rows(&[1.0, 0.0]), &[]).unwrap_err();
        assert_eq!(error.to_string(), "the set of candidates has 2 columns, but the guarded set has 3");
    }

    proptest! {
        #[test]
        fn blocks_find_what_one_row_at_a_time_finds(
            angles in proptest::collection::vec(0.0f32..6.3, 1..600),
            guard_angles in proptest::collection::vec(0.0f32..6.3, 1..600),
        ) {
            let unit = |angles: &[f32]| rows(&angles.iter().flat_map(|a| [a.cos(), a.sin()]).collect::<Vec<f32>>());
            let candidates = unit(&angles);
            let guard = unit(&guard_angles);
            for (row, leak) in candidates.rows().zip(leaks(&candidates, &guard, 0.9999)) {
                let best = guard.rows().map(|g| dot(row, g)).fold(-1.0, f32::max);
                prop_assert_eq!(leak.is_some(), best >= 0.9999);
            }
        }
    }
}
