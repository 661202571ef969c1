//! Which device does the work, and why not the GPU.

use std::fmt;
use std::str::FromStr;

use labelsieve::engine::{Cpu, Engine};
use labelsieve_vision::Networks;

use crate::cuda::Cuda;
use crate::error::{Error, Result};
use crate::fallback::{Fallback, FallbackNetworks, Notices};
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

/// The kind of results of a GPU that the processor steps in for.
const FOUND: &str = "cuda or cpu";

/// The engine that a [`Device`] stands for.
pub enum Opened {
    /// The processor, and why: what `-v` should say.
    Cpu {
        /// `asked for`, or what is wrong with the GPU.
        reason: String,
    },
    /// The GPU that was asked for: what it cannot do is an error.
    Cuda(Box<Cuda>),
    /// A GPU that was found: what it cannot do is done on the processor.
    Found(Box<Fallback<Cuda>>),
}

impl Opened {
    /// `cpu`, `cuda`, or `cuda or cpu` for a GPU that leaves to the processor what it cannot do. Results of `cpu` and of
    /// `cuda` are the same bytes everywhere, those of two kinds only nearly the same.
    pub fn kind(&self) -> &'static str {
        match self {
            Opened::Cpu { .. } => "cpu",
            Opened::Cuda(_) => "cuda",
            Opened::Found(_) => FOUND,
        }
    }

    /// What does the work.
    pub fn engine(&self) -> &dyn Engine {
        match self {
            Opened::Cpu { .. } => &Cpu,
            Opened::Cuda(cuda) => cuda.as_ref(),
            Opened::Found(found) => found.as_ref(),
        }
    }

    /// What makes networks. A GPU needs cuDNN for them: without it, the processor does the work if this was opened as
    /// [`Device::Auto`], and else it is an error. The engine stays where it is.
    pub fn networks(&self, precision: Precision) -> Result<OpenedNetworks> {
        let (networks, kind): (Box<dyn Networks>, _) = match self {
            Opened::Cpu { reason } => return Ok(OpenedNetworks::on_cpu(reason)),
            Opened::Cuda(cuda) => (Box::new(cuda.networks(precision)?), "cuda"),
            Opened::Found(found) => match found.first().networks(precision) {
                Ok(first) => (Box::new(FallbackNetworks { first, notices: found.notices().clone() }), FOUND),
                Err(error) => {
                    found.notices().moved(&error.to_string(), "running networks");
                    return Ok(OpenedNetworks::on_cpu(&error.to_string()));
                }
            },
        };
        Ok(OpenedNetworks { networks, kind, text: self.to_string() })
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

    /// As [`Opened::kind`].
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
            Opened::Cuda(cuda) => cuda.fmt(f),
            Opened::Found(found) => found.first().fmt(f),
        }
    }
}

/// Finds the engine for `device`. [`Device::Auto`] never fails: without a usable GPU it is the processor, with the reason, and
/// what a usable one fails at later is done on the processor too. `tell` hears of both, in words for a user; a machine
/// without a GPU is no news.
pub fn open(device: Device, tell: impl Fn(&str) + Send + Sync + 'static) -> Result<Opened> {
    let notices = Notices::new(tell);
    match device {
        Device::Cpu => Ok(Opened::Cpu { reason: "asked for".to_owned() }),
        Device::Cuda(index) => Ok(Opened::Cuda(Box::new(Cuda::open(index)?))),
        Device::Auto => Ok(match Cuda::open(0) {
            Ok(cuda) => Opened::Found(Box::new(Fallback::new(cuda.found(), notices))),
            Err(error) => on_cpu(&error, &notices),
        }),
    }
}

/// The processor for want of a GPU.
fn on_cpu(error: &Error, notices: &Notices) -> Opened {
    if !matches!(error, Error::NoDriver | Error::NoDevice { .. }) {
        notices.moved(&format!("the GPU cannot be used: {error}"), "working");
    }
    Opened::Cpu { reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn a_gpu_that_cannot_be_used_is_told_of_and_a_missing_one_is_not() {
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let listener = heard.clone();
        let notices = Notices::new(move |notice| listener.lock().unwrap().push(notice.to_owned()));
        for error in [Error::NoDriver, Error::NoDevice { index: 0, count: 0 }] {
            assert_eq!(on_cpu(&error, &notices).kind(), "cpu");
        }
        assert_eq!(*heard.lock().unwrap(), [""; 0]);
        let log = "no such instruction".to_owned();
        let error = Error::Compile { file: "network.cu", architecture: "sm_90".to_owned(), log };
        assert_eq!(on_cpu(&error, &notices).to_string(), format!("cpu ({error})"));
        let expected = "the GPU cannot be used: cannot compile network.cu for sm_90: no such instruction; working on the \
                        processor instead";
        assert_eq!(*heard.lock().unwrap(), [expected]);
    }

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
