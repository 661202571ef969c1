//! A fitted discriminant.

use super::whitening::Whitening;
use super::{BaseClasses, Moments, Within};
use crate::classifier::affine_scores;
use crate::error::{Result, check, check_len};
use crate::features::Features;
use crate::model::{Classifier, Scores};

/// Gaussian classes of one shape; see [`Discriminant`](super::Discriminant).
#[derive(Clone, Debug)]
pub struct FittedDiscriminant {
    dim: usize,
    /// K×d.
    means: Vec<f64>,
    whitening: Whitening,
    gamma: f64,
    n_pooled: usize,
    /// S⁻¹ (μ_c − μ̄), K×d, where μ̄ is the mean of all classes, which keeps numbers small.
    weights: Vec<f32>,
    /// −½ (μ_c − μ̄)ᵀ S⁻¹ (μ_c + μ̄).
    biases: Vec<f32>,
    /// z(μ_c).
    whitened: Vec<f64>,
}

impl FittedDiscriminant {
    /// From the parts that a file holds: K×d means, Σ with the number of classes it was measured on, and γ.
    pub fn new(means: Vec<f64>, within: Within, n_pooled: usize, gamma: f64) -> Result<FittedDiscriminant> {
        let dim = within.dim();
        check_len("means", means.len().next_multiple_of(dim).max(dim), means.len())?;
        check(gamma > 0.0 && gamma <= 1.0, "shrinkage", "a number above 0 and at most 1", gamma)?;
        let finite = |values: &[f64]| values.iter().all(|value| value.is_finite());
        let is_finite = finite(&means) && finite(within.matrix()) && within.basis().is_none_or(finite);
        check(is_finite, "discriminant", "finite numbers", "others")?;
        let whitening = Whitening::new(&within, gamma);
        let moments = Moments { dim, n_base: 0, means, within, n_pooled };
        Ok(FittedDiscriminant::with_whitening(moments, gamma, whitening))
    }

    pub(super) fn with_whitening(moments: Moments, gamma: f64, whitening: Whitening) -> FittedDiscriminant {
        let Moments { dim, means, n_pooled, .. } = moments;
        let n_classes = means.len() / dim;
        let centre: Vec<f64> = (0..dim)
            .map(|column| means[column..].iter().step_by(dim).sum::<f64>() / n_classes.max(1) as f64)
            .collect();
        let whitened = whitening.whiten(&means);
        let of_centre = whitening.whiten(&centre);
        let width = whitening.width();
        let differences: Vec<f64> = whitened
            .chunks_exact(width)
            .flat_map(|mean| mean.iter().zip(&of_centre).map(|(mean, centre)| mean - centre))
            .collect();
        let biases = differences.chunks_exact(width).zip(whitened.chunks_exact(width));
        let biases = biases.map(|(difference, mean)| {
            let sum = mean.iter().zip(&of_centre).map(|(mean, centre)| mean + centre);
            (-0.5 * difference.iter().zip(sum).map(|(a, b)| a * b).sum::<f64>()) as f32
        });
        let biases = biases.collect();
        let weights = whitening.solved(&differences).iter().map(|&value| value as f32).collect();
        FittedDiscriminant { dim, means, whitening, gamma, n_pooled, weights, biases, whitened }
    }

    /// Numbers per feature.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// μ_c, K×d.
    pub fn means(&self) -> &[f64] {
        &self.means
    }

    /// Σ.
    pub fn within(&self) -> &Within {
        self.whitening.within()
    }

    /// γ.
    pub fn gamma(&self) -> f64 {
        self.gamma
    }

    /// Classes that Σ was measured on.
    pub fn n_pooled(&self) -> usize {
        self.n_pooled
    }

    /// The same with means and covariance rounded to single precision, as files hold them.
    pub fn rounded(&self) -> Result<FittedDiscriminant> {
        let round =
            |values: &[f64]| values.iter().map(|&value| f64::from(value as f32)).collect::<Vec<f64>>();
        let matrix = round(self.within().matrix());
        let within = match self.within().basis() {
            None => Within::of_matrix(matrix, self.dim),
            Some(basis) => Within::in_span(round(basis), matrix, self.dim),
        };
        FittedDiscriminant::new(round(&self.means), within, self.n_pooled, self.gamma)
    }

    /// As classes that new ones are added to.
    pub fn as_base(&self) -> BaseClasses {
        BaseClasses { means: self.means.clone(), within: Some((self.within().clone(), self.n_pooled)) }
    }
}

impl Classifier for FittedDiscriminant {
    fn n_classes(&self) -> usize {
        self.biases.len()
    }

    fn scores(&self, features: &Features) -> Scores {
        affine_scores(features, &self.weights, &self.biases)
    }

    /// The Mahalanobis distance to the class of highest score.
    fn distances(&self, features: &Features, scores: &Scores) -> Vec<f32> {
        const CHUNK: usize = 512;
        let width = self.whitening.width();
        let mut distances = Vec::with_capacity(features.len());
        for start in (0..features.len()).step_by(CHUNK) {
            let rows = start..features.len().min(start + CHUNK);
            let values: Vec<f64> = features.block(rows.clone()).iter().map(|&x| f64::from(x)).collect();
            let whitened = self.whitening.whiten(&values);
            for (x, row) in whitened.chunks_exact(width).zip(rows) {
                let best = scores.best(row);
                let mean = &self.whitened[best * width..(best + 1) * width];
                let squared: f64 = x.iter().zip(mean).map(|(x, mean)| (x - mean).powi(2)).sum();
                distances.push(squared.sqrt() as f32);
            }
        }
        distances
    }
}
