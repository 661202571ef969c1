//! Errors of ONNX files.

use std::path::PathBuf;

/// Errors of ONNX files.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No ONNX Runtime was found.
    #[error("ONNX Runtime is not installed: searched for {} in {}", library, places.join(", "))]
    NoLibrary {
        /// The name of the library's file on this system.
        library: String,
        /// Where it was searched for.
        places: Vec<String>,
    },
    /// An ONNX Runtime was found that cannot be used.
    #[error("cannot load ONNX Runtime from `{}`: {reason}", path.display())]
    Library {
        /// Its file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// ONNX Runtime refused the file or failed with it.
    #[error("`{}`: {reason}", path.display())]
    Model {
        /// The file.
        path: PathBuf,
        /// In ONNX Runtime's words.
        reason: String,
    },
    /// The network does not turn a photo into a row of numbers.
    #[error("`{}`: {what}: expected {expected}, found {found}", path.display())]
    Shape {
        /// The file.
        path: PathBuf,
        /// Which input or output.
        what: String,
        /// The expected shape.
        expected: String,
        /// Its shape.
        found: String,
    },
    /// Several outputs may be the features.
    #[error("`{}` has several outputs: {}", path.display(), outputs.join(", "))]
    WhichOutput {
        /// The file.
        path: PathBuf,
        /// Their names and shapes.
        outputs: Vec<String>,
    },
    /// The network has no output of this name.
    #[error("`{}` has no output `{name}`: it has {}", path.display(), outputs.join(", "))]
    NoSuchOutput {
        /// The file.
        path: PathBuf,
        /// The name that was given.
        name: String,
        /// The names and shapes of its outputs.
        outputs: Vec<String>,
    },
}

/// A result of this module.
pub type Result<T> = std::result::Result<T, Error>;
