//! From jobs to results: pools are brought in one after the other, their jobs prepared, and batches of jobs solved.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use labelsieve::engine::Job;
use labelsieve::{Features, NoisyPool, Relevance};

use crate::cuda::Choice;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::graph::NoisyEdges;
use crate::plan::{JobCost, Plan, PoolCost, TooLarge};
use crate::rows::{Rows, Staging, Uploads, stride_of};

/// A model whose jobs are solved many at a time.
pub(crate) trait BatchModel {
    /// What the prepared jobs of a pool keep on the device.
    type Prepared;

    /// Neighbours per row, if the model reads the graph.
    fn neighbours(&self) -> Option<usize>;

    /// Bytes of a job with `k` clean and `z` noisy rows of `dim` numbers.
    fn bytes(&self, k: usize, z: usize, dim: usize) -> usize;

    /// Bytes that the jobs of a pool of `z` rows share while they are solved.
    fn shared_bytes(&self, _z: usize, _dim: usize) -> usize {
        0
    }

    /// Makes what does not change while `jobs`, all over this pool, are solved. The pool may leave the device afterwards.
    fn prepare(&self, gpu: &Gpu, pool: &LoadedPool, jobs: &[&Job]) -> Result<Self::Prepared>;

    /// What the model says of each job's noisy rows, decided or not, handed to `done` in order, pool after pool.
    fn solve(
        &self,
        gpu: &Gpu,
        prepared: &[Self::Prepared],
        done: &mut dyn FnMut(usize, Relevance),
    ) -> Result<()>;
}

/// A pool on the device.
pub(crate) struct LoadedPool {
    pub rows: Rows,
    pub edges: Option<NoisyEdges>,
}

/// Where the time went, for benchmarks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Phases {
    /// Rows from host to device.
    pub upload: Duration,
    /// Neighbours of the noisy rows, and the graph these make.
    pub search: Duration,
    /// Insertion of clean rows, and X = Ã V.
    pub insertion: Duration,
    /// Training, or conjugate gradients, and the results' way back.
    pub training: Duration,
}

/// The share of free memory that a plan may fill: the rest absorbs what allocators lose.
const SHARE: f64 = 0.85;
/// How often a plan is halved before the device's refusal is believed.
const MAX_TRIES: usize = 5;

/// Everything a run over many jobs needs.
pub(crate) struct Run<'a, 'j, M: BatchModel> {
    pub gpu: &'a Gpu,
    pub phases: &'a mut Phases,
    pub model: &'a M,
    /// The most memory a plan may use, whatever is free.
    pub memory_limit: usize,
    /// What to do about a job that does not fit even alone: if the GPU was asked for, fail before the work starts; else leave
    /// it to the end, for the CPU.
    pub choice: Choice,
    pub jobs: &'a [Job<'j>],
    pub finished: &'a (dyn Fn(usize, &Relevance) + Sync),
}

impl<M: BatchModel> Run<'_, '_, M> {
    /// The relevance of every job. When memory runs out in spite of the plan, what is left is planned again with half of it.
    pub fn all(mut self, staging: &mut Staging) -> Result<Vec<Relevance>> {
        let mut results: Vec<Option<Relevance>> = vec![None; self.jobs.len()];
        for (job, result) in results.iter_mut().enumerate() {
            if self.jobs[job].problem.noisy.features().is_empty() {
                let nothing = Relevance::new(Vec::new())?;
                (self.finished)(job, &nothing);
                *result = Some(nothing);
            }
        }
        let mut budget = ((self.gpu.available()? as f64 * SHARE) as usize).min(self.memory_limit);
        let mut tries = 1;
        while let Err(error) = self.rest(staging, budget, &mut results) {
            if error != Error::OutOfMemory || tries == MAX_TRIES {
                return Err(error);
            }
            budget /= 2;
            tries += 1;
        }
        Ok(results.into_iter().map(|result| result.expect("every job was planned")).collect())
    }

    fn rest(
        &mut self,
        staging: &mut Staging,
        budget: usize,
        results: &mut [Option<Relevance>],
    ) -> Result<()> {
        let pending: Vec<usize> = (0..self.jobs.len()).filter(|&job| results[job].is_none()).collect();
        let mut loaded: Option<(*const NoisyPool, LoadedPool)> = None;
        let plan = self.plan(&pending, budget);
        let too_large = plan.too_large.first().map(|too_large| self.too_large(&pending, too_large, budget));
        if let (Some(error), Choice::AskedFor) = (&too_large, self.choice) {
            return Err(error.clone());
        }
        for (batch, spare) in plan.batches.into_iter().zip(plan.spare) {
            let batch: Vec<usize> = batch.into_iter().map(|position| pending[position]).collect();
            let prepared = self.prepare(staging, &batch, spare, &mut loaded)?;
            let gpu = self.gpu;
            let model = self.model;
            let finished = self.finished;
            let jobs = self.jobs;
            self.time(
                |phases| &mut phases.training,
                || {
                    model.solve(gpu, &prepared, &mut |position, relevance| {
                        let relevance = jobs[batch[position]].problem.settle(relevance);
                        finished(batch[position], &relevance);
                        results[batch[position]] = Some(relevance);
                    })
                },
            )?;
        }
        too_large.map_or(Ok(()), Err)
    }

    /// Brings in the pools of a batch, one after the other, and prepares their jobs. The rows of pools to come are sent meanwhile, as
    /// many as fit `spare` bytes. `loaded` is the pool that is there.
    fn prepare(
        &mut self,
        staging: &mut Staging,
        batch: &[usize],
        spare: usize,
        loaded: &mut Option<(*const NoisyPool, LoadedPool)>,
    ) -> Result<Vec<M::Prepared>> {
        let jobs = self.jobs;
        let gpu = self.gpu;
        let pool_of = |job: &usize| jobs[*job].problem.noisy;
        let is_there = |loaded: &Option<(*const NoisyPool, LoadedPool)>, pool: &NoisyPool| {
            loaded.as_ref().is_some_and(|(which, _)| std::ptr::eq(*which, pool))
        };
        let by_pool = || batch.chunk_by(|a, b| std::ptr::eq(pool_of(a), pool_of(b)));
        let pools = by_pool().map(|jobs| pool_of(&jobs[0]));
        let to_come = pools.filter(|pool| !is_there(loaded, pool)).map(NoisyPool::features).collect();
        std::thread::scope(|scope| {
            let mut uploads = Uploads::start(scope, gpu, staging, to_come, spare);
            let mut prepared = Vec::new();
            for of_pool in by_pool() {
                let of_pool: Vec<&Job> = of_pool.iter().map(|&job| &jobs[job]).collect();
                of_pool.iter().try_for_each(|job| job.problem.watch().check())?;
                let pool = of_pool[0].problem.noisy;
                if !is_there(loaded, pool) {
                    drop(loaded.take()); // its memory first
                    self.wait_for_insertion()?;
                    let rows = self.time(|phases| &mut phases.upload, || uploads.next())?;
                    *loaded = Some((pool, self.load(pool, rows)?));
                }
                let (_, pool) = loaded.as_ref().expect("just loaded");
                let start = Instant::now();
                prepared.push(self.model.prepare(gpu, pool, &of_pool)?);
                self.phases.insertion += start.elapsed();
            }
            self.wait_for_insertion()?;
            Ok(prepared)
        })
    }

    fn load(&mut self, pool: &NoisyPool, rows: Rows) -> Result<LoadedPool> {
        let gpu = self.gpu;
        let neighbours = self.model.neighbours();
        let edges = self.time(
            |phases| &mut phases.search,
            || neighbours.map(|count| NoisyEdges::new(gpu, pool, &rows, count)).transpose(),
        )?;
        Ok(LoadedPool { rows, edges })
    }

    /// Jobs that name the same pool, by address, share it.
    fn plan(&self, pending: &[usize], budget: usize) -> Plan {
        let mut numbers: HashMap<*const NoisyPool, usize> = HashMap::new();
        let mut pools = Vec::new();
        let mut costs = Vec::with_capacity(pending.len());
        for &job in pending {
            let problem = &self.jobs[job].problem;
            let k = problem.clean.len();
            let z = problem.noisy.features().len();
            let dim = problem.clean.dim();
            let pool = *numbers.entry(std::ptr::from_ref(problem.noisy)).or_insert_with(|| {
                pools.push(PoolCost {
                    while_loaded: pool_bytes(z, dim, self.model.neighbours()),
                    shared: self.model.shared_bytes(z, dim),
                });
                pools.len() - 1
            });
            costs.push(JobCost { pool, bytes: self.model.bytes(k, z, dim) });
        }
        Plan::new(&pools, &costs, budget)
    }

    fn too_large(&self, pending: &[usize], too_large: &TooLarge, budget: usize) -> Error {
        let problem = &self.jobs[pending[too_large.job]].problem;
        let rows = problem.clean.len() + problem.noisy.features().len();
        Error::TooLarge { rows, needed: too_large.needed >> 20, available: budget >> 20 }
    }

    /// Insertion is queued without waiting, job by job; this books the time of what is still under way.
    fn wait_for_insertion(&mut self) -> Result<()> {
        self.time(|phases| &mut phases.insertion, || Ok(()))
    }

    /// Does `work`, waits for the device and books the time.
    fn time<R>(
        &mut self,
        phase: impl FnOnce(&mut Phases) -> &mut Duration,
        work: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let start = Instant::now();
        let result = work()?;
        self.gpu.finish()?;
        *phase(self.phases) += start.elapsed();
        Ok(result)
    }
}

/// A pool of `z` rows while its jobs are prepared: the rows, their lists and edges, and the rounded rows and tiles of the search.
fn pool_bytes(z: usize, dim: usize, neighbours: Option<usize>) -> usize {
    const TILES: usize = 256 << 20;
    let rows = z * stride_of(dim) * 4;
    match neighbours {
        Some(count) => rows + z * (dim.next_multiple_of(8) * 2 + count * 16 + 16) + TILES,
        None => rows,
    }
}

/// A handful of rows, without the staging buffers.
pub(crate) fn upload_few(gpu: &Gpu, features: &Features) -> Result<Rows> {
    upload_rows(gpu, std::iter::once(features))
}

/// Handfuls of rows of equal length, one after the other.
pub(crate) fn upload_rows<'a>(gpu: &Gpu, all: impl Iterator<Item = &'a Features>) -> Result<Rows> {
    let mut padded = Vec::new();
    let mut n = 0;
    let mut dim = 0;
    for features in all {
        dim = features.dim();
        n += features.len();
        for row in features.rows() {
            padded.extend_from_slice(row);
            padded.resize(padded.len().next_multiple_of(stride_of(1)), 0f32);
        }
    }
    Ok(Rows { values: gpu.copy(&padded)?, n, dim, stride: stride_of(dim) })
}

#[cfg(test)]
mod tests {
    use labelsieve::ClassProblem;

    use super::*;

    /// A model that runs out of memory unless it is given one job at a time.
    struct OneAtATime;

    impl BatchModel for OneAtATime {
        type Prepared = Vec<usize>;

        fn neighbours(&self) -> Option<usize> {
            None
        }

        fn bytes(&self, _k: usize, _z: usize, _dim: usize) -> usize {
            1 << 20
        }

        fn prepare(&self, _gpu: &Gpu, pool: &LoadedPool, jobs: &[&Job]) -> Result<Vec<usize>> {
            Ok(vec![pool.rows.n; jobs.len()])
        }

        fn solve(
            &self,
            _gpu: &Gpu,
            prepared: &[Vec<usize>],
            done: &mut dyn FnMut(usize, Relevance),
        ) -> Result<()> {
            match prepared.concat()[..] {
                [z] => {
                    done(0, Relevance::new(vec![0.5; z])?);
                    Ok(())
                }
                _ => Err(Error::OutOfMemory),
            }
        }
    }

    #[test]
    fn when_memory_runs_out_batches_shrink_until_they_fit() {
        let gpu = match Gpu::open(0) {
            Ok(gpu) => gpu,
            Err(error) => return eprintln!("skipped: {error}"),
        };
        let clean = Features::new(vec![1.0, 0.0], 2).unwrap();
        let pool = NoisyPool::new(clean.clone());
        let job = Job { problem: ClassProblem::new(&clean, &pool).unwrap(), seed: 0 };
        let run = Run {
            gpu: &gpu,
            phases: &mut Phases::default(),
            model: &OneAtATime,
            memory_limit: 20 << 20,
            choice: Choice::AskedFor,
            jobs: &[job; 16],
            finished: &|_, _| (),
        };
        assert_eq!(
            run.all(&mut Staging::new(&gpu).unwrap()).unwrap(),
            vec![Relevance::new(vec![0.5]).unwrap(); 16]
        );
    }
}
