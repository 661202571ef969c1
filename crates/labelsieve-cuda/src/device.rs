//! Selection of the device, and the reason if it is not the GPU.

use std::fmt;

use labelsieve::engine::{Cpu, Engine};
use labelsieve_networks::Learners;
use labelsieve_networks::devices::OpenLearners;
use labelsieve_numerics::Device;

use crate::cuda::Cuda;
use crate::error::{Error, Result};
use crate::fallback::{Fallback, FallbackLearners, Notices};
use crate::networks::ActivationPrecision;

/// The kind of results of a GPU with the CPU as fallback.
const FOUND: &str = "cuda or cpu";

/// A [`Device`] that is ready for work, from [`open`].
pub enum OpenDevice {
    /// The CPU, and the reason, for verbose output.
    Cpu {
        /// `asked for`, or the problem of the GPU.
        reason: String,
    },
    /// The requested GPU: unsupported work is an error.
    Cuda(Box<Cuda>),
    /// A GPU found automatically: unsupported work runs on the CPU.
    Found(Box<Fallback<Cuda>>),
}

impl OpenDevice {
    /// `cpu`, `cuda`, or `cuda or cpu` for a GPU with the CPU as fallback. Results of `cpu` and of
    /// `cuda` are the same bytes everywhere, those of two kinds only nearly the same.
    pub fn kind(&self) -> &'static str {
        match self {
            OpenDevice::Cpu { .. } => "cpu",
            OpenDevice::Cuda(_) => "cuda",
            OpenDevice::Found(_) => FOUND,
        }
    }

    /// The engine that scores classes on it.
    pub fn engine(&self) -> &dyn Engine {
        match self {
            OpenDevice::Cpu { .. } => &Cpu,
            OpenDevice::Cuda(cuda) => cuda.as_ref(),
            OpenDevice::Found(found) => found.as_ref(),
        }
    }

    /// The learners that train and run networks on it. A GPU needs cuDNN for that: without it, networks run on the CPU if this was opened
    /// as [`Device::Auto`], and else it is an error. The engine stays where it is.
    pub fn learners(&self, precision: ActivationPrecision) -> Result<OpenLearners> {
        let (learners, kind): (Box<dyn Learners>, _) = match self {
            OpenDevice::Cpu { reason } => return Ok(OpenLearners::on_cpu(reason)),
            OpenDevice::Cuda(cuda) => (Box::new(cuda.learners(precision)?), "cuda"),
            OpenDevice::Found(found) => match found.first().learners(precision) {
                Ok(first) => (Box::new(FallbackLearners { first, notices: found.notices().clone() }), FOUND),
                Err(error) => {
                    found.notices().moved(&error.to_string(), "running networks");
                    return Ok(OpenLearners::on_cpu(&error.to_string()));
                }
            },
        };
        Ok(OpenLearners::new(learners, kind, self.to_string()))
    }
}

impl fmt::Display for OpenDevice {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            OpenDevice::Cpu { reason } => write!(f, "cpu ({reason})"),
            OpenDevice::Cuda(cuda) => cuda.fmt(f),
            OpenDevice::Found(found) => found.first().fmt(f),
        }
    }
}

/// Opens `device`. [`Device::Auto`] never fails: without a usable GPU it is the CPU, and work that a GPU fails at later moves to
/// the CPU. `tell` is called with a message for the user in both cases; the mere absence of a GPU is not reported.
pub fn open(device: Device, tell: impl Fn(&str) + Send + Sync + 'static) -> Result<OpenDevice> {
    let notices = Notices::new(tell);
    match device {
        Device::Cpu => Ok(OpenDevice::Cpu { reason: "asked for".to_owned() }),
        Device::Cuda(index) => Ok(OpenDevice::Cuda(Box::new(Cuda::open(index)?))),
        Device::Auto => Ok(match Cuda::open(0) {
            Ok(cuda) => OpenDevice::Found(Box::new(Fallback::new(cuda.found(), notices))),
            Err(error) => on_cpu(&error, &notices),
        }),
    }
}

/// The CPU in the absence of a GPU.
fn on_cpu(error: &Error, notices: &Notices) -> OpenDevice {
    if !matches!(error, Error::NoDriver | Error::NoDevice { .. }) {
        notices.moved(&format!("the GPU cannot be used: {error}"), "working");
    }
    OpenDevice::Cpu { reason: error.to_string() }
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
                        CPU instead";
        assert_eq!(*heard.lock().unwrap(), [expected]);
    }
}
