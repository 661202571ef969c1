//! Centring: features of pretrained networks often all point one way, which hides the differences between classes.

use std::ops::Range;

use labelsieve_numerics::scratch::streamed;

use crate::error::Result;
use crate::features::Features;
use crate::graph::NoisyPool;
use crate::model::ClassProblem;

/// Features are centred from this mean cosine of two classes on. Directions of classes are closer to each other than their examples
/// are: with the networks in `models/` it stays below 0.2 at any number of clean examples; with a pretrained EfficientNet it is above ½.
const MIN_MEAN_COSINE: f32 = 0.3;
/// Fewer other classes give no reliable mean direction.
const MIN_CLASSES: usize = 10;

/// A class with the mean direction of all classes subtracted from its features.
pub(crate) struct CentredClass {
    clean: Features,
    pool: NoisyPool,
    other_classes: Features,
}

impl CentredClass {
    /// Subtracts the mean direction of the other classes if features point one way.
    pub fn of(problem: &ClassProblem) -> Result<Option<CentredClass>> {
        let Some(others) = problem.other_classes.filter(|others| others.len() >= MIN_CLASSES) else {
            return Ok(None);
        };
        // Class weights of a network need not point where its features do.
        let n_at_hand = others.len() - problem.n_base();
        let n = if n_at_hand >= MIN_CLASSES { n_at_hand } else { others.len() };
        let mean = mean(others, n);
        if mean_cosine(&mean, n) < MIN_MEAN_COSINE {
            return Ok(None);
        }
        Ok(Some(CentredClass {
            clean: without(problem.clean, &mean)?,
            pool: problem.noisy.with_features(without_in(problem.noisy, &mean)?),
            other_classes: without(others, &mean)?,
        }))
    }

    /// The same problem with these features; a graph made in advance does not fit them.
    pub fn problem<'a>(&'a self, problem: &ClassProblem<'a>) -> ClassProblem<'a> {
        ClassProblem {
            clean: &self.clean,
            noisy: &self.pool,
            other_classes: Some(&self.other_classes),
            is_centred: true,
            shared_affinity: None,
            ..*problem
        }
    }
}

/// The mean cosine of two different rows out of `n` unit rows with this mean.
fn mean_cosine(mean: &[f32], n: usize) -> f32 {
    let squared: f32 = mean.iter().map(|m| m * m).sum();
    (n as f32 * squared - 1.0) / (n as f32 - 1.0)
}

/// The mean of the first `n` rows.
fn mean(rows: &Features, n: usize) -> Vec<f32> {
    let mut sum = vec![0f64; rows.dim()];
    rows.rows().take(n).for_each(|row| sum.iter_mut().zip(row).for_each(|(sum, v)| *sum += f64::from(*v)));
    sum.iter().map(|sum| (sum / n as f64) as f32).collect()
}

/// The rows without `mean`, at unit length again; all-zero rows stay zero.
fn without(rows: &Features, mean: &[f32]) -> Result<Features> {
    let mut data = vec![0f32; rows.len() * rows.dim()];
    subtract(rows, 0..rows.len(), mean, &mut data);
    Features::new(data, rows.dim())
}

/// As [`without`] for a pool, in its scratch space if it has one.
fn without_in(pool: &NoisyPool, mean: &[f32]) -> Result<Features> {
    let rows = pool.features();
    let Some(scratch) = pool.scratch().filter(|_| !rows.is_empty()) else { return without(rows, mean) };
    let dim = rows.dim();
    let mut data = scratch.floats(rows.len() * dim)?;
    for stretch in streamed(rows.len(), dim * size_of::<f32>()) {
        let part = stretch.start * dim..stretch.end * dim;
        subtract(rows, stretch.clone(), mean, &mut (*data).as_mut()[part.clone()]);
        rows.release(stretch);
        data.release(part);
    }
    Features::in_pages(data, dim)
}

/// Writes these rows without `mean` to `out`, which is zero; all-zero rows stay zero.
fn subtract(rows: &Features, range: Range<usize>, mean: &[f32], out: &mut [f32]) {
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
