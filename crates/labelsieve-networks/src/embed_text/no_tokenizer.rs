//! Builds without the feature `text`.

use std::path::Path;

use labelsieve_files::work::{Error, Result};
use serde_json::Value;

use crate::transformer::families::TextDescription;

/// Never constructed.
pub enum TextTokenizer {}

impl TextTokenizer {
    /// Fails: this build has no tokenizers.
    pub fn open(folder: &Path, _config: &Value, _described: &TextDescription) -> Result<TextTokenizer> {
        Err(Error::input(
            format!("`{}`: this build of labelsieve does not support text towers", folder.display()),
            "use the Python package (`pip install labelsieve`) or a released binary, or build it with \
             `cargo install labelsieve-cli --features text`",
        ))
    }

    pub fn tokens(&self, _texts: &[String]) -> Result<(Vec<Vec<u32>>, Vec<bool>)> {
        match *self {}
    }
}
