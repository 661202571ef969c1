//! Our errors as the exceptions a Python user expects.

use std::fmt::Display;
use std::io::ErrorKind;

use labelsieve_files::DataError;
use labelsieve_files::work::Error;
use labelsieve_jobs::device::DeviceError;
use labelsieve_networks::Error as NetworkError;
use pyo3::PyErr;
use pyo3::exceptions::{
    PyFileNotFoundError, PyIsADirectoryError, PyKeyboardInterrupt, PyOSError, PyPermissionError,
    PyRuntimeError, PyValueError,
};

use crate::spelling::PythonSpelling;

/// Something is wrong with what the user gave.
pub fn value_error(message: impl Display) -> PyErr {
    PyValueError::new_err(message.to_string())
}

/// A refusal of the method: bad input, except where an engine failed.
pub fn method_error(error: labelsieve::Error) -> PyErr {
    match error {
        labelsieve::Error::Engine(message) => PyRuntimeError::new_err(message),
        error => value_error(error),
    }
}

/// A device that cannot be used, or an unknown name.
pub fn device_error(error: DeviceError) -> PyErr {
    match error {
        DeviceError::Method(error) => method_error(error),
        error => PyRuntimeError::new_err(error.to_string()),
    }
}

/// An error about a file; system errors keep their kind.
pub fn data_error(error: DataError) -> PyErr {
    of_data(&error, error.to_string())
}

fn of_data(error: &DataError, message: String) -> PyErr {
    let DataError::Io { cause, .. } = error else { return PyValueError::new_err(message) };
    match cause.kind() {
        ErrorKind::NotFound => PyFileNotFoundError::new_err(message),
        ErrorKind::PermissionDenied => PyPermissionError::new_err(message),
        ErrorKind::IsADirectory => PyIsADirectoryError::new_err(message),
        _ => PyOSError::new_err(message),
    }
}

/// A job of the pipeline that failed.
pub fn job_error(error: Error) -> PyErr {
    let message = error.spelled(&PythonSpelling);
    match error.root() {
        Error::Input { hint, .. } => {
            value_error(format!("{message}\nhint: {}", hint.spelled(&PythonSpelling)))
        }
        Error::Data(error) => of_data(error, message),
        Error::Method(error) if error.is_stopped() => PyKeyboardInterrupt::new_err(()),
        Error::Method(labelsieve::Error::Engine(_))
        | Error::Stdout(_)
        | Error::Internal(_)
        | Error::During { .. } => PyRuntimeError::new_err(message),
        Error::Method(_) | Error::Json(_) => value_error(message),
        Error::Stage(stage) if is_failure(stage.as_ref()) => PyRuntimeError::new_err(message),
        Error::Stage(_) => value_error(message),
    }
}

/// Whether a device or a training failed, rather than its input.
fn is_failure(stage: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    if let Some(error) = stage.downcast_ref::<DeviceError>() {
        return !matches!(error, DeviceError::Method(_));
    }
    let network = stage.downcast_ref::<NetworkError>();
    matches!(network, Some(NetworkError::Device(_) | NetworkError::Diverged { .. }))
}

/// A panic is a bug in Labelsieve, never a user error.
pub fn internal_error(panic: Box<dyn std::any::Any + Send>) -> PyErr {
    let said = labelsieve_cli::panics::describe(panic.as_ref());
    PyRuntimeError::new_err(format!("{said}; please report it"))
}
