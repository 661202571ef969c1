//! Serialising paths as text, since JSON has no other form and paths need not be Unicode.

use std::path::PathBuf;

use serde::Serializer;

/// For `serialize_with`: a list of paths.
pub fn each<'a, S: Serializer>(
    paths: impl IntoIterator<Item = &'a PathBuf>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.into_iter().map(|path| path.to_string_lossy()))
}

/// For `serialize_with`: an optional path.
pub fn perhaps<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => serializer.serialize_some(&path.to_string_lossy()),
        None => serializer.serialize_none(),
    }
}
