//! Networks on a GPU: `labelsieve_vision` described them, cuDNN multiplies, the kernels here do the rest.
//!
//! `schedule.rs` turns a network into work, `layout.rs` and `rooms.rs` decide where its numbers stand, `staging.rs` brings
//! batches in, `passes.rs` and `head.rs` go forwards and backwards, `learner.rs` puts them together.

mod cudnn;
mod head;
mod kernels;
mod layout;
mod learner;
mod passes;
mod queue;
mod rooms;
mod schedule;
mod staging;

use std::sync::Arc;

use cudarc::driver::CudaContext;
use labelsieve_vision::{Learner, Network, Networks, Snapshot};

use crate::error::Result;
use cudnn::Cudnn;
use kernels::Kernels;
use learner::CudaLearner;
use queue::Queue;

/// The numbers that images are made of inside a network. Weights, statistics and the classifier are `f32` either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// 16 bits with the range of `f32`: what tensor cores are made for.
    #[default]
    Bf16,
    /// `f32` throughout, without tensor cores: several times slower, and within rounding of the processor.
    F32,
}

impl Precision {
    /// Bytes of a number.
    fn size(self) -> usize {
        match self {
            Precision::Bf16 => 2,
            Precision::F32 => 4,
        }
    }
}

/// Makes learners on one GPU.
pub struct CudaNetworks {
    context: Arc<CudaContext>,
    kernels: Arc<Kernels>,
    precision: Precision,
}

impl CudaNetworks {
    /// Compiles the kernels, and fails if cuDNN is missing.
    pub(crate) fn new(context: &Arc<CudaContext>, precision: Precision) -> Result<CudaNetworks> {
        Cudnn::check()?;
        let kernels = Arc::new(Kernels::compile(context, precision)?);
        Ok(CudaNetworks { context: context.clone(), kernels, precision })
    }
}

impl Networks for CudaNetworks {
    fn learner(&self, network: &Network, snapshot: &Snapshot) -> labelsieve_vision::Result<Box<dyn Learner>> {
        let queue = Queue::new(&self.context, &self.kernels, self.precision)?;
        Ok(Box::new(CudaLearner::new(queue, network, snapshot)?))
    }
}
