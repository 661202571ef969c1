//! Gets a device ready, and tells the curious which it is.

use labelsieve_cuda::{ActivationPrecision, OpenDevice, OpenLearners};
use labelsieve_numerics::Device;

use crate::error::Result;
use crate::monitor::Monitor;

/// For the method.
pub fn open(device: Device, monitor: &dyn Monitor) -> Result<OpenDevice> {
    let opened = labelsieve_cuda::open(device, monitor.warn_later())?;
    monitor.detail(&format!("working on {opened}"));
    Ok(opened)
}

/// For networks.
pub fn open_learners(device: Device, monitor: &dyn Monitor) -> Result<OpenLearners> {
    let opened =
        labelsieve_cuda::open(device, monitor.warn_later())?.learners(ActivationPrecision::default())?;
    monitor.detail(&format!("working on {opened}"));
    Ok(opened)
}
