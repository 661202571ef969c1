//! The unlabelled rows of a diffusion: the distinct candidates of all classes and background rows.

use std::collections::HashMap;

use labelsieve::graph::NoisyGraph;
use labelsieve::{Error, Features, Result};
use labelsieve_numerics::random::row_key;

/// The unlabelled rows with their neighbours, built once for any choice of clean examples.
///
/// Equal rows are stored once: a photo matched by several classes is their common candidate.
pub struct Collection {
    rows: Features,
    /// The classes whose names matched each row, ascending; empty for background.
    candidate_of: Vec<Vec<u32>>,
    graph: NoisyGraph,
}

impl Collection {
    /// The candidates of each class and background rows, with `neighbours` neighbours each.
    pub fn new(pools: &[&Features], background: &Features, neighbours: usize) -> Result<Collection> {
        let mut rows = Features::empty(background.dim());
        let mut candidate_of: Vec<Vec<u32>> = Vec::new();
        let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
        let sets = pools.iter().enumerate().map(|(class, pool)| (Some(class as u32), *pool));
        for (class, set) in sets.chain([(None, background)]) {
            background.check_width("a set of candidates", set, "the background")?;
            for row in set.rows() {
                let alike = places.entry(row_key(row)).or_default();
                let place = match alike.iter().copied().find(|&place| rows.row(place) == row) {
                    Some(place) => place,
                    None => {
                        rows.push(row);
                        candidate_of.push(Vec::new());
                        alike.push(rows.len() - 1);
                        rows.len() - 1
                    }
                };
                let is_new = class.is_some() && candidate_of[place].last() != class.as_ref();
                candidate_of[place].extend(class.filter(|_| is_new));
            }
        }
        if u32::try_from(rows.len()).is_err() {
            let found = rows.len().to_string();
            return Err(Error::Setting { name: "rows of a diffusion", expected: "below 2^32", found });
        }
        let graph = NoisyGraph::new(&rows, neighbours);
        Ok(Collection { rows, candidate_of, graph })
    }

    /// The rows.
    pub fn rows(&self) -> &Features {
        &self.rows
    }

    /// The classes whose names matched a row, ascending.
    pub fn candidate_of(&self, row: usize) -> &[u32] {
        &self.candidate_of[row]
    }

    pub(super) fn graph(&self) -> &NoisyGraph {
        &self.graph
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rows_of_several_sets_are_one_row_with_all_their_classes() {
        let set = |rows: &[f32]| Features::new(rows.to_vec(), 2).unwrap();
        let first = set(&[1.0, 0.0, 0.0, 1.0, 0.0, 1.0]);
        let second = set(&[0.0, 1.0]);
        let collection = Collection::new(&[&first, &second], &set(&[1.0, 0.0, -1.0, 0.0]), 2).unwrap();
        assert_eq!(collection.rows().len(), 3);
        assert_eq!(collection.candidate_of(0), [0]);
        assert_eq!(collection.candidate_of(1), [0, 1]);
        assert!(collection.candidate_of(2).is_empty());
    }
}
