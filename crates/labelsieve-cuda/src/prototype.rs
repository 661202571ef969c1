//! Prototypes on the GPU.

use labelsieve::Features;
use labelsieve::classifier::{WeightMatrix, WeightedClass};

use crate::cuda::Cuda;
use crate::error::Result;
use crate::mixture::weighted_sum;

impl Cuda {
    /// **Eq. (5)** for every class: `labelsieve::classifier::prototypes` on the GPU, one class in its memory at a time.
    pub fn prototypes(&self, classes: &[WeightedClass], dim: usize, scale: f32) -> Result<WeightMatrix> {
        let mut rows = Vec::with_capacity(classes.len() * dim);
        for class in classes {
            let mut sum = self.weighted_sum(class.clean(), &vec![1.0; class.clean().len()])?;
            let noisy = self.weighted_sum(class.noisy(), class.relevance())?;
            sum.iter_mut().zip(noisy).for_each(|(sum, noisy)| *sum += noisy);
            let total = class.total();
            rows.extend(sum.iter().map(|sum| (sum / total) as f32));
        }
        Ok(WeightMatrix::new(Features::new(rows, dim)?, scale)?)
    }

    /// Σ weight · row.
    fn weighted_sum(&self, features: &Features, weights: &[f32]) -> Result<Vec<f64>> {
        if features.is_empty() {
            return Ok(vec![0.0; features.dim()]);
        }
        let gpu = self.gpu();
        let rows = self.lock().staging.upload(gpu, features)?;
        let mut sum = weighted_sum(gpu, (rows.address(), rows.stride), &gpu.copy(weights)?, rows.n)?;
        sum.truncate(rows.dim);
        Ok(sum)
    }
}
