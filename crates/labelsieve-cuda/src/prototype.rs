//! Prototypes on the GPU.

use labelsieve::Features;
use labelsieve::classifier::{WeightMatrix, WeightedClass};

use crate::cuda::Cuda;
use crate::error::Result;
use crate::gpu::{at, blocks, launch};

impl Cuda {
    /// **Eq. (5)** for every class: `labelsieve::classifier::prototypes` on the GPU, one class in device memory at a time.
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

    /// Σ weight · row, in f32 over chunks of rows and in f64 across.
    fn weighted_sum(&self, features: &Features, weights: &[f32]) -> Result<Vec<f64>> {
        const CHUNK: usize = 256;
        if features.is_empty() {
            return Ok(vec![0.0; features.dim()]);
        }
        let gpu = self.gpu();
        let rows = self.lock().staging.upload(gpu, features)?;
        let weights = gpu.copy(weights)?;
        let n_chunks = rows.n.div_ceil(CHUNK);
        let sums = gpu.buffer::<f32>(n_chunks * rows.stride)?;
        let totals = gpu.buffer::<f64>(rows.stride)?;
        let threads = (rows.stride / 4).next_multiple_of(32).min(256);
        launch!(
            gpu.stream,
            gpu.kernels.weighted_sums,
            blocks(n_chunks, threads),
            rows.address(),
            at(&weights),
            rows.n as u32,
            rows.stride as u32,
            CHUNK as u32,
            at(&sums),
        );
        launch!(
            gpu.stream,
            gpu.kernels.total_sums,
            blocks(rows.stride.div_ceil(64), 64),
            at(&sums),
            n_chunks as u32,
            rows.stride as u32,
            at(&totals),
        );
        gpu.read(&totals, rows.dim)
    }
}
