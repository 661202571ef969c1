//! Similarities of candidates to other classes: their scale τ, the classes that explain the pool, and the exponents.

use labelsieve_numerics::kernels::{add_scaled_at, dot_at};
use labelsieve_numerics::level::Level;
use labelsieve_numerics::scratch::{Array, streamed};
use rayon::prelude::*;

use super::{CHUNK, FIRST_PROPORTION, MAX_CLASSES};
use crate::error::Result;
use crate::features::Features;
use crate::graph::NoisyPool;

/// Products with other classes computed before the first round; large pools, or many classes, are sampled evenly to this size.
const SAMPLED_PRODUCTS: usize = 1 << 19;
/// The minimum number of candidates in such a sample.
const MIN_SAMPLE: usize = 64;
/// Limits τ when all similarities are nearly equal.
const MIN_DEVIATION: f64 = 0.02;
/// Other classes compared with a chunk at a time, so that their rows stay in the cache.
const BLOCK: usize = 16;

pub fn first_proportions(n_others: usize) -> Vec<f32> {
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
pub fn sample(n_noisy: usize, n_others: usize) -> Vec<usize> {
    let n = n_noisy.min((SAMPLED_PRODUCTS / n_others.max(1)).max(MIN_SAMPLE));
    (0..n).map(|i| i * n_noisy / n).collect()
}

/// The standard deviation of the products of these candidates with other classes.
pub fn deviation(noisy: &Features, rows: &[usize], others: &Features) -> f32 {
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
pub fn best_explaining(
    noisy: &Features,
    rows: &[usize],
    others: &Features,
    own: &[f32],
    tau: f32,
) -> Vec<usize> {
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
pub fn exponents(pool: &NoisyPool, others: &Features, tau: f32) -> Result<Array<f32>> {
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
