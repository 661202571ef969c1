//! The error type of this crate.

/// An unknown name, a lack of scratch space, or cancelled work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// An unknown device name.
    #[error("device `{0}`: expected auto, cpu, cuda or cuda:0, cuda:1, …")]
    Device(String),
    /// An instruction level that is unknown or not supported by this machine.
    #[error("LABELSIEVE_CPU: expected a level that this machine has ({available}), found `{found}`")]
    Level {
        /// The levels of this machine.
        available: String,
        /// The level asked for.
        found: String,
    },
    /// An array that did not fit into the scratch space.
    #[error("{0}")]
    Scratch(String),
    /// Work that a [`Watch`](crate::Watch) stopped.
    #[error("stopped")]
    Stopped,
}

/// A result with the error of this crate.
pub type Result<T> = std::result::Result<T, Error>;
