//! Columns to copy along with candidates, and finding them in a file.

use std::path::PathBuf;

use labelsieve_files::{ColumnRole, DataError};

use crate::names::TextEncoding;

/// A column to copy along with candidates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeepColumn {
    /// By its name.
    Named(String),
    /// The URL of a photo, under this name or a usual one.
    Url(Option<String>),
    /// The first of the columns that are searched.
    FirstText,
}

/// The usual names of a URL column; the last is that of YFCC100M.
pub(super) const URL_NAMES: [&str; 5] = ["url", "URL", "image_url", "downloadurl", "download_url"];

/// A column to keep, as a file has it.
#[derive(Clone, Debug)]
pub(super) struct KeepName {
    pub(super) name: String,
    pub(super) encoding: TextEncoding,
}

impl KeepColumn {
    /// Finds the column among the `names` of a file; `texts` are the searched ones.
    pub(super) fn find<'a>(&self, names: &'a [String], texts: &'a [String]) -> Option<&'a String> {
        let named = |wanted: &str| names.iter().find(|name| *name == wanted);
        match self {
            KeepColumn::Named(name) | KeepColumn::Url(Some(name)) => named(name),
            KeepColumn::Url(None) => URL_NAMES.into_iter().find_map(named),
            KeepColumn::FirstText => texts.first(),
        }
    }

    /// The error for a column that no file has; `path` is one of the files and `present` are their columns.
    pub(super) fn missing(&self, path: PathBuf, present: Vec<String>) -> DataError {
        let (role, asked, expected) = match self {
            KeepColumn::Named(name) => (ColumnRole::Kept, Some(name.clone()), format!("`{name}`")),
            KeepColumn::Url(Some(name)) => (ColumnRole::Url, Some(name.clone()), format!("`{name}`")),
            KeepColumn::Url(None) => (ColumnRole::Url, None, format!("a URL under {}", URL_NAMES.join(", "))),
            KeepColumn::FirstText => (ColumnRole::Text, None, "a text".to_owned()),
        };
        DataError::MissingColumn { path, role, asked, expected, present }
    }
}
