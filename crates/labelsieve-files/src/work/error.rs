//! The error type of all jobs.

use std::fmt::Display;

use super::words::{Spelling, Words};
use crate::DataError;

/// An error of a job.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An input or an option that cannot be used.
    #[error("{message}")]
    Input {
        /// A description of the problem, with expected and actual values.
        message: Words,
        /// A way to solve it.
        hint: Words,
    },
    /// A file could not be read or written.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The method refused its input.
    #[error(transparent)]
    Method(#[from] labelsieve::Error),
    /// A stage with an error type of its own: a network, a device, a server.
    #[error(transparent)]
    Stage(Box<dyn std::error::Error + Send + Sync>),
    /// Writing a result to standard output failed.
    #[error("cannot write to standard output: {0}")]
    Stdout(std::io::Error),
    /// Invalid JSON, in a file's metadata for instance.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// Another error with its context.
    #[error("{context}: {cause}")]
    During {
        /// The operation or the file.
        context: String,
        /// The error.
        cause: Box<Error>,
    },
    /// An assumption of this program does not hold.
    #[error("internal error: {0}")]
    Internal(String),
}

impl From<labelsieve_numerics::Error> for Error {
    fn from(error: labelsieve_numerics::Error) -> Error {
        Error::Method(error.into())
    }
}

/// Results of jobs.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of a stage that has a type of its own.
    pub fn stage(error: impl std::error::Error + Send + Sync + 'static) -> Error {
        Error::Stage(Box::new(error))
    }

    /// The error of a stage, if it is of this type.
    pub fn of_stage<E: std::error::Error + 'static>(&self) -> Option<&E> {
        match self {
            Error::Stage(error) => error.downcast_ref(),
            _ => None,
        }
    }

    /// An input or an option that cannot be used, with a hint for the user.
    pub fn input(message: impl Into<Words>, hint: impl Into<Words>) -> Error {
        Error::Input { message: message.into(), hint: hint.into() }
    }

    /// The message, with options and commands as a front end writes them.
    pub fn spelled(&self, spelling: &dyn Spelling) -> String {
        match self {
            Error::Input { message, .. } => message.spelled(spelling),
            Error::During { context, cause } => format!("{context}: {}", cause.spelled(spelling)),
            error => error.to_string(),
        }
    }

    /// The innermost error, without its context.
    pub fn root(&self) -> &Error {
        match self {
            Error::During { cause, .. } => cause.root(),
            error => error,
        }
    }

    /// Whether the job was stopped on request.
    pub fn is_stopped(&self) -> bool {
        matches!(self.root(), Error::Method(error) if error.is_stopped())
    }
}

/// Adds context to errors.
pub trait Context<T> {
    /// Adds a text.
    fn context(self, context: impl Display) -> Result<T>;
    /// Adds a text that is built only on error.
    fn with_context<D: Display>(self, context: impl FnOnce() -> D) -> Result<T>;
}

impl<T, E: Into<Error>> Context<T> for Result<T, E> {
    fn context(self, context: impl Display) -> Result<T> {
        self.with_context(|| context)
    }

    fn with_context<D: Display>(self, context: impl FnOnce() -> D) -> Result<T> {
        self.map_err(|error| Error::During { context: context().to_string(), cause: Box::new(error.into()) })
    }
}

/// `None` becomes an internal error: only for values that this program must have set.
impl<T> Context<T> for Option<T> {
    fn context(self, context: impl Display) -> Result<T> {
        self.with_context(|| context)
    }

    fn with_context<D: Display>(self, context: impl FnOnce() -> D) -> Result<T> {
        self.ok_or_else(|| Error::Internal(context().to_string()))
    }
}
