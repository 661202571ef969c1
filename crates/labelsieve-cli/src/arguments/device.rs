//! `--device`, as every command spells it.

use labelsieve_cuda::Device;

use super::COMMON;

/// Where the work is done.
#[derive(clap::Args, Clone, Debug)]
pub struct DeviceArguments {
    /// Where to work: auto, cpu, cuda or cuda:1; auto takes the first NVIDIA GPU that works, else the CPU
    #[arg(long, default_value = "auto", help_heading = COMMON)]
    pub device: Device,
}
