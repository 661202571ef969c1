//! placeholder
use crate::printer::Printer;
use anyhow::Result;
use clap::Args;
/// x
#[derive(Args)]
pub struct Paper {}
impl Paper {
    pub fn run(&self, _p: &Printer) -> Result<()> {
        Ok(())
    }
}
