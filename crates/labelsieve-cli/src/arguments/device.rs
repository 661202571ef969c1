//! `--device`, as every command spells it.

use labelsieve_numerics::Device;

use super::COMMON;

/// Where the work is done.
#[derive(clap::Args, Clone, Debug)]
pub struct DeviceArguments {
    /// Device: auto, cpu, cuda or cuda:1; auto uses the first working NVIDIA GPU, or the CPU
    #[arg(long, default_value = "auto", help_heading = COMMON, display_order = 1000)]
    pub device: Device,
}
