//! Networks on a GPU: `labelsieve_networks` describes them, cuDNN computes products, the kernels here do the rest.
//!
//! `schedule.rs` turns a network into operations, `layout.rs` and `buffers.rs` assign its memory, `staging.rs` uploads
//! batches, `passes.rs` and `head.rs` run the forward and backward passes, `learner.rs` combines them.

mod buffers;
mod head;
pub(crate) mod kernels;
mod layout;
mod learner;
mod passes;
mod queue;
mod schedule;
pub(crate) mod staging;

use std::sync::Arc;

use cudarc::driver::CudaContext;
use kernels::Kernels;
use labelsieve_networks::{Learner, Learners, Network, Snapshot};
use learner::CudaLearner;
use queue::Queue;

use crate::cudnn::Cudnn;
use crate::error::Result;

/// The type of activations inside a network. Weights, statistics and the classifier are `f32` either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ActivationPrecision {
    /// 16 bits with the range of `f32`, the fastest on tensor cores.
    #[default]
    Bf16,
    /// `f32` throughout, without tensor cores: several times slower, and within rounding of the CPU.
    F32,
}

impl ActivationPrecision {
    /// Bytes of a number.
    pub(crate) fn size(self) -> usize {
        match self {
            ActivationPrecision::Bf16 => 2,
            ActivationPrecision::F32 => 4,
        }
    }
}

/// Makes learners on one GPU.
pub struct CudaLearners {
    context: Arc<CudaContext>,
    kernels: Arc<Kernels>,
    precision: ActivationPrecision,
}

impl CudaLearners {
    /// Compiles the kernels, and fails if cuDNN is missing.
    pub(crate) fn new(context: &Arc<CudaContext>, precision: ActivationPrecision) -> Result<CudaLearners> {
        Cudnn::check()?;
        let kernels = Arc::new(Kernels::compile(context, precision)?);
        Ok(CudaLearners { context: context.clone(), kernels, precision })
    }
}

impl Learners for CudaLearners {
    fn learner(
        &self,
        network: &Network,
        snapshot: &Snapshot,
    ) -> labelsieve_networks::Result<Box<dyn Learner>> {
        let queue = Queue::new(&self.context, &self.kernels, self.precision)?;
        Ok(Box::new(CudaLearner::new(queue, network, snapshot)?))
    }
}
