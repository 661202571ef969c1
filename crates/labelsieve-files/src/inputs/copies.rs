//! Candidates that are clean examples of their own class.
//!
//! Such an example would count twice, and whoever leaves it out to see whether it is recognised would still find it in
//! the pool. So it leaves the pool of *its* class. A clean example of one class may well be a candidate of another: a
//! photo shows several things, and whether it belongs there too is for the relevance to say.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use labelsieve::Features;
use serde::Serialize;

use crate::work::Monitor;
use crate::{ExampleTable, Ids};

/// How many candidates were taken out, and how they were known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Copies {
    /// By the same id.
    pub by_id: usize,
    /// By identical features or pixels.
    pub by_content: usize,
}

impl Copies {
    /// Says how many there were, if any; `content` is what was compared besides ids.
    pub fn say(&self, content: &str, monitor: &dyn Monitor) {
        let Copies { by_id, by_content } = self;
        if by_id + by_content > 0 {
            let copies = match by_id + by_content {
                1 => "1 candidate is also a clean example of its class; used once, as such".to_owned(),
                n => format!("{n} candidates are also clean examples of their class; used once, as such"),
            };
            monitor.note(&format!("{copies}: {by_id} by id, {by_content} by identical {content}"));
        }
    }
}

/// The ids of some rows, if ids of the two tables can be compared: row numbers of two files say nothing.
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

/// Which rows of `noisy` are rows of `clean`, number by number, in ascending order. Rows of zeros are alike without being
/// the same.
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

/// Equal for rows of equal numbers. The first few tell nearly all others apart.
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
    fn copies_are_found_by_their_numbers_and_zeros_are_no_copies() {
        let clean = features(&[1.0, 0.0, 3.0, 4.0, 0.0, 0.0]);
        let noisy = features(&[0.6, 0.8, 0.0, 0.0, 0.6, 0.80001, 1.0, -0.0, 0.0, 1.0]);
        assert_eq!(identical_rows(&clean, &noisy), [0, 3]);
        assert_eq!(identical_rows(&Features::empty(2), &noisy), [0; 0]);
    }
}
