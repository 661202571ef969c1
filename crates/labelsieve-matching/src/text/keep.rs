//! Columns that go along with the rows that are found: where they are in a file.

use labelsieve_files::ColumnRole;

use crate::names::TextEncoding;

/// A column of which some rows' values are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeepColumn {
    /// By its name.
    Named(String),
    /// The address of a photo, under this name or a usual one.
    Url(Option<String>),
    /// The first of the columns that are searched.
    FirstText,
}

/// The usual names of a photo's address; the last is that of YFCC100M.
pub(super) const URL_NAMES: [&str; 5] = ["url", "URL", "image_url", "downloadurl", "download_url"];

/// A column to keep that a file has.
#[derive(Clone, Debug)]
pub(super) struct KeepName {
    pub(super) name: String,
    pub(super) encoding: TextEncoding,
}

impl KeepColumn {
    /// The column of a file with these columns, of which `texts` are searched.
    pub(super) fn find<'a>(&self, names: &'a [String], texts: &'a [String]) -> Option<&'a String> {
        let named = |wanted: &str| names.iter().find(|name| *name == wanted);
        match self {
            KeepColumn::Named(name) | KeepColumn::Url(Some(name)) => named(name),
            KeepColumn::Url(None) => URL_NAMES.into_iter().find_map(named),
            KeepColumn::FirstText => texts.first(),
        }
    }

    /// What to say where no file has it: its role, the name that was asked for, and what was expected.
    pub(super) fn missing(&self) -> (ColumnRole, Option<String>, String) {
        match self {
            KeepColumn::Named(name) => (ColumnRole::Kept, Some(name.clone()), format!("`{name}`")),
            KeepColumn::Url(Some(name)) => (ColumnRole::Url, Some(name.clone()), format!("`{name}`")),
            KeepColumn::Url(None) => (ColumnRole::Url, None, format!("a URL under {}", URL_NAMES.join(", "))),
            KeepColumn::FirstText => (ColumnRole::Text, None, "a text".to_owned()),
        }
    }
}
