//! What can go wrong with a network.

use thiserror::Error;

/// What can go wrong with a network.
#[derive(Debug, Error, Clone, PartialEq)]
pub enum Error {
    /// A size that does not fit.
    #[error("{what}: expected {expected}, found {found}")]
    Shape {
        /// What has the size.
        what: String,
        /// The size it should have.
        expected: String,
        /// The size it has.
        found: String,
    },
    /// A setting out of range.
    #[error("{name}: expected {expected}, found {found}")]
    Setting {
        /// Its name.
        name: &'static str,
        /// What it may be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// The loss is no longer a number.
    #[error("training diverged in epoch {epoch}: the loss is not a finite number")]
    Diverged {
        /// The epoch, from 1.
        epoch: usize,
    },
    /// A class that nothing can be learned of.
    #[error("class {class} has no example")]
    EmptyClass {
        /// Its number.
        class: usize,
    },
    /// The device could not do it.
    #[error("{0}")]
    Device(String),
}

/// The result of anything here.
pub type Result<T> = std::result::Result<T, Error>;
