//! A result in parts: what each part says of itself, so that parts can be told to belong together and to be complete.
//!
//! A part is a Parquet file of its kind with one more entry in its metadata. Where it lies, when it was made and on which
//! machine say nothing about it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tables::parquet_columns::ParquetFile;
use crate::{DataError, Result};

/// The key under which a part's metadata says what it is a part of.
pub const PART_KEY: &str = "labelsieve.part";

/// Which result a part is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartOf {
    /// The relevance of candidates.
    Clean,
    /// The candidates of classes.
    Match,
    /// The photos to download.
    DownloadList,
}

/// What a part says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Which result it is a part of.
    pub command: PartOf,
    /// A digest of everything that decides the whole result: parts of one run have the same.
    pub run: String,
    /// Which part this is, from 0.
    pub index: usize,
    /// How many there are.
    pub of: usize,
    /// What the command that made it knows beyond its rows.
    pub detail: Value,
}

impl Part {
    /// As an entry of a file's metadata.
    pub fn metadata(&self) -> (String, String) {
        let text = serde_json::to_string(self).unwrap_or_default(); // texts and numbers always are JSON
        (PART_KEY.to_owned(), text)
    }

    /// What the file at `path` is a part of, if it is one.
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

    /// Reads the description of a part from its JSON.
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

/// Which of how many parts is asked for, written `I/N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Shard {
    /// From 0.
    pub index: usize,
    /// How many there are, at least one.
    pub of: usize,
}

impl std::str::FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Shard, String> {
        let parsed =
            text.split_once('/').and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
        match parsed {
            Some((index, of)) if index < of => Ok(Shard { index, of }),
            Some((index, of)) if index == of && of > 0 => {
                Err(format!("shards count from 0: the last of {of} is {}/{of}", of - 1))
            }
            _ => Err("expected I/N, a shard from 0 and how many there are, e.g. 0/8".to_owned()),
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
    /// What it is a part of.
    pub part: Part,
    /// Its metadata without that.
    pub metadata: std::collections::BTreeMap<String, String>,
    /// Rows according to the file; reading them all is what proves it.
    pub n_rows: usize,
}

impl PartFile {
    /// Opens a part. A file that is none is refused.
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
