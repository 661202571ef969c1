//! The error type of this crate.

/// A name that is unknown, space that is missing, or work that was stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A device name that is not understood.
    #[error("device `{0}`: expected auto, cpu, cuda or cuda:0, cuda:1, …")]
    Device(String),
    /// An instruction level that is unknown, or that this machine does not have.
    #[error("LABELSIEVE_CPU: expected a level that this machine has ({available}), found `{found}`")]
    Level {
        /// The levels of this machine.
        available: String,
        /// The level asked for.
        found: String,
    },
    /// An array did not fit into the scratch space.
    #[error("{0}")]
    Scratch(String),
    /// Work that a [`Watch`](crate::Watch) stopped.
    #[error("stopped")]
    Stopped,
}

/// The result of everything in this crate.
pub type Result<T> = std::result::Result<T, Error>;
