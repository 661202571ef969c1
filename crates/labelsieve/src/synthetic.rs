//! Generated features with known truth, for the demo, the sanity table and tests.
//!
//! A *sense* is one meaning of a word: a centre, and a few directions in which its examples vary. The examples of a
//! class come from one sense. A pool also holds noise: examples of other senses, as an ambiguous word brings them, of
//! other classes, or from everywhere, each its own sense.

use labelsieve_numerics::random::Stream;

use crate::features::Features;

/// Where the irrelevant examples of a pool come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noise {
    /// So many senses outside the classes, each a cluster.
    Clusters(usize),
    /// So many of the other classes; a task of one class uses clusters instead.
    Classes(usize),
    /// Half from so many other classes, half from as many senses outside the classes.
    Mixed(usize),
    /// Unstructured noise: each example has its own sense.
    Everywhere,
}

/// The settings of a generated task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recipe {
    /// Numbers per example.
    pub dim: usize,
    /// Classes.
    pub n_classes: usize,
    /// Clean examples per class.
    pub n_clean: usize,
    /// Noisy examples in the largest pool; the others are smaller, evenly spread in log size down to a tenth.
    pub largest_pool: usize,
    /// Share of irrelevant examples in each pool.
    pub noise_ratio: f32,
    /// Where they come from.
    pub noise: Noise,
    /// Test examples per class.
    pub n_test: usize,
}

impl Default for Recipe {
    fn default() -> Recipe {
        Recipe {
            dim: 64,
            n_classes: 20,
            n_clean: 5,
            largest_pool: 600,
            noise_ratio: 0.6,
            noise: Noise::Clusters(3),
            n_test: 40,
        }
    }
}

/// One generated class.
pub struct SyntheticClass {
    /// Verified examples.
    pub clean: Features,
    /// Candidates.
    pub noisy: Features,
    /// Whether each candidate belongs to the class.
    pub truth: Vec<bool>,
}

/// Generated classes and a test set over all of them.
pub struct SyntheticTask {
    /// The classes.
    pub classes: Vec<SyntheticClass>,
    /// Test examples, class by class.
    pub test: Features,
    /// The class of each test example.
    pub test_labels: Vec<usize>,
}

impl Recipe {
    /// Generates the task of a seed.
    pub fn generate(&self, seed: u64) -> SyntheticTask {
        let stream = Stream::new(seed);
        let classes = (0..self.n_classes).map(|c| self.class(c, stream)).collect();
        let mut test = Vec::new();
        for c in 0..self.n_classes {
            let sense = Sense::new(self.dim, stream.branch(c as u64));
            (0..self.n_test).for_each(|i| test.extend(sense.example(TEST + i as u64)));
        }
        let test_labels = (0..self.n_classes * self.n_test).map(|i| i / self.n_test.max(1)).collect();
        SyntheticTask { classes, test: features(test, self.dim), test_labels }
    }

    fn class(&self, c: usize, stream: Stream) -> SyntheticClass {
        let own = stream.branch(c as u64);
        let sense = Sense::new(self.dim, own);
        let clean = (0..self.n_clean).flat_map(|i| sense.example(CLEAN + i as u64)).collect();
        let shrink = 10f32.powf(-(c as f32) / (self.n_classes.max(2) - 1) as f32);
        let n_noisy = (self.largest_pool as f32 * shrink).round() as usize;
        let truth: Vec<bool> =
            (0..n_noisy).map(|i| own.branch(1).uniform(i as u64) >= self.noise_ratio).collect();
        let others = self.other_classes(c, stream);
        let candidate = |(i, relevant): (usize, &bool)| {
            let position = i as u64;
            let among = |n: usize| own.branch(2).below(position, n.max(1));
            let (from_class, sense_number) = match self.noise {
                _ if *relevant => return sense.example(NOISY + position),
                Noise::Clusters(n) => (false, among(n) as u64),
                Noise::Classes(n) => (true, among(n) as u64),
                Noise::Mixed(n) => (own.branch(5).uniform(position) < 0.5, among(n) as u64),
                Noise::Everywhere => (false, position),
            };
            if from_class && !others.is_empty() {
                let other = others[among(others.len())];
                // Numbered so that the example is in no other pool, including that of its own class.
                let number = OTHERS + ((c as u64) << 32) + position;
                return Sense::new(self.dim, stream.branch(other as u64)).example(number);
            }
            Sense::new(self.dim, own.branch(3).branch(sense_number)).example(NOISY + position)
        };
        let noisy = truth.iter().enumerate().flat_map(candidate).collect();
        SyntheticClass { clean: features(clean, self.dim), noisy: features(noisy, self.dim), truth }
    }

    /// The classes whose examples are noise in the pool of class `c`.
    fn other_classes(&self, c: usize, stream: Stream) -> Vec<usize> {
        let (Noise::Classes(n) | Noise::Mixed(n)) = self.noise else { return Vec::new() };
        let drawn = stream.branch(c as u64).branch(4).choose(self.n_classes - 1, n.max(1));
        drawn.into_iter().map(|other| if other < c { other } else { other + 1 }).collect()
    }
}

// Examples of a sense are numbered; these keep the parts apart.
const CLEAN: u64 = 0;
const NOISY: u64 = 1 << 32;
const TEST: u64 = 2 << 32;
const OTHERS: u64 = 3 << 32; // and whatever comes after

struct Sense {
    dim: usize,
    stream: Stream,
    centre: Vec<f32>,
    directions: Vec<Vec<f32>>,
}

impl Sense {
    const DIRECTIONS: u64 = 4;

    fn new(dim: usize, stream: Stream) -> Sense {
        let vector = |label: u64| -> Vec<f32> {
            let draws = stream.branch(100 + label);
            (0..dim as u64).map(|column| draws.normal(column) / (dim as f32).sqrt()).collect()
        };
        Sense { dim, stream, centre: vector(0), directions: (1..=Self::DIRECTIONS).map(vector).collect() }
    }

    /// centre + variation along the sense's directions + noise in all of them, in parts of 1 : 1.2 : 0.8.
    fn example(&self, number: u64) -> Vec<f32> {
        let draws = self.stream.branch(200).branch(number);
        let mut row = self.centre.clone();
        for (label, direction) in self.directions.iter().enumerate() {
            let amount = 1.2 * draws.normal(label as u64) / (Self::DIRECTIONS as f32).sqrt();
            row.iter_mut().zip(direction).for_each(|(value, d)| *value += amount * d);
        }
        let noise = 0.8 / (self.dim as f32).sqrt();
        let columns = row.iter_mut().enumerate();
        columns.for_each(|(column, value)| *value += noise * draws.normal(1000 + column as u64));
        row
    }
}

fn features(data: Vec<f32>, dim: usize) -> Features {
    Features::new(data, dim).expect("generated numbers are finite")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_gives_what_it_says_and_the_same_again() {
        let recipe = Recipe { n_classes: 4, largest_pool: 500, ..Recipe::default() };
        let task = recipe.generate(1);
        assert_eq!(task.classes.iter().map(|c| c.noisy.len()).collect::<Vec<_>>(), [500, 232, 108, 50]);
        let noise = task.classes[0].truth.iter().filter(|t| !**t).count();
        assert!((noise as f32 / 500.0 - 0.6).abs() < 0.07, "{noise} of 500");
        assert_eq!(task.classes[2].noisy, recipe.generate(1).classes[2].noisy);
        assert_ne!(task.classes[2].noisy, recipe.generate(2).classes[2].noisy);
        assert_eq!(task.test.len(), task.test_labels.len());
    }

    /// For each wrong candidate of class `c`, whether some other class's mean test example is its closest by far.
    fn wrong_ones_of_known_classes(noise: Noise) -> f32 {
        let recipe = Recipe { n_classes: 6, largest_pool: 200, noise, ..Recipe::default() };
        let task = recipe.generate(4);
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let mut known = 0;
        let mut n = 0;
        for (c, class) in task.classes.iter().enumerate() {
            for (i, _) in class.truth.iter().enumerate().filter(|(_, relevant)| !**relevant) {
                let near = |other: usize| {
                    let tests = (0..recipe.n_test).map(|t| task.test.row(other * recipe.n_test + t));
                    tests.map(|test| dot(class.noisy.row(i), test)).sum::<f32>() / recipe.n_test as f32
                };
                known += usize::from((0..6).filter(|&other| other != c).any(|other| near(other) > 0.2));
                n += 1;
            }
        }
        known as f32 / n as f32
    }

    #[test]
    fn noise_of_classes_comes_from_other_classes_and_mixed_noise_half_of_it() {
        let [none, all, half] =
            [Noise::Clusters(3), Noise::Classes(3), Noise::Mixed(3)].map(wrong_ones_of_known_classes);
        assert!(none < 0.1 && all > 0.9 && (0.35..0.65).contains(&half), "{none}, {all}, {half}");
    }

    #[test]
    fn a_pool_has_noise_of_as_many_classes_as_asked_for_and_never_of_its_own() {
        let recipe = Recipe { n_classes: 5, noise: Noise::Classes(3), ..Recipe::default() };
        for c in 0..5 {
            let mut others = recipe.other_classes(c, Stream::new(1));
            others.sort_unstable();
            others.dedup();
            assert!(others.len() == 3 && !others.contains(&c) && others.iter().all(|&o| o < 5), "{others:?}");
        }
        let alone = Recipe { n_classes: 1, noise: Noise::Classes(3), ..Recipe::default() };
        assert_eq!(alone.generate(0).classes[0].noisy.len(), 600);
    }
}
