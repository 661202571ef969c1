//! What can go wrong with an ONNX file.

use std::path::PathBuf;

/// What can go wrong with an ONNX file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No ONNX Runtime was found.
    #[error("ONNX Runtime is not installed: {} looked for in {}", library, places.join(", "))]
    NoLibrary {
        /// What its file is called here.
        library: String,
        /// Where it was looked for.
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
    /// The network is not one that turns a photo into a row of numbers.
    #[error("`{}`: {what}: expected {expected}, found {found}", path.display())]
    Shape {
        /// The file.
        path: PathBuf,
        /// Which input or output.
        what: String,
        /// What would do.
        expected: String,
        /// What it has.
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
    /// An output was asked for that the network does not have.
    #[error("`{}` has no output `{name}`: it has {}", path.display(), outputs.join(", "))]
    NoSuchOutput {
        /// The file.
        path: PathBuf,
        /// The name that was given.
        name: String,
        /// Names and shapes of those it has.
        outputs: Vec<String>,
    },
}

/// The result of anything here.
pub type Result<T> = std::result::Result<T, Error>;
