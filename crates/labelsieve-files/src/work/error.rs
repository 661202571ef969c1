//! The one error type of all jobs.

use std::fmt::Display;

use super::words::{Spelling, Words};
use crate::DataError;

/// What can go wrong between the files of a user and the files that are written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something that was given cannot be used.
    #[error("{message}")]
    Input {
        /// What is wrong, with what was expected and what came.
        message: Words,
        /// A way out of it.
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
    /// The reader of a result that goes to no file, or its pipe.
    #[error("cannot write to standard output: {0}")]
    Stdout(std::io::Error),
    /// A value that is not what its description says, in a file's metadata for instance.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// Another error, and what was being done.
    #[error("{context}: {cause}")]
    During {
        /// What was being done, or with which file.
        context: String,
        /// What went wrong.
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

/// Results of this crate.
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

    /// Something that a user gave cannot be used, and what to do about it.
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

    /// The innermost error, without what was being done.
    pub fn root(&self) -> &Error {
        match self {
            Error::During { cause, .. } => cause.root(),
            error => error,
        }
    }

    /// Whether the work ended because it was asked to.
    pub fn is_stopped(&self) -> bool {
        matches!(self.root(), Error::Method(error) if error.is_stopped())
    }
}

/// Says what was being done when something went wrong.
pub trait Context<T> {
    /// With a text that is ready.
    fn context(self, context: impl Display) -> Result<T>;
    /// With a text that is made only when it is needed.
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

/// What is missing although this program should have put it there.
impl<T> Context<T> for Option<T> {
    fn context(self, context: impl Display) -> Result<T> {
        self.with_context(|| context)
    }

    fn with_context<D: Display>(self, context: impl FnOnce() -> D) -> Result<T> {
        self.ok_or_else(|| Error::Internal(context().to_string()))
    }
}
