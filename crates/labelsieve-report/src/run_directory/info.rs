//! `run.json`: what was done.

use std::collections::BTreeMap;
use std::path::Path;

use labelsieve_files::{DataError, Result};
use serde::{Deserialize, Serialize};

/// The version of the format that this code writes.
const FORMAT: u32 = 1;

/// A run and how it was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunInfo {
    /// Version of the run directory; [`RunInfo::new`] sets it.
    pub format: u32,
    /// The heading of the report.
    pub title: String,
    /// A paragraph that says what was done and on what.
    #[serde(default)]
    pub description: String,
    /// Whether the wrong candidates were added on purpose. The report then says so wherever noise matters.
    #[serde(default)]
    pub simulated_noise: bool,
    /// Readable names of the classes whose names in the files are codes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub class_names: BTreeMap<String, String>,
    /// Settings worth knowing, in the order in which they are shown.
    #[serde(default)]
    pub settings: Vec<Setting>,
    /// The commands that made the run, as typed.
    #[serde(default)]
    pub commands: Vec<String>,
    /// Remarks for the reader, a paragraph each.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// A setting of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// The name of the setting, e.g. `λ`.
    pub name: String,
    /// The value.
    pub value: String,
}

impl RunInfo {
    /// A run with a title and nothing else yet.
    pub fn new(title: impl Into<String>) -> RunInfo {
        RunInfo {
            format: FORMAT,
            title: title.into(),
            description: String::new(),
            simulated_noise: false,
            class_names: BTreeMap::new(),
            settings: Vec::new(),
            commands: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds a setting.
    pub fn setting(mut self, name: impl Into<String>, value: impl ToString) -> RunInfo {
        self.settings.push(Setting { name: name.into(), value: value.to_string() });
        self
    }

    pub(super) fn check(&self, path: &Path) -> Result<()> {
        if self.format != FORMAT {
            return Err(DataError::malformed(
                path,
                "`format`",
                FORMAT.to_string(),
                format!("{}; was it written by another version?", self.format),
            ));
        }
        if self.title.trim().is_empty() {
            return Err(DataError::malformed(path, "`title`", "a title", "none"));
        }
        Ok(())
    }
}
