//! The result of one class, in memory and as a record of a journal.

use labelsieve::graph::closest_clean;
use labelsieve::{ClassProblem, Relevance};

/// The relevance of a class's candidates and the reasons for it; all vectors but the last have one entry per candidate
/// that takes part.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// Relevance in [0, 1].
    pub relevance: Vec<f32>,
    /// Position of the closest clean example, and its similarity.
    pub closest: Vec<(usize, f32)>,
    /// Number of reciprocal neighbours, where there is a graph.
    pub reciprocal: Option<Vec<u32>>,
    /// Positions, ascending, of the candidates that do not take part: they are clean examples of the class themselves.
    pub copies: Vec<usize>,
}

/// Bytes per candidate: relevance, closest clean example, its similarity, reciprocal neighbours.
const RECORD: usize = 16;
/// Stands for "no graph" in place of a number of neighbours.
const NO_GRAPH: u32 = u32::MAX;
/// Stands for "a clean example itself" in place of the position of the closest one.
const COPY: u32 = u32::MAX;

impl Scored {
    /// `copies` are the candidates that are not in the problem.
    pub fn new(problem: &ClassProblem, relevance: &Relevance, copies: Vec<usize>) -> Scored {
        Scored {
            relevance: relevance.noisy().to_vec(),
            closest: closest_clean(problem.clean, problem.noisy.features()),
            reciprocal: relevance.reciprocal_neighbours().map(<[u32]>::to_vec),
            copies,
        }
    }

    /// The candidates that take part, as positions among all `n_noisy` of the class.
    pub fn kept(&self) -> impl Iterator<Item = usize> {
        let n_noisy = self.relevance.len() + self.copies.len();
        (0..n_noisy).filter(|place| self.copies.binary_search(place).is_err())
    }

    /// One record per candidate.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(RECORD * (self.relevance.len() + self.copies.len()));
        let mut scored = 0..self.relevance.len();
        for place in 0..self.relevance.len() + self.copies.len() {
            let Some(i) = self.copies.binary_search(&place).is_err().then(|| scored.next()).flatten() else {
                for word in [0, COPY, 0, 0] {
                    bytes.extend(u32::to_le_bytes(word));
                }
                continue;
            };
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
        let (mut reciprocal, mut copies) = (Vec::with_capacity(n_noisy), Vec::new());
        for (place, record) in records.iter().enumerate() {
            let [score, position, similarity, neighbours] = *record.as_chunks::<4>().0 else { return None };
            if u32::from_le_bytes(position) == COPY {
                copies.push(place);
                continue;
            }
            relevance.push(f32::from_le_bytes(score));
            closest.push((u32::from_le_bytes(position) as usize, f32::from_le_bytes(similarity)));
            reciprocal.push(u32::from_le_bytes(neighbours));
        }
        let sound = relevance.iter().all(|score| (0.0..=1.0).contains(score))
            && closest.iter().all(|(position, _)| *position < n_clean);
        let reciprocal = (!reciprocal.contains(&NO_GRAPH)).then_some(reciprocal);
        sound.then_some(Scored { relevance, closest, reciprocal, copies })
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
            copies: Vec::new(),
        }
    }

    #[test]
    fn candidates_that_take_no_part_are_noted_at_their_places() {
        for copies in [vec![0], vec![1, 3], vec![0, 1, 4], vec![2]] {
            let scored = Scored { copies, ..two_candidates() };
            let n = 2 + scored.copies.len();
            assert_eq!(scored.kept().count(), 2);
            assert!(scored.kept().all(|place| place < n && !scored.copies.contains(&place)));
            assert_eq!(Scored::decode(&scored.encode(), 3, n), Some(scored));
        }
        let all = Scored { relevance: vec![], closest: vec![], reciprocal: None, copies: vec![0, 1] };
        let read = Scored::decode(&all.encode(), 1, 2).map(|read| (read.relevance.len(), read.copies));
        assert_eq!(read, Some((0, vec![0, 1])));
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
                prop_assert_eq!(scored.relevance.len() + scored.copies.len(), n_noisy);
                prop_assert!(scored.closest.iter().all(|(position, _)| *position < n_clean));
            }
        }
    }
}
