//! The one error type of the method.

/// The ways in which the method can fail.
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
    /// Two sets of features differ in width but must share a space.
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
        /// The contents of the buffer.
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
    /// A linear classifier separates a class from others, but none were given.
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

/// Checks that `what` has as many values as its shape asks for.
pub(crate) fn check_len(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if found == expected { Ok(()) } else { Err(Error::Length { what, expected, found }) }
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
