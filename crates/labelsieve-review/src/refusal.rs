//! Why a session does not do what it was asked for.

use labelsieve_files::work::Error;

/// What is wrong with a request, or what went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// There is no such class, row or example.
    #[error("{0}")]
    NotFound(String),
    /// It makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// It cannot be done now.
    #[error("{0}")]
    Conflict(String),
    /// It will be possible in a while.
    #[error("{0}")]
    NotYet(String),
    /// It could not be saved, and was not done.
    #[error("{0}")]
    NotSaved(Error),
    /// Something else failed.
    #[error(transparent)]
    Failed(#[from] Error),
}

impl From<labelsieve::Error> for Refusal {
    fn from(error: labelsieve::Error) -> Refusal {
        Refusal::Failed(error.into())
    }
}
