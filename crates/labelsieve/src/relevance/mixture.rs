//! A mixture of classes: each candidate comes from its own class or from another one, and neighbours come from the same.
//!
//! x_i: the n candidates of a pool; o_1 … o_J: the directions of the other classes, fixed; o_0: that of the own class, learned;
//! a_il: the reciprocal graph of eq. (1), clean examples included.
//!
//! ```text
//! r_ij ∝ π_j exp(τ x_i·o_j + γ Σ_l a_il r_lj / Σ_l a_il)   posterior of class j; the relevance of x_i is r_i0
//! π_j  = (Σ_i r_ij + 1/K) / (n + 1)                        K = J + 1 classes, one smoothing count in all
//! o_0  = (Σ clean + Σ_i r_i0 x_i) / ‖…‖
//! τ    = contrast / standard deviation of all x_i·o_j
//! ```
//!
//! EM from π_0 = 0.6, π_j = 0.4/J and o_0 = the direction of the clean examples, which are of their own class in every round; the first
//! round has no posteriors of neighbours yet. An ambiguous word brings candidates of two or three other classes, not of all: the
//! proportions capture which, and most of the gain comes from learning them. Neighbours (γ) add the rest: they agree on *which*
//! class it is; using only their posterior of the own class gains nothing (docs/mixture.md).

use std::ops::Range;

use labelsieve_numerics::kernels::{add_scaled_at, dot_at};
use labelsieve_numerics::level::Level;
use labelsieve_numerics::scratch::{Access, Array, streamed};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::decision::Decision;
use crate::error::{Result, check};
use crate::features::Features;
use crate::graph::{Affinity, NEIGHBOURS, NoisyPool};
use crate::model::{ClassProblem, Relevance, RelevanceModel};

/// Cross-class evidence: the probability that a candidate comes from its own class rather than another one.
///
/// Accepted candidates have the posterior 1 in every round, and so count as clean examples; rejected ones have 0. Without other
/// classes there is no evidence, and all have relevance 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mixture {
    /// The standard deviation of the exponents of a typical candidate over the other classes: τ times that of its similarities.
    pub contrast: f32,
    /// γ: the weight of the neighbours' posteriors.
    pub pull: f32,
    /// Rounds of expectation and maximisation.
    pub rounds: usize,
    /// Neighbours per example.
    pub neighbours: usize,
}

impl Default for Mixture {
    fn default() -> Mixture {
        Mixture { contrast: 3.0, pull: 2.0, rounds: 10, neighbours: NEIGHBOURS }
    }
}

/// The initial proportion of the own class.
const FIRST_PROPORTION: f32 = 0.6;
/// Other classes that take part in all rounds: those that explain the pool best at first. This limits memory to three times 65
/// numbers per candidate; an ambiguous word brings a handful of classes.
pub const MAX_CLASSES: usize = 64;
/// Products with other classes computed before the first round; large pools, or many classes, are sampled evenly to this size.
const SAMPLED_PRODUCTS: usize = 1 << 19;
/// The minimum number of candidates in such a sample.
const MIN_SAMPLE: usize = 64;
/// Limits τ when all similarities are nearly equal.
const MIN_DEVIATION: f64 = 0.02;
/// Rows per unit of work: sums are the same at any number of threads.
const CHUNK: usize = 256;
/// Other classes compared with a chunk at a time, so that their rows stay in the cache.
const BLOCK: usize = 16;

impl Mixture {
    pub(super) fn checked(self) -> Result<Mixture> {
        let positive = self.contrast > 0.0 && self.contrast.is_finite();
        check(positive, "contrast", "a positive number", self.contrast)?;
        let finite = self.pull >= 0.0 && self.pull.is_finite();
        check(finite, "pull", "a number of at least 0", self.pull)?;
        check(self.rounds >= 1, "rounds", "at least 1", self.rounds)?;
        check(self.neighbours >= 1, "neighbours", "at least 1", self.neighbours)?;
        Ok(self)
    }
}

impl RelevanceModel for Mixture {
    fn relevance(&self, problem: &ClassProblem, _seed: u64) -> Result<Relevance> {
        let n = problem.noisy.features().len();
        let others = match problem.other_classes.filter(|others| !others.is_empty()) {
            Some(others) if n > 0 => others,
            _ => return Ok(problem.settle(Relevance::new(vec![1.0; n])?)),
        };
        let affinity = problem.affinity(self.neighbours)?;
        let relevance = Relevance::new(self.posteriors(problem, others, &affinity)?)?;
        let counts = affinity.n_neighbours(problem.clean.len()..affinity.len());
        Ok(problem.settle(relevance).with_reciprocal_neighbours(counts))
    }

    fn uses_graph(&self) -> bool {
        true
    }
}

impl Mixture {
    fn posteriors(&self, problem: &ClassProblem, others: &Features, affinity: &Affinity) -> Result<Vec<f32>> {
        let noisy = problem.noisy.features();
        let clean = sum_of_rows(problem.clean.rows(), noisy.dim());
        let accepted = problem.decided(Decision::Accept).into_iter().map(|i| noisy.row(i));
        let direction = unit(&sum_of_rows(problem.clean.rows().chain(accepted), noisy.dim()));
        let sampled = sample(noisy.len(), others.len());
        let tau = self.contrast / deviation(noisy, &sampled, others);
        let chosen = best_explaining(noisy, &sampled, others, &direction, tau);
        problem.watch().check()?;
        let evidence = Evidence {
            level: Level::current(),
            problem,
            affinity,
            exponents: exponents(problem.noisy, &others.select(&chosen), tau)?,
            tau,
            pull: self.pull,
            n_classes: chosen.len() + 1,
        };
        let mut state = State { proportions: first_proportions(chosen.len()), direction };
        let blank = || Array::zeros(problem.noisy.scratch(), noisy.len() * evidence.n_classes);
        let mut before = Array::from(Vec::new());
        let mut posteriors = blank()?; // none before the first round
        for round in 0..self.rounds {
            problem.watch().check()?;
            state = evidence.round(&state, &before, &mut posteriors, &clean);
            if round == 0 && self.rounds > 1 {
                before = blank()?;
            }
            std::mem::swap(&mut before, &mut posteriors);
            before.expect(Access::Scattered); // neighbours are anywhere
            posteriors.expect(Access::InOrder);
            problem.watch().advance(round, self.rounds, noisy.len());
        }
        let mut own = Vec::with_capacity(noisy.len());
        for rows in evidence.stretches() {
            own.extend(rows.clone().map(|i| before[i * evidence.n_classes].clamp(0.0, 1.0)));
            before.release(rows.start * evidence.n_classes..rows.end * evidence.n_classes);
        }
        Ok(own)
    }
}

/// The parameters that a round learns; own class first.
struct State {
    /// π.
    proportions: Vec<f32>,
    /// o_0.
    direction: Vec<f32>,
}

/// The result of the previous round.
#[derive(Clone, Copy)]
struct Previous<'a> {
    /// o_0.
    direction: &'a [f32],
    /// r, n×K; empty before the first round.
    posteriors: &'a [f32],
    /// ln π.
    logarithms: &'a [f32],
}

/// The inputs of all rounds.
struct Evidence<'a> {
    level: Level,
    problem: &'a ClassProblem<'a>,
    affinity: &'a Affinity,
    /// τ x_i·o_j, n×J.
    exponents: Array<f32>,
    tau: f32,
    pull: f32,
    /// K.
    n_classes: usize,
}

/// The contribution of a chunk of candidates to the sums of a round.
struct Sums {
    /// Σ_i r_ij.
    counts: Vec<f64>,
    /// Σ_i r_i0 x_i.
    direction: Vec<f32>,
}

impl Evidence<'_> {
    /// Posteriors (r, n×K) from the state and the posteriors before, then proportions and direction from them.
    fn round(&self, state: &State, before: &Array<f32>, posteriors: &mut Array<f32>, clean: &[f64]) -> State {
        let noisy = self.problem.noisy.features();
        let logarithms: Vec<f32> = state.proportions.iter().map(|share| share.ln()).collect();
        let previous = Previous { direction: &state.direction, posteriors: before, logarithms: &logarithms };
        let mut parts: Vec<Sums> = Vec::new();
        for rows in self.stretches() {
            let range = rows.start * self.n_classes..rows.end * self.n_classes;
            let in_chunks = posteriors[range.clone()].par_chunks_mut(CHUNK * self.n_classes).enumerate();
            parts.par_extend(in_chunks.map(|(chunk, posteriors)| {
                let mut sums = Sums { counts: vec![0.0; self.n_classes], direction: vec![0.0; noisy.dim()] };
                posteriors.fill(0.0);
                for (i, row) in posteriors.chunks_exact_mut(self.n_classes).enumerate() {
                    let i = rows.start + chunk * CHUNK + i;
                    self.expect(i, previous, row);
                    sums.counts.iter_mut().zip(&*row).for_each(|(sum, r)| *sum += f64::from(*r));
                    add_scaled_at(self.level, &mut sums.direction, row[0], noisy.row(i));
                }
                sums
            }));
            posteriors.release(range);
            self.release(rows, before);
        }
        let mut counts = vec![0f64; self.n_classes];
        let mut direction = clean.to_vec();
        for part in parts {
            counts.iter_mut().zip(part.counts).for_each(|(sum, part)| *sum += part);
            direction.iter_mut().zip(part.direction).for_each(|(sum, part)| *sum += f64::from(part));
        }
        let smoothing = 1.0 / self.n_classes as f64;
        let proportion = |count: &f64| ((count + smoothing) / (noisy.len() as f64 + 1.0)) as f32;
        State { proportions: counts.iter().map(proportion).collect(), direction: unit(&direction) }
    }

    /// Stretches of candidates whose inputs fit in memory together.
    fn stretches(&self) -> impl Iterator<Item = Range<usize>> {
        const NEIGHBOURS_READ: usize = 32; // about
        let n = self.problem.noisy.features().len();
        let row = (self.n_classes * (NEIGHBOURS_READ + 2) + self.problem.clean.dim()) * size_of::<f32>();
        let rows = self.problem.noisy.scratch().map_or(n, |scratch| scratch.memory() / 2 / row);
        let rows = rows.max(1).next_multiple_of(CHUNK);
        (0..n).step_by(rows).map(move |start| start..n.min(start + rows))
    }

    fn release(&self, rows: Range<usize>, before: &Array<f32>) {
        let k = self.problem.clean.len();
        let n_others = self.n_classes - 1;
        self.exponents.release(rows.start * n_others..rows.end * n_others);
        before.release(0..before.len());
        self.problem.noisy.features().release(rows.clone());
        self.affinity.release(k + rows.start..k + rows.end);
    }

    /// The posteriors of candidate `i`.
    fn expect(&self, i: usize, previous: Previous, row: &mut [f32]) {
        let decision = self.problem.decision(i).and_then(Decision::relevance);
        if decision == Some(1.0) {
            row[0] = 1.0;
            return;
        }
        if !previous.posteriors.is_empty() {
            self.pull(i, previous.posteriors, row);
        }
        let own = dot_at(self.level, self.problem.noisy.features().row(i), previous.direction);
        let n_others = self.n_classes - 1;
        row[0] += self.tau * own;
        row[1..].iter_mut().zip(&self.exponents[i * n_others..]).for_each(|(out, s)| *out += s);
        row.iter_mut().zip(previous.logarithms).for_each(|(out, share)| *out += share);
        if decision == Some(0.0) {
            row[0] = f32::NEG_INFINITY;
        }
        let largest = row.iter().fold(f32::NEG_INFINITY, |largest, &s| largest.max(s));
        row.iter_mut().for_each(|s| *s = (*s - largest).exp());
        let sum: f32 = row.iter().sum();
        row.iter_mut().for_each(|s| *s /= sum);
    }

    /// γ times the mean of the neighbours' posteriors; clean examples are of their own class.
    fn pull(&self, i: usize, posteriors: &[f32], out: &mut [f32]) {
        let k = self.problem.clean.len();
        let (columns, weights) = self.affinity.row(k + i);
        let degree: f32 = weights.iter().sum();
        for (&column, &weight) in columns.iter().zip(weights) {
            let share = self.pull * weight / degree;
            match (column as usize).checked_sub(k) {
                None => out[0] += share,
                Some(l) => {
                    add_scaled_at(self.level, out, share, &posteriors[l * self.n_classes..][..self.n_classes])
                }
            }
        }
    }
}

fn first_proportions(n_others: usize) -> Vec<f32> {
    let mut proportions = vec![(1.0 - FIRST_PROPORTION) / n_others as f32; n_others + 1];
    proportions[0] = FIRST_PROPORTION;
    proportions
}

/// Products of these candidates with all classes, one row each, blocks of classes at a time.
fn products(noisy: &Features, rows: &[usize], classes: &Features, out: &mut [f32]) {
    let level = Level::current();
    let n_classes = classes.len();
    for start in (0..n_classes).step_by(BLOCK) {
        let block = start..(start + BLOCK).min(n_classes);
        for (&row, out) in rows.iter().zip(out.chunks_exact_mut(n_classes)) {
            block.clone().for_each(|j| out[j] = dot_at(level, noisy.row(row), classes.row(j)));
        }
    }
}

/// An evenly spaced sample of candidates.
fn sample(n_noisy: usize, n_others: usize) -> Vec<usize> {
    let n = n_noisy.min((SAMPLED_PRODUCTS / n_others.max(1)).max(MIN_SAMPLE));
    (0..n).map(|i| i * n_noisy / n).collect()
}

/// The standard deviation of the products of these candidates with other classes.
fn deviation(noisy: &Features, rows: &[usize], others: &Features) -> f32 {
    let parts: Vec<(f64, f64)> = rows
        .par_chunks(CHUNK)
        .map(|rows| {
            let mut found = vec![0f32; rows.len() * others.len()];
            products(noisy, rows, others, &mut found);
            found
                .iter()
                .fold((0.0, 0.0), |(sum, squares), &s| (sum + f64::from(s), squares + f64::from(s).powi(2)))
        })
        .collect();
    let (sum, squares) = parts.iter().fold((0.0, 0.0), |all, part| (all.0 + part.0, all.1 + part.1));
    let count = (rows.len() * others.len()) as f64;
    (squares / count - (sum / count).powi(2)).max(0.0).sqrt().max(MIN_DEVIATION) as f32
}

/// The other classes that explain these candidates best before the first round, at most [`MAX_CLASSES`], ascending.
fn best_explaining(noisy: &Features, rows: &[usize], others: &Features, own: &[f32], tau: f32) -> Vec<usize> {
    let n_others = others.len();
    if n_others <= MAX_CLASSES {
        return (0..n_others).collect();
    }
    let level = Level::current();
    let proportions = first_proportions(n_others);
    let parts: Vec<Vec<f32>> = rows
        .par_chunks(CHUNK)
        .map(|rows| {
            let mut found = vec![0f32; rows.len() * n_others];
            products(noisy, rows, others, &mut found);
            let mut counts = vec![0f32; n_others];
            for (&row, found) in rows.iter().zip(found.chunks_exact_mut(n_others)) {
                let own = dot_at(level, noisy.row(row), own);
                let largest = found.iter().fold(own, |largest, &s| largest.max(s));
                found.iter_mut().for_each(|s| *s = proportions[1] * (tau * (*s - largest)).exp());
                let sum = found.iter().sum::<f32>() + proportions[0] * (tau * (own - largest)).exp();
                add_scaled_at(level, &mut counts, 1.0 / sum, found);
            }
            counts
        })
        .collect();
    let mut counts = vec![0f64; n_others];
    parts
        .iter()
        .for_each(|part| counts.iter_mut().zip(part).for_each(|(sum, part)| *sum += f64::from(*part)));
    let mut chosen: Vec<usize> = (0..n_others).collect();
    chosen.sort_by(|&a, &b| counts[b].total_cmp(&counts[a]).then(a.cmp(&b)));
    chosen.truncate(MAX_CLASSES);
    chosen.sort_unstable();
    chosen
}

/// τ x_i·o_j for all candidates.
fn exponents(pool: &NoisyPool, others: &Features, tau: f32) -> Result<Array<f32>> {
    let noisy = pool.features();
    let n_others = others.len();
    let mut exponents = Array::zeros(pool.scratch(), noisy.len() * n_others)?;
    for rows in streamed(noisy.len(), (n_others + noisy.dim()) * size_of::<f32>()) {
        let part = rows.start * n_others..rows.end * n_others;
        let in_chunks = exponents[part.clone()].par_chunks_mut(CHUNK * n_others).enumerate();
        in_chunks.for_each(|(chunk, out)| {
            let first = rows.start + chunk * CHUNK;
            let of_chunk: Vec<usize> = (first..first + out.len() / n_others).collect();
            products(noisy, &of_chunk, others, out);
            out.iter_mut().for_each(|s| *s *= tau);
        });
        noisy.release(rows);
        exponents.release(part);
    }
    Ok(exponents)
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

    fn relevance(noisy: Vec<f32>, others: Vec<f32>, rounds: usize) -> Vec<f32> {
        let clean = Features::new(vec![1.0, 0.0], 2).unwrap();
        let pool = NoisyPool::new(Features::new(noisy, 2).unwrap());
        let others = Features::new(others, 2).unwrap();
        let problem = ClassProblem::new(&clean, &pool).unwrap().with_other_classes(&others).unwrap();
        Mixture { rounds, pull: 0.0, ..Mixture::default() }.relevance(&problem, 0).unwrap().noisy().to_vec()
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
