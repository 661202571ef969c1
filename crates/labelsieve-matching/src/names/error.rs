//! Errors in lists of classes.

/// A list of classes that cannot be searched for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NamesError {
    /// A class without an id or a name, or a duplicate id.
    #[error("{place}: expected {expected}, found {found}")]
    Class {
        /// The class.
        place: String,
        /// A property that every class must have.
        expected: &'static str,
        /// The state of this one.
        found: &'static str,
    },
    /// More names than fit in one automaton.
    #[error("class names: expected few enough for one automaton, found {0}")]
    TooMany(String),
}

/// Results of the search for names.
pub type Result<T> = std::result::Result<T, NamesError>;

impl From<NamesError> for labelsieve_files::work::Error {
    fn from(error: NamesError) -> labelsieve_files::work::Error {
        labelsieve_files::work::Error::stage(error)
    }
}
