//! The result of one class, as the journal of `labelsieve clean` keeps it.

use labelsieve::graph::closest_clean;
use labelsieve::{ClassProblem, Relevance};

/// The relevance of a class's candidates and the reasons for it; all vectors have one entry per candidate.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    pub relevance: Vec<f32>,
    /// Position of the closest clean example, and its similarity.
    pub closest: Vec<(usize, f32)>,
    /// Number of reciprocal neighbours, where there is a graph.
    pub reciprocal: Option<Vec<u32>>,
}

/// Bytes per candidate: relevance, closest clean example, its similarity, reciprocal neighbours.
const RECORD: usize = 16;
/// Stands for "no graph" in place of a number of neighbours.
const NO_GRAPH: u32 = u32::MAX;

impl Scored {
    pub fn new(problem: &ClassProblem, relevance: &Relevance) -> Scored {
        Scored {
            relevance: relevance.noisy().to_vec(),
            closest: closest_clean(problem.clean, problem.noisy.features()),
            reciprocal: relevance.reciprocal_neighbours().map(<[u32]>::to_vec),
        }
    }

    /// One record per candidate.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(RECORD * self.relevance.len());
        for i in 0..self.relevance.len() {
            let (closest, similarity) = self.closest[i];
            bytes.extend(self.relevance[i].to_le_bytes());
            bytes.extend((closest as u32).to_le_bytes());
            bytes.extend(similarity.to_le_bytes());
            bytes.extend(self.reciprocal.as_ref().map_or(NO_GRAPH, |counts| counts[i]).to_le_bytes());
        }
        bytes
    }

    /// Reads the records of a class with so many examples; nothing when they cannot be of this class.
    pub fn decode(bytes: &[u8], n_clean: usize, n_noisy: usize) -> Option<Scored> {
        let (records, rest) = bytes.as_chunks::<RECORD>();
        if records.len() != n_noisy || !rest.is_empty() {
            return None;
        }
        let (mut relevance, mut closest) = (Vec::with_capacity(n_noisy), Vec::with_capacity(n_noisy));
        let mut reciprocal = Vec::with_capacity(n_noisy);
        for record in records {
            let [score, position, similarity, neighbours] = *record.as_chunks::<4>().0 else { return None };
            relevance.push(f32::from_le_bytes(score));
            closest.push((u32::from_le_bytes(position) as usize, f32::from_le_bytes(similarity)));
            reciprocal.push(u32::from_le_bytes(neighbours));
        }
        let sound = relevance.iter().all(|score| (0.0..=1.0).contains(score))
            && closest.iter().all(|(position, _)| *position < n_clean);
        let reciprocal = (!reciprocal.contains(&NO_GRAPH)).then_some(reciprocal);
        sound.then_some(Scored { relevance, closest, reciprocal })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn two_candidates() -> Scored {
        Scored {
            relevance: vec![0.25, 1.0],
            closest: vec![(2, 0.5), (0, -1.0)],
            reciprocal: Some(vec![0, 50]),
        }
    }

    #[test]
    fn what_is_noted_is_read_back() {
        for reciprocal in [None, Some(vec![0, 50])] {
            let scored = Scored { reciprocal, ..two_candidates() };
            assert_eq!(Scored::decode(&scored.encode(), 3, 2), Some(scored));
        }
        assert_eq!(Scored::decode(&[], 1, 0).map(|scored| scored.relevance), Some(vec![]));
    }

    #[test]
    fn what_belongs_to_another_class_is_not_taken() {
        let bytes = two_candidates().encode();
        assert_eq!(Scored::decode(&bytes, 3, 1), None, "more candidates than the class has");
        assert_eq!(Scored::decode(&bytes, 3, 3), None, "fewer");
        assert_eq!(Scored::decode(&bytes[..31], 3, 2), None, "half a record");
        assert_eq!(Scored::decode(&bytes, 2, 2), None, "a clean example that is not there");
        for score in [f32::NAN, -0.5, 1.5] {
            let wrong = Scored { relevance: vec![0.0, score], ..two_candidates() };
            assert_eq!(Scored::decode(&wrong.encode(), 3, 2), None, "relevance {score}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_refused_or_sound(
            bytes in prop::collection::vec(any::<u8>(), 0..100),
            n_clean in 0usize..4,
            n_noisy in 0usize..8,
        ) {
            if let Some(scored) = Scored::decode(&bytes, n_clean, n_noisy) {
                prop_assert_eq!(scored.relevance.len(), n_noisy);
                prop_assert!(scored.closest.iter().all(|(position, _)| *position < n_clean));
            }
        }
    }
}
