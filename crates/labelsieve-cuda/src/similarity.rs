//! Similarity to the mean of the clean and accepted rows.

use labelsieve::engine::Job;
use labelsieve::relevance::clean_direction;
use labelsieve::{NoisyPool, Relevance};

use crate::batch::upload_few;
use crate::cuda::Cuda;
use crate::error::Result;
use crate::gpu::{at, launch, warp_per_row};
use crate::rows::Rows;

/// `(1 + v·x) / 2`, where x is the unit-length mean of the clean and accepted rows. Consecutive jobs on one pool share it.
pub(crate) fn score(
    cuda: &Cuda,
    jobs: &[Job],
    finished: &(dyn Fn(usize, &Relevance) + Sync),
) -> Result<Vec<Relevance>> {
    let gpu = cuda.gpu();
    let mut state = cuda.lock();
    let mut loaded: Option<(*const NoisyPool, Rows)> = None;
    let mut results = Vec::with_capacity(jobs.len());
    for (number, job) in jobs.iter().enumerate() {
        let pool = job.problem.noisy;
        if loaded.as_ref().is_none_or(|(which, _)| !std::ptr::eq(*which, pool)) {
            drop(loaded.take());
            loaded = Some((pool, state.staging.upload(gpu, pool.features())?));
        }
        let (_, rows) = loaded.as_ref().expect("just loaded");
        let mean = upload_few(gpu, &clean_direction(&job.problem)?)?;
        let out = gpu.buffer::<f32>(rows.n)?;
        launch!(
            gpu.stream,
            gpu.kernels.similarity_to,
            warp_per_row(rows.n),
            rows.address(),
            rows.n as u32,
            rows.dim as u32,
            rows.stride as u32,
            mean.address(),
            at(&out),
        );
        let relevance = job.problem.settle(Relevance::new(gpu.read(&out, rows.n)?)?);
        finished(number, &relevance);
        results.push(relevance);
    }
    Ok(results)
}
