//! The one error type of this crate.

/// What can go wrong between a line of text and a picture.
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
        /// What is wrong with it.
        message: String,
    },
    /// A text is not a drawing.
    #[error("not a drawable svg: {0}")]
    Svg(String),
    /// A picture of no pixels, or of too many.
    #[error("expected a picture of 1 to {} pixels a side, found {found}", crate::drawing::LARGEST)]
    Size {
        /// The side asked for.
        found: u32,
    },
}

/// The result of everything here that can fail.
pub type Result<T> = std::result::Result<T, IconError>;
