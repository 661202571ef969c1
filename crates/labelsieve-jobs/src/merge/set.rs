//! The parts of one run: all of them, each once, and no others.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use labelsieve_files::work::{Error, Result, command, option, words};
use labelsieve_files::{DataError, PartFile, PartOf, PartRows, counted};
use serde::de::DeserializeOwned;

/// Parts that are named one by one in a message.
const SHOWN: usize = 10;

/// All parts of a run, in order.
pub(super) struct PartSet {
    pub(super) parts: Vec<PartFile>,
}

impl PartSet {
    /// Opens parts given in any order, with the Parquet files of folders, but for `output`, which may lie among them from an
    /// earlier time.
    pub(super) fn open(given: &[PathBuf], output: Option<&Path>) -> Result<PartSet> {
        let mut parts = Vec::new();
        for path in given {
            if !path.is_dir() {
                parts.push(PartFile::open(path)?);
                continue;
            }
            for path in parquet_files(path)?.iter().filter(|path| Some(path.as_path()) != output) {
                parts.push(PartFile::open(path)?);
            }
        }
        let Some(first) = parts.first() else {
            return Err(Error::input(
                "no parts to merge",
                words![
                    "give the parts that ",
                    command("score"),
                    " or ",
                    command("match"),
                    " wrote, or their folder",
                ],
            ));
        };
        if let Some(foreign) = parts.iter().find(|part| identity(part) != identity(first)) {
            return Err(foreign_part(first, foreign));
        }
        let of = first.part.of;
        let command = first.part.command;
        let mut by_index: BTreeMap<usize, PartFile> = BTreeMap::new();
        for part in parts {
            if let Some(other) = by_index.get(&part.part.index) {
                return Err(Error::input(
                    format!(
                        "`{}` and `{}` are both part {} of {of}",
                        other.path.display(),
                        part.path.display(),
                        part.part.index
                    ),
                    "give each part once",
                ));
            }
            by_index.insert(part.part.index, part);
        }
        let missing: Vec<usize> = (0..of).filter(|index| !by_index.contains_key(index)).collect();
        if !missing.is_empty() {
            return Err(missing_parts(&missing, of, command));
        }
        Ok(PartSet { parts: by_index.into_values().collect() })
    }

    /// Which result they are parts of.
    pub(super) fn command(&self) -> PartOf {
        self.parts[0].part.command
    }

    /// The digest that they share.
    pub(super) fn run(&self) -> &str {
        &self.parts[0].part.run
    }

    /// The files.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.parts.iter().map(|part| part.path.as_path())
    }

    /// The rows of each part, from the first.
    pub(super) fn rows(&self) -> Result<Vec<PartRows>> {
        Ok(self.parts.iter().map(PartRows::open).collect::<labelsieve_files::Result<_>>()?)
    }

    /// The detail that a part carries beside its rows.
    pub(super) fn detail<T: DeserializeOwned>(&self, part: &PartFile) -> Result<T> {
        let detail = serde_json::from_value(part.part.detail.clone());
        detail.map_err(|error| {
            DataError::malformed(&part.path, "metadata `labelsieve.part`", "its detail", error.to_string())
                .into()
        })
    }
}

fn identity(part: &PartFile) -> (PartOf, &str, usize) {
    (part.part.command, &part.part.run, part.part.of)
}

fn foreign_part(first: &PartFile, foreign: &PartFile) -> Error {
    let one = first.path.display();
    let other = foreign.path.display();
    let (command, run, of) = identity(first);
    let difference = match identity(foreign) {
        (found, ..) if found != command => {
            format!("one holds {}, the other {}", name(command), name(found))
        }
        (_, found, _) if found != run => "the inputs or settings differ".to_owned(),
        (.., found) => format!("one is of {of} parts, the other of {found}"),
    };
    Error::input(
        format!("`{one}` and `{other}` are parts of different runs: {difference}"),
        "move the parts of other runs out of the way, or make them again",
    )
}

fn missing_parts(missing: &[usize], of: usize, part_of: PartOf) -> Error {
    let shown: Vec<String> = missing.iter().take(SHOWN).map(usize::to_string).collect();
    let more = match missing.len() - shown.len() {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let first = missing[0];
    let shard = option("shard").set_to(format!("{first}/{of}"));
    let hint = match part_of {
        PartOf::Score => {
            let bin = command("score").with(option("bin").set_to(first));
            words!["make them with ", bin, " and so on (or ", shard, ")"]
        }
        PartOf::Match | PartOf::DownloadList => {
            words!["make them with ", command("match").with(shard), " and so on"]
        }
    };
    let parts = counted(missing.len(), "part");
    let are = if missing.len() == 1 { "is" } else { "are" };
    Error::input(format!("{parts} of {of} {are} missing: {}{more}", shown.join(", ")), hint)
}

/// The contents of such parts.
fn name(command: PartOf) -> &'static str {
    match command {
        PartOf::Score => "relevance",
        PartOf::Match => "candidates",
        PartOf::DownloadList => "a download list",
    }
}

fn parquet_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(DataError::io("read", folder))? {
        let path = entry.map_err(DataError::io("read", folder))?.path();
        let is_parquet = path.extension().is_some_and(|ending| ending == "parquet");
        files.extend((is_parquet && path.is_file()).then_some(path));
    }
    files.sort();
    Ok(files)
}
