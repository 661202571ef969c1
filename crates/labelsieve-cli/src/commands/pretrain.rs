//! `labelsieve pretrain`: a backbone from the images of base classes.

use anyhow::Result;
use clap::Args;
use labelsieve_networks::training::Objective;

use crate::arguments::BackboneArguments;
use crate::options::Given;
use crate::printer::Printer;

/// Train a backbone on base classes, with a cosine classifier
#[derive(Args)]
pub struct Pretrain {
    #[command(flatten)]
    backbone: BackboneArguments,

    /// Batch size [default: the preset's]
    #[arg(long, value_name = "N")]
    batch_size: Option<usize>,
}

impl Pretrain {
    pub fn check_options(&self, given: &Given) -> Result<()> {
        self.backbone.check_options(given)
    }

    pub fn run(&self, printer: &Printer) -> Result<()> {
        self.backbone.train(Objective::Cosine, self.batch_size, printer)
    }
}
