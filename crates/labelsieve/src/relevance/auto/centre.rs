//! Features of networks that others trained often all point one way; then what tells them apart is small beside what they share.

use std::ops::Range;

use labelsieve_numerics::scratch::streamed;

use crate::error::Result;
use crate::features::Features;
use crate::model::{ClassProblem, NoisyPool};

/// Features are centred from this mean cosine of two classes on. Directions of classes are closer to each other than their examples are:
/// with the networks in `models/` it stays below 0.2 at any number of clean examples, with an EfficientNet as it comes it is above ½.
const SHARED: f32 = 0.3;
/// Other classes that a mean direction is trusted from.
const LEAST_CLASSES: usize = 10;

/// A class whose features no longer have what all classes share.
pub struct Centred {
    clean: Features,
    pool: NoisyPool,
    other_classes: Features,
}

impl Centred {
    /// The class without the mean direction of the other classes, if features point one way.
    pub fn of(problem: &ClassProblem) -> Result<Option<Centred>> {
        let Some(others) = problem.other_classes.filter(|others| others.len() >= LEAST_CLASSES) else {
            return Ok(None);
        };
        // Class weights of a network need not point where its features do.
        let n_at_hand = others.len() - problem.n_base();
        let n = if n_at_hand >= LEAST_CLASSES { n_at_hand } else { others.len() };
        let mean = mean(others, n);
        if mean_cosine(&mean, n) < SHARED {
            return Ok(None);
        }
        Ok(Some(Centred {
            clean: without(problem.clean, &mean)?,
            pool: problem.noisy.with_features(without_in(problem.noisy, &mean)?),
            other_classes: without(others, &mean)?,
        }))
    }

    /// The same problem with these features; a graph that was made in advance does not serve it.
    pub fn problem<'a>(&'a self, of: &ClassProblem<'a>) -> ClassProblem<'a> {
        of.centred(&self.clean, &self.pool, &self.other_classes)
    }
}

/// Of two different ones of `n` unit rows with this mean.
fn mean_cosine(mean: &[f32], n: usize) -> f32 {
    let squared: f32 = mean.iter().map(|m| m * m).sum();
    (n as f32 * squared - 1.0) / (n as f32 - 1.0)
}

/// Of the first `n` rows.
fn mean(rows: &Features, n: usize) -> Vec<f32> {
    let mut sum = vec![0f64; rows.dim()];
    rows.rows().take(n).for_each(|row| sum.iter_mut().zip(row).for_each(|(sum, v)| *sum += f64::from(*v)));
    sum.iter().map(|sum| (sum / n as f64) as f32).collect()
}

/// Rows of unit length again; all-zero rows stay so.
fn without(rows: &Features, mean: &[f32]) -> Result<Features> {
    let mut data = vec![0f32; rows.len() * rows.dim()];
    take_off(rows, 0..rows.len(), mean, &mut data);
    Features::new(data, rows.dim())
}

/// The same for a pool, in its scratch space if it has one.
fn without_in(pool: &NoisyPool, mean: &[f32]) -> Result<Features> {
    let rows = pool.features();
    let Some(scratch) = pool.scratch().filter(|_| !rows.is_empty()) else { return without(rows, mean) };
    let dim = rows.dim();
    let mut data = scratch.floats(rows.len() * dim)?;
    for stretch in streamed(rows.len(), dim * size_of::<f32>()) {
        let part = stretch.start * dim..stretch.end * dim;
        take_off(rows, stretch.clone(), mean, &mut (*data).as_mut()[part.clone()]);
        rows.release(stretch);
        data.release(part);
    }
    Features::in_pages(data, dim)
}

/// `out` becomes these rows without `mean`, and is zero where they are.
fn take_off(rows: &Features, range: Range<usize>, mean: &[f32], out: &mut [f32]) {
    for (row, out) in range.map(|i| rows.row(i)).zip(out.chunks_exact_mut(mean.len())) {
        if row.iter().any(|v| *v != 0.0) {
            out.iter_mut().zip(row.iter().zip(mean)).for_each(|(out, (v, m))| *out = v - m);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_cosine_by_hand() {
        // Right angles have cosine 0 however few they are; of (1, 0), (1, 0) and (0, 1) one pair of three is alike.
        assert!(mean_cosine(&[0.5, 0.5], 2).abs() < 1e-6);
        assert!((mean_cosine(&[2.0 / 3.0, 1.0 / 3.0], 3) - 1.0 / 3.0).abs() < 1e-6);
    }
}
