//! The result of one class, in memory and as a record of a journal.

use labelsieve::graph::closest_clean;
use labelsieve::{ClassProblem, Relevance};

/// The relevance of a class's candidates and the reasons for it; all vectors but the copies have one entry per candidate
/// that takes part.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassRelevance {
    /// Relevance in [0, 1].
    pub relevance: Vec<f32>,
    /// The probability that each belongs to the class, where the method knows it.
    pub probability: Option<Vec<f32>>,
    /// Position of the closest clean example, and its similarity.
    pub closest: Vec<(usize, f32)>,
    /// Number of reciprocal neighbours, where there is a graph.
    pub reciprocal: Option<Vec<u32>>,
    /// Positions, ascending, of the candidates that do not take part: they are clean examples of the class themselves.
    pub copies: Vec<usize>,
    /// What the method chose for this class and why, where it chooses.
    pub choice: Option<String>,
    /// The share of neighbours that were found, where the search was approximate.
    pub recall: Option<f64>,
}

/// Counts the forms that records of journals ever had: part of the key of a run, so that older ones are not read.
pub const RECORDS: u32 = 3;
/// Bytes per candidate: relevance, probability, closest clean example, its similarity, reciprocal neighbours.
const RECORD: usize = 20;
/// Stands for "all neighbours were found".
const EXACT: f64 = 1.0;
/// Stands for "no choice" in place of the length of its words.
const NO_CHOICE: u32 = u32::MAX;
/// Stands for "no probability".
const NO_PROBABILITY: f32 = -1.0;
/// Stands for "no graph" in place of a number of neighbours.
const NO_GRAPH: u32 = u32::MAX;
/// Stands for "a clean example itself" in place of the position of the closest one.
const COPY: u32 = u32::MAX;

impl ClassRelevance {
    /// `copies` are the candidates that are not in the problem.
    pub fn new(problem: &ClassProblem, relevance: &Relevance, copies: Vec<usize>) -> ClassRelevance {
        ClassRelevance {
            relevance: relevance.noisy().to_vec(),
            probability: relevance.probability().map(<[f32]>::to_vec),
            closest: closest_clean(problem.clean, problem.noisy.features()),
            reciprocal: relevance.reciprocal_neighbours().map(<[u32]>::to_vec),
            copies,
            choice: relevance.choice().map(str::to_owned),
            recall: problem.noisy.recall(),
        }
    }

    /// The candidates that take part, as positions among all `n_noisy` of the class.
    pub fn kept(&self) -> impl Iterator<Item = usize> {
        let n_noisy = self.relevance.len() + self.copies.len();
        (0..n_noisy).filter(|place| self.copies.binary_search(place).is_err())
    }

    /// The recall, the choice, then one record per candidate.
    pub fn encode(&self) -> Vec<u8> {
        let n_noisy = self.relevance.len() + self.copies.len();
        let choice = self.choice.as_deref();
        let n_choice = choice.map_or(NO_CHOICE, |choice| choice.len() as u32);
        let mut bytes = Vec::with_capacity(12 + choice.map_or(0, str::len) + RECORD * n_noisy);
        bytes.extend(self.recall.unwrap_or(EXACT).to_le_bytes());
        bytes.extend(n_choice.to_le_bytes());
        bytes.extend(choice.unwrap_or_default().as_bytes());
        let mut scored = 0..self.relevance.len();
        for place in 0..n_noisy {
            let Some(i) = self.copies.binary_search(&place).is_err().then(|| scored.next()).flatten() else {
                for word in [0, 0, COPY, 0, 0] {
                    bytes.extend(u32::to_le_bytes(word));
                }
                continue;
            };
            let (closest, similarity) = self.closest[i];
            bytes.extend(self.relevance[i].to_le_bytes());
            bytes.extend(self.probability.as_ref().map_or(NO_PROBABILITY, |p| p[i]).to_le_bytes());
            bytes.extend((closest as u32).to_le_bytes());
            bytes.extend(similarity.to_le_bytes());
            bytes.extend(self.reciprocal.as_ref().map_or(NO_GRAPH, |counts| counts[i]).to_le_bytes());
        }
        bytes
    }

    /// Reads the records of a class with so many examples; nothing when they cannot be of this class.
    pub fn decode(bytes: &[u8], n_clean: usize, n_noisy: usize) -> Option<ClassRelevance> {
        let (recall, bytes) = bytes.split_first_chunk::<8>()?;
        let recall = Some(f64::from_le_bytes(*recall)).filter(|recall| *recall != EXACT);
        let (choice, bytes) = decode_choice(bytes)?;
        let (records, rest) = bytes.as_chunks::<RECORD>();
        if records.len() != n_noisy || !rest.is_empty() {
            return None;
        }
        let (mut relevance, mut probability) = (Vec::with_capacity(n_noisy), Vec::with_capacity(n_noisy));
        let (mut closest, mut reciprocal) = (Vec::with_capacity(n_noisy), Vec::with_capacity(n_noisy));
        let mut copies = Vec::new();
        for (place, record) in records.iter().enumerate() {
            let [score, likely, position, similarity, neighbours] = *record.as_chunks::<4>().0 else {
                return None;
            };
            if u32::from_le_bytes(position) == COPY {
                copies.push(place);
                continue;
            }
            relevance.push(f32::from_le_bytes(score));
            probability.push(f32::from_le_bytes(likely));
            closest.push((u32::from_le_bytes(position) as usize, f32::from_le_bytes(similarity)));
            reciprocal.push(u32::from_le_bytes(neighbours));
        }
        let in_range = |values: &[f32]| values.iter().all(|value| (0.0..=1.0).contains(value));
        let probability = (!probability.contains(&NO_PROBABILITY)).then_some(probability);
        let sound = in_range(&relevance)
            && probability.as_deref().is_none_or(in_range)
            && closest.iter().all(|(position, _)| *position < n_clean)
            && recall.is_none_or(|recall| (0.0..1.0).contains(&recall));
        let reciprocal = (!reciprocal.contains(&NO_GRAPH)).then_some(reciprocal);
        sound.then_some(ClassRelevance {
            relevance,
            probability,
            closest,
            reciprocal,
            copies,
            choice,
            recall,
        })
    }
}

/// The choice at the start of a record, and what follows it.
fn decode_choice(bytes: &[u8]) -> Option<(Option<String>, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    match u32::from_le_bytes(*length) {
        NO_CHOICE => Some((None, rest)),
        length => {
            let (words, rest) = rest.split_at_checked(length as usize)?;
            Some((Some(String::from_utf8(words.to_vec()).ok()?), rest))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn two_candidates() -> ClassRelevance {
        ClassRelevance {
            relevance: vec![0.25, 1.0],
            probability: Some(vec![0.125, 0.75]),
            closest: vec![(2, 0.5), (0, -1.0)],
            reciprocal: Some(vec![0, 50]),
            copies: Vec::new(),
            choice: Some("gcn: β is small".to_owned()),
            recall: Some(0.75),
        }
    }

    #[test]
    fn candidates_that_take_no_part_are_noted_at_their_places() {
        for copies in [vec![0], vec![1, 3], vec![0, 1, 4], vec![2]] {
            let scored = ClassRelevance { copies, ..two_candidates() };
            let n = 2 + scored.copies.len();
            assert_eq!(scored.kept().count(), 2);
            assert!(scored.kept().all(|place| place < n && !scored.copies.contains(&place)));
            assert_eq!(ClassRelevance::decode(&scored.encode(), 3, n), Some(scored));
        }
        let (relevance, closest, copies) = (vec![], vec![], vec![0, 1]);
        let (probability, reciprocal, choice, recall) = (None, None, None, None);
        let all = ClassRelevance { relevance, probability, closest, reciprocal, copies, choice, recall };
        let read =
            ClassRelevance::decode(&all.encode(), 1, 2).map(|read| (read.relevance.len(), read.copies));
        assert_eq!(read, Some((0, vec![0, 1])));
    }

    #[test]
    fn what_is_noted_is_read_back() {
        for reciprocal in [None, Some(vec![0, 50])] {
            let scored = ClassRelevance { reciprocal, ..two_candidates() };
            assert_eq!(ClassRelevance::decode(&scored.encode(), 3, 2), Some(scored));
        }
        for choice in [None, Some(String::new())] {
            let scored = ClassRelevance { probability: None, choice, ..two_candidates() };
            assert_eq!(ClassRelevance::decode(&scored.encode(), 3, 2), Some(scored));
        }
        let exact = ClassRelevance { recall: None, ..two_candidates() };
        assert_eq!(ClassRelevance::decode(&exact.encode(), 3, 2), Some(exact));
        let nobody = [&EXACT.to_le_bytes()[..], &NO_CHOICE.to_le_bytes()].concat();
        assert_eq!(ClassRelevance::decode(&nobody, 1, 0).map(|scored| scored.relevance), Some(vec![]));
    }

    #[test]
    fn what_belongs_to_another_class_is_not_taken() {
        let bytes = two_candidates().encode();
        assert_eq!(ClassRelevance::decode(&bytes, 3, 1), None, "more candidates than the class has");
        assert_eq!(ClassRelevance::decode(&bytes, 3, 3), None, "fewer");
        assert_eq!(ClassRelevance::decode(&bytes[..bytes.len() - 1], 3, 2), None, "half a record");
        assert_eq!(ClassRelevance::decode(&bytes[..18], 3, 2), None, "half a sentence");
        assert_eq!(ClassRelevance::decode(&bytes[..11], 3, 2), None, "not even its length");
        assert_eq!(ClassRelevance::decode(&bytes[..3], 3, 2), None, "not even the recall");
        assert_eq!(ClassRelevance::decode(&bytes, 2, 2), None, "a clean example that is not there");
        for score in [f32::NAN, -0.5, 1.5] {
            let wrong = ClassRelevance { relevance: vec![0.0, score], ..two_candidates() };
            assert_eq!(ClassRelevance::decode(&wrong.encode(), 3, 2), None, "relevance {score}");
            let wrong = ClassRelevance { probability: Some(vec![0.0, score]), ..two_candidates() };
            assert_eq!(ClassRelevance::decode(&wrong.encode(), 3, 2), None, "probability {score}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_refused_or_sound(
            bytes in prop::collection::vec(any::<u8>(), 0..100),
            n_clean in 0usize..4,
            n_noisy in 0usize..8,
        ) {
            if let Some(scored) = ClassRelevance::decode(&bytes, n_clean, n_noisy) {
                prop_assert_eq!(scored.relevance.len() + scored.copies.len(), n_noisy);
                prop_assert!(scored.closest.iter().all(|(position, _)| *position < n_clean));
            }
        }
    }
}
