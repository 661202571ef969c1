//! Results in parts: each part describes itself, so that merging can check that all parts belong together and are complete.
//!
//! A part is a Parquet file with the description in its metadata, which does not depend on its path, its time or the machine.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tables::parquet_columns::ParquetFile;
use crate::{DataError, Result};

/// The metadata key of the description of a part.
pub const PART_KEY: &str = "labelsieve.part";

/// The kind of result that a part belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartOf {
    /// The relevance of candidates.
    Score,
    /// The candidates of classes.
    Match,
    /// The photos to download.
    DownloadList,
}

/// The description of a part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// The kind of result.
    pub command: PartOf,
    /// A digest of everything that determines the whole result: the same for all parts of one run.
    pub run: String,
    /// The index of the part, from 0.
    pub index: usize,
    /// The number of parts.
    pub of: usize,
    /// Facts that the rows do not contain, as the command that made the part describes them.
    pub detail: Value,
}

impl Part {
    /// The description as an entry of a file's metadata.
    pub fn metadata(&self) -> (String, String) {
        let text = serde_json::to_string(self).unwrap_or_default(); // texts and numbers always are JSON
        (PART_KEY.to_owned(), text)
    }

    /// The description of the file at `path`, if it is a part.
    pub fn of_file(path: impl AsRef<Path>) -> Result<Option<Part>> {
        let path = path.as_ref();
        let metadata = ParquetFile::open(path)?.metadata();
        metadata.get(PART_KEY).map(|text| Part::parse(path, text)).transpose()
    }

    /// Whether both are the same part of the same run.
    pub fn is_same_as(&self, other: &Part) -> bool {
        let identity = |part: &Part| (part.command, part.run.clone(), part.index, part.of);
        identity(self) == identity(other)
    }

    /// Parses the JSON of a description.
    pub fn parse(path: &Path, text: &str) -> Result<Part> {
        let part: Part = serde_json::from_str(text).map_err(|error| {
            DataError::malformed(path, format!("metadata `{PART_KEY}`"), "a part", error.to_string())
        })?;
        if part.index < part.of {
            Ok(part)
        } else {
            let found = format!("part {} of {}", part.index, part.of);
            Err(DataError::malformed(path, format!("metadata `{PART_KEY}`"), "a part, from 0", found))
        }
    }
}

/// A requested part, written `I/N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Shard {
    /// From 0.
    pub index: usize,
    /// The number of parts, at least one.
    pub of: usize,
}

impl std::str::FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Shard, String> {
        let numbers = text.split_once('/').and_then(|(index, of)| index.parse().ok().zip(of.parse().ok()));
        match numbers {
            Some((index, of)) if index < of => Ok(Shard { index, of }),
            Some((index, of)) if index == of && of > 0 => {
                Err(format!("shards count from 0: the last of {of} is {}/{of}", of - 1))
            }
            _ => {
                Err("expected I/N, the index of a shard from 0 and the number of shards, e.g. 0/8".to_owned())
            }
        }
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

/// An open part.
#[derive(Clone, Debug)]
pub struct PartFile {
    /// The file.
    pub path: PathBuf,
    /// Its description.
    pub part: Part,
    /// Its other metadata.
    pub metadata: std::collections::BTreeMap<String, String>,
    /// The number of rows according to the file, which only reading them all verifies.
    pub n_rows: usize,
}

impl PartFile {
    /// Opens a part. Any other file is refused.
    pub fn open(path: impl AsRef<Path>) -> Result<PartFile> {
        let path = path.as_ref();
        let file = ParquetFile::open(path)?;
        let mut metadata = file.metadata();
        let Some(text) = metadata.remove(PART_KEY) else {
            let found = "a whole file, or one of another program";
            return Err(DataError::malformed(path, format!("metadata `{PART_KEY}`"), "a part", found));
        };
        let part = Part::parse(path, &text)?;
        Ok(PartFile { path: path.to_path_buf(), part, metadata, n_rows: file.claimed_rows() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_count_from_zero() {
        assert_eq!("0/1".parse(), Ok(Shard { index: 0, of: 1 }));
        assert_eq!("7/8".parse::<Shard>().map(|shard| shard.to_string()), Ok("7/8".to_owned()));
        let error = "8/8".parse::<Shard>().unwrap_err();
        assert_eq!(error, "shards count from 0: the last of 8 is 7/8");
        for text in ["", "1", "9/8", "0/0", "-1/2", "a/b", "1/2/3"] {
            assert!(text.parse::<Shard>().unwrap_err().starts_with("expected I/N"), "{text}");
        }
    }

    #[test]
    fn a_part_that_cannot_be_is_refused() {
        let part =
            |index| Part { command: PartOf::Match, run: "a".into(), index, of: 2, detail: Value::Null };
        let path = Path::new("p");
        let (_, text) = part(1).metadata();
        assert_eq!(Part::parse(path, &text).unwrap(), part(1));
        let error = Part::parse(path, &part(2).metadata().1).unwrap_err().to_string();
        assert_eq!(error, "`p`: metadata `labelsieve.part`: expected a part, from 0, found part 2 of 2");
        assert!(Part::parse(path, "{}").is_err());
    }
}
