//! The one error type of this crate.

/// Errors of reading and drawing icons.
#[derive(Debug, thiserror::Error)]
pub enum IconError {
    /// The packed sample cannot be unpacked.
    #[error("the icons cannot be unpacked: {0}")]
    Packed(std::io::Error),
    /// A line of the sample is not an icon.
    #[error("line {line} of the icons: {message}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// The error.
        message: String,
    },
    /// A text is not a drawing.
    #[error("not a drawable svg: {0}")]
    Svg(String),
    /// A picture without pixels, or with too many.
    #[error("expected a picture of 1 to {} pixels per side, found {found}", crate::drawing::MAX_SIDE)]
    Size {
        /// The side asked for.
        found: u32,
    },
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, IconError>;
