//! The interface to devices. The crate that knows the drivers opens them, through [`Devices`].

use std::fmt;

use labelsieve_files::work::{Monitor, Result};
use labelsieve_numerics::Device;

use crate::transformer::{Cpu, Names, Normalisation, Operations, Tensors, VisionTransformer, Vit};
use crate::{CpuLearners, Embedder, Learners};

/// Opens the devices that networks run on.
pub trait Devices: Sync {
    /// Opens a device for networks of layers.
    fn learners(&self, device: Device, monitor: &dyn Monitor) -> Result<OpenLearners>;

    /// Reads a vision transformer onto a device. `again` reads it for the CPU if the device fails later.
    fn transformer(
        &self,
        device: Device,
        parts: &TransformerParts<'_>,
        again: ReadAgain,
        monitor: &dyn Monitor,
    ) -> Result<OpenTransformer>;
}

/// The CPU alone, whichever device is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuDevices;

impl Devices for CpuDevices {
    fn learners(&self, _device: Device, _monitor: &dyn Monitor) -> Result<OpenLearners> {
        Ok(OpenLearners::on_cpu("asked for"))
    }

    fn transformer(
        &self,
        _device: Device,
        parts: &TransformerParts<'_>,
        _again: ReadAgain,
        _monitor: &dyn Monitor,
    ) -> Result<OpenTransformer> {
        Ok(OpenTransformer { embedder: parts.read_on_cpu()?, kind: "cpu" })
    }
}

/// Reads a network again, for the CPU.
pub type ReadAgain = Box<dyn FnOnce() -> crate::Result<Box<dyn Embedder>> + Send>;

/// An opened device that trains and runs networks of layers.
pub struct OpenLearners {
    learners: Box<dyn Learners>,
    kind: &'static str,
    name: String,
}

impl OpenLearners {
    /// A device of this kind (`cpu`, `cuda`, `cuda or cpu`), with a name for people.
    pub fn new(learners: Box<dyn Learners>, kind: &'static str, name: String) -> OpenLearners {
        OpenLearners { learners, kind, name }
    }

    /// The CPU, and why it was chosen.
    pub fn on_cpu(reason: &str) -> OpenLearners {
        OpenLearners::new(Box::new(CpuLearners), "cpu", format!("cpu ({reason})"))
    }

    /// Makes the learners.
    pub fn learners(&self) -> &dyn Learners {
        self.learners.as_ref()
    }

    /// The kind of device. Results of `cpu` and of `cuda` are the same bytes everywhere, those of two kinds only nearly the same.
    pub fn kind(&self) -> &'static str {
        self.kind
    }
}

/// `cuda:0 (NVIDIA H200)`, or `cpu` and why.
impl fmt::Display for OpenLearners {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// A vision transformer on a device.
pub struct OpenTransformer {
    /// The network.
    pub embedder: Box<dyn Embedder>,
    /// The kind of device, as [`OpenLearners::kind`].
    pub kind: &'static str,
}

/// A vision transformer whose weights have not been read yet.
pub struct TransformerParts<'a> {
    /// Its shape.
    pub vit: &'a Vit,
    /// The names of its tensors.
    pub names: &'a Names,
    /// Its tensors.
    pub tensors: &'a dyn Tensors,
    /// Height and width of its images.
    pub size: (usize, usize),
    /// How its images are normalised.
    pub normalisation: &'a Normalisation,
}

impl TransformerParts<'_> {
    /// Reads the numbers onto the device that has these operations.
    pub fn read<O: Operations + 'static>(&self, operations: O) -> crate::Result<Box<dyn Embedder>> {
        let description = (self.vit, self.names);
        let network =
            VisionTransformer::read(operations, description, self.tensors, self.size, self.normalisation)?;
        Ok(Box::new(network))
    }

    /// Reads the numbers for the CPU.
    pub fn read_on_cpu(&self) -> crate::Result<Box<dyn Embedder>> {
        self.read(Cpu::default())
    }
}
