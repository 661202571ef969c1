//! Candidates that are clean examples of their own class.
//!
//! Such an example would count twice, and leave-one-out evaluation would find it in the pool. So it is removed from the pool
//! of *its* class. A clean example of one class may be a candidate of another: a photo shows several things, and the
//! relevance decides whether it belongs there too.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use labelsieve::Features;
use serde::Serialize;

use crate::work::Monitor;
use crate::{ExampleTable, Ids};

/// The number of candidates that were removed as copies of clean examples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Copies {
    /// Those with the same id.
    pub by_id: usize,
    /// Those with identical features or pixels.
    pub by_content: usize,
}

impl Copies {
    /// Reports the copies, if any; `content` names what was compared besides ids.
    pub fn say(&self, content: &str, monitor: &dyn Monitor) {
        let Copies { by_id, by_content } = self;
        if by_id + by_content > 0 {
            let copies = match by_id + by_content {
                1 => "1 candidate is also a clean example of its class and counts once, as clean".to_owned(),
                n => {
                    format!("{n} candidates are also clean examples of their class and count once, as clean")
                }
            };
            monitor.note(&format!("{copies}: {by_id} by id, {by_content} by identical {content}"));
        }
    }
}

/// The ids of some rows, if the ids of the two tables are comparable: row numbers of two files are not.
pub fn comparable_ids<'a>(
    clean: &'a ExampleTable,
    noisy: &ExampleTable,
    rows: &[usize],
) -> Option<HashSet<&'a str>> {
    match (&clean.ids, &noisy.ids) {
        (Ids::Given(ids), Ids::Given(_)) => Some(rows.iter().map(|&row| ids[row].as_str()).collect()),
        _ => None,
    }
}

/// The rows of `noisy` that are identical to a row of `clean`, in ascending order. All-zero feature vectors are not copies
/// of each other.
pub fn identical_rows(clean: &Features, noisy: &Features) -> Vec<usize> {
    let is_zero = |row: &[f32]| row.iter().all(|&value| value == 0.0);
    let digests: HashSet<u64> = clean.rows().filter(|row| !is_zero(row)).map(digest).collect();
    if digests.is_empty() {
        return Vec::new();
    }
    let is_copy = |row: &[f32]| {
        digests.contains(&digest(row)) && clean.rows().any(|clean| clean == row && !is_zero(clean))
    };
    noisy.pass().enumerate().filter(|(_, row)| is_copy(row)).map(|(i, _)| i).collect()
}

/// A hash that is equal for equal rows. The first few numbers distinguish nearly all others.
fn digest(row: &[f32]) -> u64 {
    let mut hasher = DefaultHasher::new();
    row.iter().take(16).for_each(|value| (value + 0.0).to_bits().hash(&mut hasher)); // -0 equals 0
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(values: &[f32]) -> Features {
        Features::new(values.to_vec(), 2).unwrap()
    }

    #[test]
    fn copies_are_found_by_their_numbers_and_zeros_are_not_copies() {
        let clean = features(&[1.0, 0.0, 3.0, 4.0, 0.0, 0.0]);
        let noisy = features(&[0.6, 0.8, 0.0, 0.0, 0.6, 0.80001, 1.0, -0.0, 0.0, 1.0]);
        assert_eq!(identical_rows(&clean, &noisy), [0, 3]);
        assert_eq!(identical_rows(&Features::empty(2), &noisy), [0; 0]);
    }
}
