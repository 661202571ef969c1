//! A mixture of classes: each candidate comes from its own class or from another one.
//!
//! x_i: the n candidates of a pool; o_1 … o_J: the directions of the other classes, fixed; m: that of the own class, learned.
//!
//! ```text
//! p(x_i) ∝ π_0 e^(τ x_i·m) + Σ_j π_j e^(τ x_i·o_j)        τ = contrast / standard deviation of all x_i·o_j
//! r_i    = π_0 e^(τ x_i·m) / p(x_i)                        posterior of the own class: the relevance
//! π_0    = (Σ_i r_i + 1/K) / (n + 1)                       K = J + 1 components, one smoothing count in all
//! π_j    = (Σ_i (1 − r_i) π_j e^(τ x_i·o_j) / Σ_l π_l e^(τ x_i·o_l) + 1/K) / (n + 1)
//! m      = (Σ clean + Σ_i r_i x_i) / ‖…‖
//! ```
//!
//! EM from π_0 = 0.6, π_j = 0.4/J and m = the direction of the clean examples. An ambiguous word brings two or three other classes
//! and not all of them: the proportions say which, and most of the gain comes from learning them.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::decision::Decision;
use crate::error::{Result, check};
use crate::features::Features;
use crate::kernels::{add_scaled_at, dot_at};
use crate::level::Level;
use crate::model::{ClassProblem, Relevance, RelevanceModel};

/// Cross-class evidence: the probability that a candidate comes from its own class and from none of the others.
///
/// Accepted candidates have the posterior 1 in every round, and so count as clean examples; rejected ones have 0. Without other
/// classes there is nothing to tell candidates apart by, and all have relevance 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mixture {
    /// How far apart, on the scale of the exponent, the other classes are to a typical candidate: τ times the standard deviation.
    pub contrast: f32,
    /// Rounds of expectation and maximisation.
    pub rounds: usize,
}

impl Default for Mixture {
    fn default() -> Mixture {
        Mixture { contrast: 3.0, rounds: 10 }
    }
}

/// The own class's proportion before anything is known.
const OWN: f32 = 0.6;
/// Keeps τ finite when all similarities are the same.
const LEAST_DEVIATION: f64 = 1e-3;
/// Rows per unit of work: sums are the same at any number of threads.
const CHUNK: usize = 256;
/// Other classes compared with a chunk at a time, so that their rows stay in the cache.
const BLOCK: usize = 16;

impl Mixture {
    pub(super) fn checked(self) -> Result<Mixture> {
        let positive = self.contrast > 0.0 && self.contrast.is_finite();
        check(positive, "contrast", "a positive number", self.contrast)?;
        check(self.rounds >= 1, "rounds", "at least 1", self.rounds)?;
        Ok(self)
    }
}

impl RelevanceModel for Mixture {
    fn relevance(&self, problem: &ClassProblem, _seed: u64) -> Result<Relevance> {
        let n = problem.noisy.features().len();
        let relevance = match problem.other_classes.filter(|others| !others.is_empty()) {
            Some(others) if n > 0 => self.posteriors(problem, others)?,
            _ => vec![1.0; n],
        };
        Ok(problem.settle(Relevance::new(relevance)?))
    }
}

impl Mixture {
    fn posteriors(&self, problem: &ClassProblem, others: &Features) -> Result<Vec<f32>> {
        let n = problem.noisy.features().len();
        let densities = Densities::new(problem.noisy.features(), others, self.contrast);
        let mut state = MixtureState::start(problem, others.len());
        let mut posteriors = vec![0f32; n];
        for round in 0..self.rounds {
            problem.watch().check()?;
            let sums = densities.expect(problem, &state, &mut posteriors);
            state = state.after(problem, &sums);
            problem.watch().advance(round, self.rounds, n);
        }
        Ok(posteriors)
    }
}

/// What is learned.
#[doc(hidden)] // for our own crates
pub struct MixtureState {
    /// π_0.
    pub own: f32,
    /// π_1 … π_J.
    pub others: Vec<f32>,
    /// m.
    pub direction: Vec<f32>,
}

/// What one round adds up over candidates.
#[doc(hidden)] // for our own crates
pub struct MixtureSums {
    /// Σ r_i.
    pub own: f64,
    /// Σ (1 − r_i) e_ij / d_i for every other class j: its count, still without the factor π_j.
    pub others: Vec<f64>,
    /// Σ r_i x_i.
    pub direction: Vec<f64>,
}

impl MixtureState {
    /// Before anything is known; candidates that a person accepted count as clean.
    pub fn start(problem: &ClassProblem, n_others: usize) -> MixtureState {
        let noisy = problem.noisy.features();
        let accepted = problem.decided(Decision::Accept).into_iter().map(|i| noisy.row(i));
        MixtureState {
            own: OWN,
            others: vec![(1.0 - OWN) / n_others as f32; n_others],
            direction: unit(&sum_of_rows(problem.clean.rows().chain(accepted), noisy.dim())),
        }
    }

    /// After a round.
    pub fn after(&self, problem: &ClassProblem, sums: &MixtureSums) -> MixtureState {
        let n = problem.noisy.features().len() as f64;
        let n_components = (self.others.len() + 1) as f64;
        let proportion = |count: f64| ((count + 1.0 / n_components) / (n + 1.0)) as f32;
        let others = sums.others.iter().zip(&self.others);
        let clean = sum_of_rows(problem.clean.rows(), problem.clean.dim());
        let direction: Vec<f64> = sums.direction.iter().zip(clean).map(|(sum, clean)| sum + clean).collect();
        MixtureState {
            own: proportion(sums.own),
            others: others.map(|(sum, share)| proportion(sum * f64::from(*share))).collect(),
            direction: unit(&direction),
        }
    }
}

/// τ, from the number of all products with other classes, their sum and that of their squares.
#[doc(hidden)] // for our own crates
pub fn mixture_sharpness(contrast: f32, count: usize, sum: f64, squares: f64) -> f32 {
    let count = count as f64;
    let variance = squares / count - (sum / count).powi(2);
    (f64::from(contrast) / variance.max(0.0).sqrt().max(LEAST_DEVIATION)) as f32
}

/// The other classes' densities at every candidate, which no round changes.
struct Densities {
    level: Level,
    /// e_ij = e^(τ (x_i·o_j − max_j x_i·o_j)), n×J.
    densities: Vec<f32>,
    /// max_j x_i·o_j.
    nearest: Vec<f32>,
    /// τ.
    sharpness: f32,
    n_others: usize,
}

impl Densities {
    fn new(noisy: &Features, others: &Features, contrast: f32) -> Densities {
        let (level, n_others) = (Level::current(), others.len());
        let mut densities = vec![0f32; noisy.len() * n_others];
        let in_chunks = densities.par_chunks_mut(CHUNK * n_others).enumerate();
        let squares = |(chunk, out): (usize, &mut [f32])| {
            for start in (0..n_others).step_by(BLOCK) {
                let block = start..(start + BLOCK).min(n_others);
                for (i, out) in out.chunks_exact_mut(n_others).enumerate() {
                    let row = noisy.row(chunk * CHUNK + i);
                    block.clone().for_each(|j| out[j] = dot_at(level, row, others.row(j)));
                }
            }
            let add =
                |(sum, squares): (f64, f64), &s: &f32| (sum + f64::from(s), squares + f64::from(s).powi(2));
            out.iter().fold((0.0, 0.0), add)
        };
        let parts: Vec<(f64, f64)> = in_chunks.map(squares).collect();
        let (sum, squares) = parts.iter().fold((0.0, 0.0), |all, part| (all.0 + part.0, all.1 + part.1));
        let sharpness = mixture_sharpness(contrast, densities.len(), sum, squares);
        let nearest = densities.par_chunks_exact_mut(n_others).with_min_len(CHUNK).map(|row| {
            let nearest = row.iter().fold(f32::NEG_INFINITY, |most, &s| most.max(s));
            row.iter_mut().for_each(|s| *s = (sharpness * (*s - nearest)).exp());
            nearest
        });
        let nearest = nearest.collect();
        Densities { level, densities, nearest, sharpness, n_others }
    }

    /// The posterior of the own class for every candidate, and the sums over them.
    fn expect(&self, problem: &ClassProblem, state: &MixtureState, posteriors: &mut [f32]) -> MixtureSums {
        let (noisy, n_others) = (problem.noisy.features(), self.n_others);
        let in_chunks = posteriors.par_chunks_mut(CHUNK).enumerate();
        let parts: Vec<(f64, Vec<f32>, Vec<f32>)> = in_chunks
            .map(|(chunk, posteriors)| {
                let (mut own, mut counts, mut direction) =
                    (0f64, vec![0f32; n_others], vec![0f32; noisy.dim()]);
                for (i, posterior) in posteriors.iter_mut().enumerate().map(|(i, p)| (chunk * CHUNK + i, p)) {
                    let (x, e) = (noisy.row(i), &self.densities[i * n_others..(i + 1) * n_others]);
                    let elsewhere = dot_at(self.level, e, &state.others);
                    // Of the own class's density, the nearest class's is taken off as well.
                    let ahead = self.sharpness * (dot_at(self.level, x, &state.direction) - self.nearest[i]);
                    let free = 1.0 / (1.0 + elsewhere / state.own * (-ahead).exp());
                    let r = problem.decision(i).and_then(Decision::relevance).unwrap_or(free);
                    *posterior = r;
                    own += f64::from(r);
                    add_scaled_at(self.level, &mut counts, (1.0 - r) / elsewhere, e);
                    add_scaled_at(self.level, &mut direction, r, x);
                }
                (own, counts, direction)
            })
            .collect();
        let mut sums =
            MixtureSums { own: 0.0, others: vec![0.0; n_others], direction: vec![0.0; noisy.dim()] };
        for (own, counts, direction) in parts {
            sums.own += own;
            sums.others.iter_mut().zip(counts).for_each(|(sum, part)| *sum += f64::from(part));
            sums.direction.iter_mut().zip(direction).for_each(|(sum, part)| *sum += f64::from(part));
        }
        sums
    }
}

/// The direction of a class: the unit-length mean of its examples, one row. Zeros where they cancel out.
#[doc(hidden)] // for our own crates
pub fn class_direction(examples: &Features) -> Features {
    let direction = unit(&sum_of_rows(examples.rows(), examples.dim()));
    Features::new(direction, examples.dim()).expect("a finite row")
}

fn sum_of_rows<'a>(rows: impl Iterator<Item = &'a [f32]>, dim: usize) -> Vec<f64> {
    let mut sum = vec![0f64; dim];
    rows.for_each(|row| sum.iter_mut().zip(row).for_each(|(sum, v)| *sum += f64::from(*v)));
    sum
}

/// The same direction at unit length; zeros stay zeros.
fn unit(sum: &[f64]) -> Vec<f32> {
    let length = sum.iter().map(|v| v * v).sum::<f64>().sqrt();
    let scale = if length > 0.0 { 1.0 / length } else { 0.0 };
    sum.iter().map(|v| (v * scale) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::NoisyPool;

    fn relevance(noisy: Vec<f32>, others: Vec<f32>, rounds: usize) -> Vec<f32> {
        let clean = Features::new(vec![1.0, 0.0], 2).unwrap();
        let pool = NoisyPool::new(Features::new(noisy, 2).unwrap());
        let others = Features::new(others, 2).unwrap();
        let problem = ClassProblem::new(&clean, &pool).unwrap().with_other_classes(&others).unwrap();
        Mixture { rounds, ..Mixture::default() }.relevance(&problem, 0).unwrap().noisy().to_vec()
    }

    #[test]
    fn one_round_by_hand() {
        // Two candidates, at the own direction and at the one other class: products 0 and 1, deviation ½, τ = 6.
        let found = relevance(vec![1.0, 0.0, 0.0, 1.0], vec![0.0, 1.0], 1);
        let expected = [0.6 / (0.6 + 0.4 * (-6f32).exp()), 0.6 / (0.6 + 0.4 * 6f32.exp())];
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{found} against {expected}");
        }
    }

    #[test]
    fn proportions_learn_which_class_brings_the_noise() {
        // Half of the pool lies between the own and the first other class; the rest is either one of that class or of
        // a class that has nothing to do with it. Only in the first pool is the candidate in between suspicious.
        let angle = |degrees: f32| [degrees.to_radians().cos(), degrees.to_radians().sin()];
        let between = angle(44.0);
        let pool = |rest: [f32; 2]| -> Vec<f32> {
            (0..20).flat_map(|i| if i < 2 { between } else { rest }).collect()
        };
        let others = [angle(90.0), angle(200.0)].concat();
        let suspicious = relevance(pool(angle(90.0)), others.clone(), 10)[0];
        let innocent = relevance(pool(angle(200.0)), others, 10)[0];
        assert!(innocent > suspicious + 0.3, "{innocent} against {suspicious}");
    }

    #[test]
    fn without_other_classes_nothing_tells_candidates_apart() {
        let clean = Features::new(vec![1.0, 0.0], 2).unwrap();
        let pool = NoisyPool::new(Features::new(vec![1.0, 0.0, 0.0, 1.0], 2).unwrap());
        let problem = ClassProblem::new(&clean, &pool).unwrap();
        let none = Features::empty(2);
        for problem in [problem, problem.with_other_classes(&none).unwrap()] {
            let decisions = [None, Some(Decision::Reject)];
            let model = Mixture::default();
            assert_eq!(model.relevance(&problem, 0).unwrap().noisy(), [1.0, 1.0]);
            let decided = problem.with_decisions(&decisions).unwrap();
            assert_eq!(model.relevance(&decided, 0).unwrap().noisy(), [1.0, 0.0]);
        }
    }
}
