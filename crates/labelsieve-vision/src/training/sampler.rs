//! Which examples an epoch shows, and in what order.

use labelsieve::random::Stream;

use crate::error::{Error, Result};

/// Draws every class equally often, and the examples of a class in turn.
///
/// Eq. (6) and (7) sum over classes the *mean* over each one's examples. Drawing classes evenly makes a plain mean over a
/// batch an unbiased estimate of that sum, with weights near 1 however unequal the classes are.
#[derive(Clone, Debug)]
pub struct Sampler {
    /// The examples of each class.
    members: Vec<Vec<usize>>,
}

impl Sampler {
    /// A sampler for examples of these classes.
    pub fn new(classes: &[u32], n_classes: usize) -> Result<Sampler> {
        let mut members = vec![Vec::new(); n_classes];
        for (example, &class) in classes.iter().enumerate() {
            match members.get_mut(class as usize) {
                Some(members) => members.push(example),
                None => {
                    return Err(Error::Shape {
                        what: "class".to_owned(),
                        expected: format!("a number below {n_classes}"),
                        found: class.to_string(),
                    });
                }
            }
        }
        match members.iter().position(Vec::is_empty) {
            Some(class) => Err(Error::EmptyClass { class }),
            None => Ok(Sampler { members }),
        }
    }

    /// The `len` examples of an epoch. Every class comes once before any comes twice, in random order; within a class
    /// every example comes once before any comes twice, over epochs too.
    pub fn epoch(&self, epoch: usize, len: usize, stream: Stream) -> Vec<usize> {
        let n_classes = self.members.len();
        let first = epoch * len; // so many were drawn before
        let mut order = Vec::with_capacity(len);
        let mut shuffled: Vec<Option<(usize, Vec<usize>)>> = vec![None; n_classes];
        let mut classes: (usize, Vec<usize>) = (usize::MAX, Vec::new());
        for position in first..first + len {
            let (round, place) = (position / n_classes, position % n_classes);
            if classes.0 != round {
                classes = (round, stream.branch(0).branch(round as u64).choose(n_classes, n_classes));
            }
            let class = classes.1[place];
            let members = &self.members[class];
            let (pass, turn) = (round / members.len(), round % members.len());
            let deck = match &mut shuffled[class] {
                Some((of, deck)) if *of == pass => deck,
                other => {
                    let stream = stream.branch(1).branch(class as u64).branch(pass as u64);
                    &mut other.insert((pass, stream.choose(members.len(), members.len()))).1
                }
            };
            order.push(members[deck[turn]]);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_come_equally_often_and_examples_in_turn_over_epochs() {
        let classes: Vec<u32> = [vec![0; 3], vec![1; 30], vec![2; 7]].concat();
        let sampler = Sampler::new(&classes, 3).unwrap();
        let epochs: Vec<usize> = (0..3).flat_map(|epoch| sampler.epoch(epoch, 70, Stream::new(1))).collect();
        for round in epochs.chunks_exact(3) {
            let mut seen: Vec<u32> = round.iter().map(|&example| classes[example]).collect();
            seen.sort_unstable();
            assert_eq!(seen, [0, 1, 2]);
        }
        let mut counts = [0; 40];
        epochs.iter().for_each(|&example| counts[example] += 1);
        // 70 of each class: 23 or 24 times each of 3, 2 or 3 times each of 30, 10 times each of 7
        assert!(counts[..3].iter().all(|count| (23..=24).contains(count)), "{counts:?}");
        assert!(counts[3..33].iter().all(|count| (2..=3).contains(count)), "{counts:?}");
        assert!(counts[33..].iter().all(|count| *count == 10), "{counts:?}");
    }

    #[test]
    fn a_class_without_examples_is_refused_by_number() {
        assert_eq!(Sampler::new(&[0, 2], 3).unwrap_err(), Error::EmptyClass { class: 1 });
    }
}
