//! Options of `pretrain`.

use clap::Args;
use labelsieve_networks::pretrain::Pretrain;
use labelsieve_networks::training::Objective;

use crate::arguments::BackboneArguments;

/// The images of base classes, and the network that learns them.
#[derive(Args, Clone, Debug)]
pub struct PretrainOptions {
    #[command(flatten)]
    pub(crate) backbone: BackboneArguments,

    /// Batch size [default: the preset's]
    #[arg(long, value_name = "N")]
    pub batch_size: Option<usize>,
}

impl PretrainOptions {
    /// The job that they describe.
    pub fn job(&self) -> Pretrain {
        self.backbone.job(Objective::Cosine, self.batch_size)
    }
}
