//! Gets a device ready, and tells the curious which it is.

use labelsieve_cuda::{Device, Opened, OpenedNetworks, Precision};

use crate::error::Result;
use crate::monitor::Monitor;

/// For the method.
pub fn open(device: Device, monitor: &dyn Monitor) -> Result<Opened> {
    let opened = labelsieve_cuda::open(device, monitor.warn_later())?;
    monitor.detail(&format!("working on {opened}"));
    Ok(opened)
}

/// For networks.
pub fn open_networks(device: Device, monitor: &dyn Monitor) -> Result<OpenedNetworks> {
    let opened = labelsieve_cuda::open(device, monitor.warn_later())?.networks(Precision::default())?;
    monitor.detail(&format!("working on {opened}"));
    Ok(opened)
}
