//! A finished run as a folder: what was done, its tables and figures, and the relevance behind its galleries.
//!
//! | file | holds |
//! |---|---|
//! | `run.json` | [`RunInfo`]: title, settings, commands; the only file that must be there |
//! | `tables.json` | a list of [`ResultTable`] |
//! | `figures.json` | a list of [`Figure`] |
//! | `relevance.parquet` | relevance of every candidate, as [`RelevanceWriter`](labelsieve_files::RelevanceWriter) writes it |
//! | `truth.parquet` | which candidates belong to their class, as [`TruthWriter`](labelsieve_files::TruthWriter) writes it |
//! | `thumbnails.parquet` | small pictures and titles, as [`ThumbnailWriter`](labelsieve_networks::image_files::ThumbnailWriter) writes them |
//!
//! Commands write such a folder; the report is made from it alone.

mod figure;
mod info;
mod table;

use std::io::Write;
use std::path::{Path, PathBuf};

use labelsieve_files::{AtomicFile, DataError, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use figure::{
    Axis, AxisScale, BarSeries, ClassRelevance, Figure, FigureKind, LineSeries, Point, PoolSize,
    ReliabilitySeries,
};
pub use info::{RunInfo, Setting};
pub use table::{Best, Cell, Number, ResultTable, TableColumn, TableRow};

/// Longer JSON files are refused before they are read.
const MAX_JSON_BYTES: u64 = 256 << 20;
/// An id names a file and an anchor, so it must be short.
const MAX_ID_LENGTH: usize = 80;

/// An open run directory.
#[derive(Clone, Debug, PartialEq)]
pub struct RunDirectory {
    path: PathBuf,
    info: RunInfo,
}

impl RunDirectory {
    /// Makes the folder, if need be, and writes `run.json` into it. Other files of an earlier run stay.
    pub fn create(path: impl AsRef<Path>, info: RunInfo) -> Result<RunDirectory> {
        let path = path.as_ref().to_path_buf();
        std::fs::create_dir_all(&path).map_err(DataError::io("write", &path))?;
        let file = path.join("run.json");
        info.check(&file)?;
        write_json(&file, &info)?;
        Ok(RunDirectory { path, info })
    }

    /// Opens a folder that holds a `run.json`.
    pub fn open(path: impl AsRef<Path>) -> Result<RunDirectory> {
        let path = path.as_ref().to_path_buf();
        let file = path.join("run.json");
        let info: RunInfo = read_json(&file)?;
        info.check(&file)?;
        Ok(RunDirectory { path, info })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The contents of `run.json`.
    pub fn info(&self) -> &RunInfo {
        &self.info
    }

    /// Replaces `tables.json`.
    pub fn write_tables(&self, tables: &[ResultTable]) -> Result<()> {
        let file = self.path.join("tables.json");
        table::check_all(&file, tables)?;
        write_json(&file, tables)
    }

    /// The tables of the run, none if there is no such file.
    pub fn tables(&self) -> Result<Vec<ResultTable>> {
        let file = self.path.join("tables.json");
        let tables: Vec<ResultTable> = read_json_if_there(&file)?;
        table::check_all(&file, &tables)?;
        Ok(tables)
    }

    /// Replaces `figures.json`.
    pub fn write_figures(&self, figures: &[Figure]) -> Result<()> {
        let file = self.path.join("figures.json");
        figure::check_all(&file, figures)?;
        write_json(&file, figures)
    }

    /// The figures of the run, none if there is no such file.
    pub fn figures(&self) -> Result<Vec<Figure>> {
        let file = self.path.join("figures.json");
        let figures: Vec<Figure> = read_json_if_there(&file)?;
        figure::check_all(&file, &figures)?;
        Ok(figures)
    }

    /// Where the relevance of the run is or would be, in the format of [`RelevanceWriter`](labelsieve_files::RelevanceWriter).
    pub fn relevance_path(&self) -> PathBuf {
        self.path.join("relevance.parquet")
    }

    /// Where the truth is or would be, in the format of [`TruthWriter`](labelsieve_files::TruthWriter).
    pub fn truth_path(&self) -> PathBuf {
        self.path.join("truth.parquet")
    }

    /// Where the pictures are or would be, in the format of [`ThumbnailWriter`](labelsieve_networks::image_files::ThumbnailWriter).
    pub fn thumbnails_path(&self) -> PathBuf {
        self.path.join("thumbnails.parquet")
    }
}

fn write_json(path: &Path, value: &(impl Serialize + ?Sized)) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    serde_json::to_writer_pretty(&mut file, value)
        .map_err(std::io::Error::from)
        .and_then(|()| file.write_all(b"\n"))
        .map_err(DataError::io("write", path))?;
    file.commit()
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let length = std::fs::metadata(path).map_err(DataError::io("read", path))?.len();
    if length > MAX_JSON_BYTES {
        let expected = format!("at most {MAX_JSON_BYTES} bytes");
        return Err(DataError::malformed(path, "length", expected, length.to_string()));
    }
    let bytes = std::fs::read(path).map_err(DataError::io("read", path))?;
    serde_json::from_slice(&bytes).map_err(|error| DataError::undecodable(path, "run", error))
}

fn read_json_if_there<T: DeserializeOwned + Default>(path: &Path) -> Result<T> {
    if path.exists() { read_json(path) } else { Ok(T::default()) }
}

/// Ids become anchors and file names: letters, digits, `-` and `_`, each once.
fn check_ids<'a>(path: &Path, what: &str, ids: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut seen = std::collections::HashSet::new();
    for (position, id) in ids.enumerate() {
        let place = format!("{what} {position}, `id`");
        let sound = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if id.is_empty() || id.len() > MAX_ID_LENGTH || !id.chars().all(sound) {
            let expected = format!("1 to {MAX_ID_LENGTH} of the characters a-z, A-Z, 0-9, - and _");
            return Err(DataError::malformed(path, place, expected, format!("{id:?}")));
        }
        // File systems that ignore case would overwrite one figure with another.
        if !seen.insert(id.to_ascii_lowercase()) {
            return Err(DataError::malformed(path, place, "distinct ids", format!("`{id}` again")));
        }
    }
    Ok(())
}

/// Numbers in a run are finite: JSON has no others.
fn check_finite(path: &Path, place: impl FnOnce() -> String, numbers: &[f64]) -> Result<()> {
    match numbers.iter().find(|number| !number.is_finite()) {
        Some(number) => Err(DataError::malformed(path, place(), "a finite number", number.to_string())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
