//! Which device does the work, and why not the GPU.

use std::fmt;
use std::str::FromStr;

use labelsieve::engine::{Cpu, Engine};
use labelsieve_vision::Networks;

use crate::cuda::{Choice, Cuda};
use crate::error::{Error, Result};
use crate::networks::Precision;

/// A device as the user names it: `auto`, `cpu`, `cuda` or `cuda:1`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// The first GPU if there is one that works, else the processor.
    #[default]
    Auto,
    /// The processor.
    Cpu,
    /// The GPU of this number, from 0; an error if it cannot be used.
    Cuda(usize),
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(text: &str) -> Result<Device> {
        let unknown = || Error::UnknownDevice(text.to_owned());
        match text {
            "auto" => Ok(Device::Auto),
            "cpu" => Ok(Device::Cpu),
            "cuda" => Ok(Device::Cuda(0)),
            _ => {
                let index = text.strip_prefix("cuda:").ok_or_else(unknown)?;
                index.parse().map(Device::Cuda).map_err(|_| unknown())
            }
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Device::Auto => write!(f, "auto"),
            Device::Cpu => write!(f, "cpu"),
            Device::Cuda(index) => write!(f, "cuda:{index}"),
        }
    }
}

/// The engine that a [`Device`] stands for.
pub enum Opened {
    /// The processor, and why: what `-v` should say.
    Cpu {
        /// `asked for`, or what is wrong with the GPU.
        reason: String,
    },
    /// A GPU, ready to work.
    Cuda(Box<Cuda>),
}

impl Opened {
    /// `cpu` or `cuda`: results of one kind are the same bytes everywhere, of two kinds only nearly the same.
    pub fn kind(&self) -> &'static str {
        match self {
            Opened::Cpu { .. } => "cpu",
            Opened::Cuda(_) => "cuda",
        }
    }

    /// What does the work.
    pub fn engine(&self) -> &dyn Engine {
        match self {
            Opened::Cpu { .. } => &Cpu,
            Opened::Cuda(cuda) => cuda.as_ref(),
        }
    }

    /// What makes networks. A GPU needs cuDNN for them: without it, the processor does the work if this was opened as
    /// [`Device::Auto`], and else it is an error. The engine stays where it is.
    pub fn networks(&self, precision: Precision) -> Result<OpenedNetworks> {
        let cuda = match self {
            Opened::Cpu { reason } => return Ok(OpenedNetworks::on_cpu(reason)),
            Opened::Cuda(cuda) => cuda,
        };
        match cuda.networks(precision) {
            Ok(networks) => {
                Ok(OpenedNetworks { networks: Box::new(networks), kind: "cuda", text: self.to_string() })
            }
            Err(error) if cuda.choice() == Choice::Found => Ok(OpenedNetworks::on_cpu(&error.to_string())),
            Err(error) => Err(error),
        }
    }
}

/// What makes networks, and where it works: `cuda:0 (NVIDIA H200)`, or `cpu` and why.
pub struct OpenedNetworks {
    networks: Box<dyn Networks>,
    kind: &'static str,
    text: String,
}

impl OpenedNetworks {
    fn on_cpu(reason: &str) -> OpenedNetworks {
        let networks = Box::new(labelsieve_vision::Cpu);
        OpenedNetworks { networks, kind: "cpu", text: format!("cpu ({reason})") }
    }

    /// What does the work.
    pub fn networks(&self) -> &dyn Networks {
        self.networks.as_ref()
    }

    /// `cpu` or `cuda`, as [`Opened::kind`].
    pub fn kind(&self) -> &'static str {
        self.kind
    }
}

impl fmt::Display for OpenedNetworks {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for Opened {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Opened::Cpu { reason } => write!(f, "cpu ({reason})"),
            Opened::Cuda(cuda) => write!(f, "cuda:{} ({})", cuda.index(), cuda.name()),
        }
    }
}

/// Finds the engine for `device`. [`Device::Auto`] never fails: without a usable GPU it is the processor, with the reason.
pub fn open(device: Device) -> Result<Opened> {
    match device {
        Device::Cpu => Ok(Opened::Cpu { reason: "asked for".to_owned() }),
        Device::Cuda(index) => Ok(Opened::Cuda(Box::new(Cuda::open(index)?))),
        Device::Auto => Ok(match Cuda::open(0) {
            Ok(cuda) => Opened::Cuda(Box::new(cuda.found())),
            Err(error) => Opened::Cpu { reason: error.to_string() },
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_as_they_are_written() {
        for (text, device) in [
            ("auto", Device::Auto),
            ("cpu", Device::Cpu),
            ("cuda:0", Device::Cuda(0)),
            ("cuda:12", Device::Cuda(12)),
        ] {
            assert_eq!(text.parse(), Ok(device));
            assert_eq!(device.to_string(), text);
        }
        assert_eq!("cuda".parse(), Ok(Device::Cuda(0)));
    }

    #[test]
    fn unknown_devices_are_refused_by_name() {
        for text in ["", "gpu", "cuda:", "cuda:-1", "cuda:x", "CUDA"] {
            let error = text.parse::<Device>().unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("device `{text}`: expected auto, cpu, cuda or cuda:0, cuda:1, …")
            );
        }
    }
}
