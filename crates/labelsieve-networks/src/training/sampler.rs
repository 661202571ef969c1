//! The choice and the order of examples in an epoch.

use labelsieve_numerics::random::Stream;

use crate::error::{Error, Result, Setting};
use crate::prototypical::Prototypical;

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

    /// Checks that there are enough classes, and enough examples of each, for the episodes of `rule`.
    pub fn check_episodes(&self, rule: &Prototypical) -> Result<()> {
        let expected = rule.per_class();
        let n_classes = self.members.len();
        if rule.ways > n_classes {
            let expected = format!("at most {n_classes}, the number of classes");
            return Err(Error::Setting { name: Setting::Ways, expected, found: rule.ways.to_string() });
        }
        match self.members.iter().position(|members| members.len() < expected) {
            Some(class) => Err(Error::SmallClass { class, expected, found: self.members[class].len() }),
            None => Ok(()),
        }
    }

    /// The examples of the `count` episodes of an epoch, one episode after the other: classes and their examples at random, none twice in an
    /// episode.
    pub fn episodes(&self, epoch: usize, count: usize, rule: &Prototypical, stream: Stream) -> Vec<usize> {
        let mut order = Vec::with_capacity(count * rule.batch());
        for episode in epoch * count..(epoch + 1) * count {
            let stream = stream.branch(2).branch(episode as u64);
            for class in stream.branch(0).choose(self.members.len(), rule.ways) {
                let members = &self.members[class];
                let drawn = stream.branch(1).branch(class as u64).choose(members.len(), rule.per_class());
                order.extend(drawn.into_iter().map(|place| members[place]));
            }
        }
        order
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
            let round = position / n_classes;
            let place = position % n_classes;
            if classes.0 != round {
                classes = (round, stream.branch(0).branch(round as u64).choose(n_classes, n_classes));
            }
            let class = classes.1[place];
            let members = &self.members[class];
            let pass = round / members.len();
            let turn = round % members.len();
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
    fn an_episode_has_its_classes_once_and_no_example_twice() {
        let classes: Vec<u32> = [vec![0; 9], vec![1; 30], vec![2; 7], vec![3; 8]].concat();
        let sampler = Sampler::new(&classes, 4).unwrap();
        let rule = Prototypical { ways: 3, shots: 2, queries: 5, ..Prototypical::default() };
        sampler.check_episodes(&rule).unwrap();
        let epochs: Vec<usize> =
            (0..2).flat_map(|e| sampler.episodes(e, 10, &rule, Stream::new(2))).collect();
        assert_eq!(epochs.len(), 2 * 10 * 21);
        let mut of_class = [0; 4];
        for episode in epochs.chunks_exact(21) {
            let mut seen = std::collections::HashSet::new();
            assert!(episode.iter().all(|example| seen.insert(example)));
            for class in episode.chunks_exact(7) {
                assert!(class.iter().all(|&example| classes[example] == classes[class[0]]));
                of_class[classes[class[0]] as usize] += 1;
            }
        }
        assert!(of_class.iter().all(|count| (8..=20).contains(count)), "{of_class:?}");
        let large = Prototypical { queries: 6, ..rule };
        let error = sampler.check_episodes(&large).unwrap_err().to_string();
        assert_eq!(error, "class 2 has 7 images, but an episode takes 8 of a class");
        let error = sampler.check_episodes(&Prototypical { ways: 5, ..rule }).unwrap_err().to_string();
        assert_eq!(error, "ways: expected at most 4, the number of classes, found 5");
    }

    #[test]
    fn a_class_without_examples_is_refused_by_number() {
        assert_eq!(Sampler::new(&[0, 2], 3).unwrap_err(), Error::EmptyClass { class: 1 });
    }
}
