//! `labelsieve pretrain`: a backbone from the images of base classes.

use anyhow::Result;
use clap::Args;

use crate::arguments::JsonArguments;
use crate::given::Given;
use crate::options::PretrainOptions;
use crate::printer::Printer;

/// Train a backbone on base classes, with a cosine classifier
#[derive(Args)]
pub struct Pretrain {
    #[command(flatten)]
    options: PretrainOptions,

    #[command(flatten)]
    json: JsonArguments,
}

impl Pretrain {
    pub fn check_options(&self, given: &Given) -> Result<()> {
        self.options.backbone.check_options(given)
    }

    pub fn run(&self, printer: &Printer) -> Result<()> {
        self.options.backbone.train(&self.options.job(), self.json, printer)
    }
}
