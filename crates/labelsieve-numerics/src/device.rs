//! The name of the device that work runs on. Opening it is left to the crate that links the driver.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// A device as the user names it: `auto`, `cpu`, `cuda` or `cuda:1`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// The first GPU if it can be used, else the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// The GPU with this index; an error if it cannot be used.
    Cuda(usize),
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(text: &str) -> Result<Device> {
        let unknown = || Error::Device(text.to_owned());
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
