//! The one error type of the method.

/// What the method refuses.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// A feature is not a number, or infinite.
    #[error("feature row {row}, column {column}: expected a finite number, found {value}")]
    NotFinite {
        /// Row of the matrix, from 0.
        row: usize,
        /// Column of the matrix, from 0.
        column: usize,
        /// The offending value.
        value: f32,
    },
    /// Two sets of features that must share a space do not.
    #[error("{what} has {found} columns, but {reference} has {expected}")]
    Width {
        /// The set with the wrong width.
        what: &'static str,
        /// Its width.
        found: usize,
        /// The set it must agree with.
        reference: &'static str,
        /// The width of that set.
        expected: usize,
    },
    /// A buffer whose length does not fit its shape.
    #[error("{what}: expected {expected} values, found {found}")]
    Length {
        /// What the buffer holds.
        what: &'static str,
        /// The length its shape asks for.
        expected: usize,
        /// The length it has.
        found: usize,
    },
    /// A class without a verified example cannot be scored.
    #[error("a class needs at least one clean example, found none")]
    NoCleanExample,
    /// A setting outside its range.
    #[error("{name}: expected {expected}, found {found}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// Its range, in words.
        expected: &'static str,
        /// The value given.
        found: String,
    },
    /// A linear classifier tells a class from others, and there are none.
    #[error("linear needs examples of other classes, found none")]
    NoOtherClass,
    /// Work that was stopped, or an array that found no space.
    #[error(transparent)]
    Numerics(#[from] labelsieve_numerics::Error),
    /// An engine that could not do its work.
    #[error("{0}")]
    Engine(String),
}

/// The result of everything in this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Whether a [`Watch`](labelsieve_numerics::Watch) stopped the work.
    pub fn is_stopped(&self) -> bool {
        *self == Error::Numerics(labelsieve_numerics::Error::Stopped)
    }
}

/// Checks a setting once, where it enters: `check(lambda > 0.0, "lambda", "a positive number", lambda)?`.
pub fn check(
    holds: bool,
    name: &'static str,
    expected: &'static str,
    found: impl std::fmt::Display,
) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::Setting { name, expected, found: found.to_string() }) }
}
