//! `--device`, as every command spells it.

use anyhow::Result;
use labelsieve_cuda::{ActivationPrecision, Device, OpenDevice, OpenLearners};
use serde::Serialize;

use crate::printer::{Printer, warn};
use crate::resume;

/// Where the work is done.
#[derive(clap::Args, Clone, Debug, Serialize)]
pub struct DeviceArguments {
    /// Where to work: auto, cpu, cuda or cuda:1; auto takes the first NVIDIA GPU that works, else the CPU
    #[arg(long, default_value = "auto")]
    #[serde(serialize_with = "resume::debug")]
    device: Device,
}

impl DeviceArguments {
    /// Gets the device ready; only `-v` says which it is.
    pub fn open(&self, printer: &Printer) -> Result<OpenDevice> {
        let opened = labelsieve_cuda::open(self.device, warn)?;
        printer.detail(&format!("working on {opened}"));
        Ok(opened)
    }

    /// Gets the device ready for networks; only `-v` says which it is.
    pub fn open_networks(&self, printer: &Printer) -> Result<OpenLearners> {
        let opened = labelsieve_cuda::open(self.device, warn)?.learners(ActivationPrecision::default())?;
        printer.detail(&format!("working on {opened}"));
        Ok(opened)
    }
}
