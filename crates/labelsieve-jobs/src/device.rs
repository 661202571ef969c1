//! Opens devices: the one place that knows the GPU engine.

use labelsieve_cuda::{ActivationPrecision, FallbackEmbedder};
use labelsieve_files::work::{Monitor, Result};
use labelsieve_networks::devices::{
    Devices as NetworkDevices, OpenLearners, OpenTransformer, ReadAgain, TransformerParts,
};
use labelsieve_numerics::Device;

pub use labelsieve_cuda::{Error as DeviceError, OpenDevice, open as open_telling};

/// Opens a device for the method.
pub fn open(device: Device, monitor: &dyn Monitor) -> Result<OpenDevice> {
    let opened = labelsieve_cuda::open(device, monitor.warn_later())?;
    monitor.detail(&format!("working on {opened}"));
    Ok(opened)
}

/// Opens devices for networks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Devices;

impl NetworkDevices for Devices {
    fn learners(&self, device: Device, monitor: &dyn Monitor) -> Result<OpenLearners> {
        let opened = labelsieve_cuda::open(device, monitor.warn_later())?;
        let learners = opened.learners(ActivationPrecision::default())?;
        monitor.detail(&format!("working on {learners}"));
        Ok(learners)
    }

    fn transformer(
        &self,
        device: Device,
        parts: &TransformerParts<'_>,
        again: ReadAgain,
        monitor: &dyn Monitor,
    ) -> Result<OpenTransformer> {
        let opened = open(device, monitor)?;
        let precision = ActivationPrecision::default();
        let kind = opened.kind();
        match &opened {
            OpenDevice::Cpu { .. } => Ok(OpenTransformer { embedder: parts.read_on_cpu()?, kind }),
            OpenDevice::Cuda(cuda) => {
                let embedder = parts.read(cuda.transformer_operations(precision)?)?;
                Ok(OpenTransformer { embedder, kind })
            }
            OpenDevice::Found(found) => {
                let operations = found.first().transformer_operations(precision);
                let read = operations.map_err(labelsieve_networks::Error::from);
                match read.and_then(|operations| parts.read(operations)) {
                    Ok(current) => {
                        let embedder = Box::new(FallbackEmbedder::new(current, again, found));
                        Ok(OpenTransformer { embedder, kind })
                    }
                    Err(reason) => {
                        // Fails with the error of the folder, if that is the reason.
                        let embedder = parts.read_on_cpu()?;
                        found.moved(&reason.to_string(), "running the network");
                        Ok(OpenTransformer { embedder, kind: "cpu" })
                    }
                }
            }
        }
    }
}
