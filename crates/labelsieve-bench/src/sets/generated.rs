//! Generated sets: noise from known classes, from unknown senses, from both, and pools of a few candidates.

use std::sync::Arc;

use labelsieve::Features;
use labelsieve::synthetic::{Noise, Recipe, SyntheticTask};
use labelsieve_files::work::Result;
use labelsieve_numerics::random::Stream;

use super::{KnownClass, KnownSet};

/// The prefix of the names of all generated sets.
pub const NAME: &str = "generated";

/// A kind of set. Its classes come from two tasks in turn, so that each half contains the classes whose examples are noise in its pools.
struct Kind {
    name: &'static str,
    noise: Noise,
    noise_ratio: f32,
    /// Candidates in the smallest and in the largest pool.
    smallest_pool: usize,
    largest_pool: usize,
}

const KINDS: [Kind; 4] = [
    Kind { name: "known", noise: Noise::Classes(3), noise_ratio: 0.6, smallest_pool: 60, largest_pool: 600 },
    Kind {
        name: "unknown",
        noise: Noise::Clusters(3),
        noise_ratio: 0.6,
        smallest_pool: 60,
        largest_pool: 600,
    },
    Kind { name: "mixed", noise: Noise::Mixed(3), noise_ratio: 0.6, smallest_pool: 60, largest_pool: 600 },
    Kind { name: "small", noise: Noise::Clusters(3), noise_ratio: 0.8, smallest_pool: 5, largest_pool: 100 },
];

/// Numbers per example: few enough that classes overlap and even the oracle makes errors.
const DIM: usize = 24;
/// Classes of a half.
const CLASSES: usize = 20;
/// Examples per class that clean ones are drawn from.
const LABELLED: usize = 40;

/// The names of the sets.
pub fn names() -> impl Iterator<Item = String> {
    KINDS.iter().map(|kind| format!("{NAME}-{}", kind.name))
}

/// Generates the set of this name, if there is one.
pub fn generate(name: &str, seed: u64) -> Option<Result<KnownSet>> {
    let kind = names().position(|known| known == name)?;
    Some(KINDS[kind].generate(Stream::new(seed).branch(kind as u64)))
}

impl Kind {
    fn generate(&self, stream: Stream) -> Result<KnownSet> {
        let recipe = Recipe {
            dim: DIM,
            n_classes: CLASSES,
            n_clean: LABELLED,
            largest_pool: 10 * self.largest_pool, // generated pools have at least a tenth of this, and are cut below
            noise_ratio: self.noise_ratio,
            noise: self.noise,
            ..Recipe::default()
        };
        let tasks = [0, 1].map(|half| recipe.generate(stream.bits(half)));
        let mut data = Vec::new();
        let mut classes = Vec::new();
        for c in 0..CLASSES {
            for (half, task) in tasks.iter().enumerate() {
                classes.push(self.class(task, c, half, &mut data));
            }
        }
        Ok(KnownSet {
            name: format!("{NAME}-{}", self.name),
            features: Arc::new(Features::new(data, DIM)?),
            base: Arc::new(Features::empty(DIM)),
            classes,
            made_from: Vec::new(),
        })
    }

    /// Class `c` of a task, whose examples are added to `data`.
    fn class(&self, task: &SyntheticTask, c: usize, half: usize, data: &mut Vec<f32>) -> KnownClass {
        let mut add = |features: &Features, rows: std::ops::Range<usize>| -> Vec<usize> {
            let first = data.len() / DIM;
            data.extend_from_slice(features.block(rows.clone()));
            (first..first + rows.len()).collect()
        };
        let class = &task.classes[c];
        let size = self.pool_size(c);
        let n_test = task.test.len() / task.classes.len();
        KnownClass {
            name: format!("class {}", 2 * c + half),
            labelled: add(&class.clean, 0..class.clean.len()),
            candidates: add(&class.noisy, 0..size),
            relevant: class.truth[..size].to_vec(),
            test: add(&task.test, c * n_test..(c + 1) * n_test),
        }
    }

    /// Evenly spread in log size, the largest first.
    fn pool_size(&self, c: usize) -> usize {
        let smallest = self.smallest_pool as f32;
        let largest = self.largest_pool as f32;
        (largest * (smallest / largest).powf(c as f32 / (CLASSES - 1) as f32)).round() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_pools_have_5_to_100_candidates_of_which_about_a_fifth_is_right() {
        let set = generate("generated-small", 1).unwrap().unwrap();
        let sizes: Vec<usize> = set.classes.iter().map(|class| class.candidates.len()).collect();
        assert_eq!((sizes.len(), sizes[0], sizes[39]), (40, 100, 5));
        let relevant = set.classes.iter().flat_map(|class| &class.relevant).filter(|r| **r).count();
        let share = relevant as f32 / sizes.iter().sum::<usize>() as f32;
        assert!((share - 0.2).abs() < 0.05, "{share}");
        assert!(set.classes.iter().all(|class| class.labelled.len() == 40 && class.test.len() == 40));
    }

    #[test]
    fn only_known_names_are_sets() {
        assert!(generate("generated-other", 0).is_none());
        assert_eq!(names().count(), 4);
        let set = generate("generated-known", 0).unwrap().unwrap();
        assert_eq!(set.classes[3].name, "class 3");
        assert_eq!(set.classes[3].candidates.len(), set.classes[3].relevant.len());
    }

    #[test]
    fn known_noise_comes_from_classes_of_the_same_half_and_unknown_noise_from_none() {
        let near_other_class = |name: &str| {
            let set = generate(name, 3).unwrap().unwrap();
            let mean = |class: &KnownClass| {
                let mut mean = vec![0f32; DIM];
                for &test in &class.test {
                    mean.iter_mut().zip(set.features.row(test)).for_each(|(sum, value)| *sum += value);
                }
                mean
            };
            let means: Vec<Vec<f32>> = set.classes.iter().map(mean).collect();
            let similarity = |row: usize, class: usize| -> f32 {
                set.features.row(row).iter().zip(&means[class]).map(|(a, b)| a * b).sum()
            };
            let mut same = 0;
            let mut other = 0;
            let mut n = 0;
            for (c, class) in set.classes.iter().enumerate().skip(10).take(6) {
                let wrong = class.candidates.iter().zip(&class.relevant).filter(|(_, relevant)| !**relevant);
                for (&row, _) in wrong {
                    let near = |half: usize| {
                        let of_half = (0..set.classes.len()).filter(|j| j % 2 == half && *j != c);
                        of_half.map(|other| similarity(row, other)).fold(f32::MIN, f32::max)
                    };
                    let here = near(c % 2);
                    let there = near(1 - c % 2);
                    same += usize::from(here > there);
                    other += usize::from(there > here);
                    n += 1;
                }
            }
            (same as f32 / n as f32, other as f32 / n as f32)
        };
        let (known, _) = near_other_class("generated-known");
        let (unknown, elsewhere) = near_other_class("generated-unknown");
        assert!(known > 0.8, "{known}");
        assert!((unknown - elsewhere).abs() < 0.35, "{unknown} here, {elsewhere} in the other half");
    }
}
