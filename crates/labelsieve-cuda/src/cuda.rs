//! The engine: the methods of `labelsieve` on one GPU.

use std::fmt;
use std::sync::{Mutex, MutexGuard};

use labelsieve::classifier::{Cosine, WeightMatrix, WeightedClass};
use labelsieve::engine::{Cpu, Engine, Job, relevance_in_parts};
use labelsieve::graph::{Neighbours, NoisyGraph};
use labelsieve::{Features, Method, Relevance};

use crate::batch::{BatchModel, Phases, Run};
use crate::error::Result;
use crate::gpu::Gpu;
use crate::networks::{ActivationPrecision, CudaLearners};
use crate::rows::Staging;
use crate::search::{self, MAX_NEIGHBOURS};
use crate::similarity;
use crate::training::NetworkModel;
use crate::transformers::CudaOperations;

/// One GPU. It does one call at a time; calls from other threads wait.
pub struct Cuda {
    index: usize,
    choice: Choice,
    gpu: Gpu,
    memory_limit: usize,
    state: Mutex<State>,
}

/// How a GPU came to be used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Choice {
    /// The user named it: what it cannot do is an error.
    AskedFor,
    /// It was there: what it cannot do is left to the CPU.
    Found,
}

pub(crate) struct State {
    pub staging: Staging,
    phases: Phases,
}

impl Cuda {
    /// The GPU of this number, from 0.
    pub fn open(index: usize) -> Result<Cuda> {
        let gpu = Gpu::open(index)?;
        let state = State { staging: Staging::new(&gpu)?, phases: Phases::default() };
        let choice = Choice::AskedFor;
        Ok(Cuda { index, choice, gpu, memory_limit: usize::MAX, state: Mutex::new(state) })
    }

    /// Plans with at most this many bytes of GPU memory, e.g. because other programs will need the rest.
    pub fn with_memory_limit(self, bytes: usize) -> Cuda {
        Cuda { memory_limit: bytes, ..self }
    }

    /// As [`Device::Auto`](crate::Device::Auto) finds it.
    pub(crate) fn found(self) -> Cuda {
        Cuda { choice: Choice::Found, ..self }
    }

    /// Its number.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Its name, e.g. `NVIDIA H200`.
    pub fn name(&self) -> &str {
        &self.gpu.name
    }

    /// Where the time of all calls to [`Engine::relevance`] since the last look went.
    pub fn take_phases(&self) -> Phases {
        std::mem::take(&mut self.lock().phases)
    }

    /// The `count` nearest other rows of each row: exactly [`Neighbours::exact`]. More than 256 are left to the CPU.
    pub fn neighbours(&self, features: &Features, count: usize) -> Result<Neighbours> {
        if count > MAX_NEIGHBOURS {
            return Ok(Neighbours::exact(features, count));
        }
        let mut state = self.lock();
        let rows = state.staging.upload(&self.gpu, features)?;
        let lists = search::nearest(&self.gpu, &rows, count)?;
        let len = rows.n * lists.width;
        let indices = self.gpu.read(&lists.indices, len)?;
        let similarities = self.gpu.read(&lists.similarities, len)?;
        Ok(Neighbours::from_lists(rows.n, lists.width, indices, similarities)?)
    }

    /// The graph that [`NoisyPool::from_parts`](labelsieve::NoisyPool::from_parts) keeps for reuse over several calls.
    pub fn noisy_graph(&self, noisy: &Features, count: usize) -> Result<NoisyGraph> {
        Ok(NoisyGraph::from_neighbours(self.neighbours(noisy, count)?, count))
    }

    /// Makes learners on this GPU. Needs cuDNN, which nothing else does.
    pub fn learners(&self, precision: ActivationPrecision) -> Result<CudaLearners> {
        CudaLearners::new(&self.gpu.context, precision)
    }

    /// Walks through transformers on this GPU. Needs cuDNN and cuBLASLt.
    pub fn transformer_operations(&self, precision: ActivationPrecision) -> Result<CudaOperations> {
        CudaOperations::new(&self.gpu.context, precision)
    }

    pub(crate) fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic leaves nothing half done in here: buffers are filled anew by every call.
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn run(
        &self,
        model: &impl BatchModel,
        jobs: &[Job],
        finished: &(dyn Fn(usize, &Relevance) + Sync),
    ) -> Result<Vec<Relevance>> {
        let state = &mut *self.lock();
        let staging = &mut state.staging;
        let phases = &mut state.phases;
        let memory_limit = self.memory_limit;
        let choice = self.choice;
        Run { gpu: &self.gpu, phases, model, memory_limit, choice, jobs, finished }.all(staging)
    }
}

impl fmt::Display for Cuda {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "cuda:{} ({})", self.index, self.name())
    }
}

impl Engine for Cuda {
    fn scores_in_parts(&self) -> bool {
        true
    }

    fn noisy_graph(&self, noisy: &Features, count: usize) -> labelsieve::Result<NoisyGraph> {
        Ok(Cuda::noisy_graph(self, noisy, count)?)
    }

    fn relevance(
        &self,
        method: &Method,
        jobs: &[Job],
        finished: &(dyn Fn(usize, &Relevance) + Sync),
    ) -> labelsieve::Result<Vec<Relevance>> {
        method.build()?; // refuses bad settings
        let results = match method {
            Method::Gcn(gcn) if gcn.neighbours <= MAX_NEIGHBOURS => {
                let neighbours = Some(gcn.neighbours);
                self.run(
                    &NetworkModel { training: gcn.training, lambda: gcn.lambda, neighbours },
                    jobs,
                    finished,
                )
            }
            Method::Mlp(mlp) => self.run(
                &NetworkModel { training: mlp.training, lambda: mlp.lambda, neighbours: None },
                jobs,
                finished,
            ),
            Method::LabelPropagation(model) if model.neighbours <= MAX_NEIGHBOURS => {
                self.run(model, jobs, finished)
            }
            Method::Similarity(_) => similarity::score(self, jobs, finished),
            Method::Auto(auto) => return relevance_in_parts(self, auto, jobs, finished),
            // Nothing here that a GPU would do faster, or longer lists than its kernels hold.
            Method::Linear(_)
            | Method::Beta(_)
            | Method::Mixture(_)
            | Method::Gcn(_)
            | Method::LabelPropagation(_) => {
                return Cpu.relevance(method, jobs, finished);
            }
        };
        Ok(results?)
    }

    fn prototypes(
        &self,
        classes: &[WeightedClass],
        dim: usize,
        scale: f32,
    ) -> labelsieve::Result<WeightMatrix> {
        Ok(Cuda::prototypes(self, classes, dim, scale)?)
    }

    fn cosine(
        &self,
        settings: &Cosine,
        classes: &[WeightedClass],
        dim: usize,
        seed: u64,
    ) -> labelsieve::Result<WeightMatrix> {
        Ok(self.train_cosine(settings, classes, dim, seed)?)
    }
}
