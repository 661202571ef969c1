//! Groups of near-identical candidates, to be decided once.

use crate::graph::NoisyGraph;

/// Cosine similarity from which two candidates count as near-duplicates.
pub const NEAR_DUPLICATES: f32 = 0.98;

/// The group of each row: the first of the rows connected to it by pairs with a similarity of at least `at_least`, or itself.
///
/// Pairs come from the neighbour lists. A group of more copies than a list holds stays connected, since every copy lists others.
pub fn near_duplicates(graph: &NoisyGraph, at_least: f32) -> Vec<u32> {
    let neighbours = graph.neighbours();
    let mut parents: Vec<u32> = (0..neighbours.len() as u32).collect();
    for row in 0..neighbours.len() {
        let (others, similarities) = neighbours.of(row);
        let close = others.iter().zip(similarities).take_while(|(_, similarity)| **similarity >= at_least);
        for (&other, _) in close {
            let a = first_of(&mut parents, row as u32);
            let b = first_of(&mut parents, other);
            parents[a.max(b) as usize] = a.min(b);
        }
    }
    (0..neighbours.len() as u32).map(|row| first_of(&mut parents, row)).collect()
}

/// The root of a row's tree. Roots are always the lowest row of their tree; paths are halved on the way.
fn first_of(parents: &mut [u32], mut row: u32) -> u32 {
    while parents[row as usize] != row {
        parents[row as usize] = parents[parents[row as usize] as usize];
        row = parents[row as usize];
    }
    row
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::features::Features;

    fn on_the_circle(degrees: &[f32]) -> NoisyGraph {
        let rows = degrees.iter().flat_map(|degree| [degree.to_radians().cos(), degree.to_radians().sin()]);
        NoisyGraph::new(&Features::new(rows.collect(), 2).unwrap(), 50)
    }

    #[test]
    fn a_chain_of_close_pairs_is_one_group_named_by_its_first_row() {
        // cos 8° = 0.990, cos 16° = 0.961: rows 1 and 4 are connected only through row 3.
        let graph = on_the_circle(&[90.0, 0.0, 180.0, 8.0, 16.0, 181.0]);
        assert_eq!(near_duplicates(&graph, 0.98), [0, 1, 2, 1, 1, 2]);
        assert_eq!(near_duplicates(&graph, 1.1), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn an_empty_pool_has_no_groups() {
        assert!(near_duplicates(&NoisyGraph::new(&Features::empty(3), 50), 0.9).is_empty());
    }

    #[test]
    fn more_copies_than_a_list_is_long_are_still_one_group() {
        let copies = Features::new([0.6f32, 0.8].repeat(200), 2).unwrap();
        assert_eq!(near_duplicates(&NoisyGraph::new(&copies, 5), 0.98), [0; 200]);
    }

    proptest! {
        #[test]
        fn groups_are_the_connected_components_of_close_pairs(degrees in prop::collection::vec(0f32..360.0, 0..40)) {
            let graph = on_the_circle(&degrees);
            let close = |a: usize, b: usize| {
                let (others, similarities) = graph.neighbours().of(a);
                others.iter().zip(similarities).any(|(&other, &s)| other as usize == b && s >= 0.98)
            };
            let mut expected: Vec<u32> = (0..degrees.len() as u32).collect();
            for _ in 0..degrees.len() { // slow and plain: spread the lowest row along pairs until nothing moves
                for a in 0..degrees.len() {
                    for b in (0..degrees.len()).filter(|&b| close(a, b)) {
                        let first = expected[a].min(expected[b]);
                        (expected[a], expected[b]) = (first, first);
                    }
                }
            }
            prop_assert_eq!(near_duplicates(&graph, 0.98), expected);
        }
    }
}
