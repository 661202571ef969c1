//! Expanding inputs: a file, a glob pattern or a folder.

use std::path::{Path, PathBuf};

use labelsieve_files::{DataError, Result};

/// The metadata table of a folder of images, if there is one.
pub fn find_metadata(folder: &Path) -> Option<PathBuf> {
    let names = ["metadata.csv", "metadata.jsonl", "metadata.parquet"];
    names.iter().map(|name| folder.join(name)).find(|path| path.is_file())
}

/// A file of an input.
pub(super) struct InputFile {
    pub(super) path: PathBuf,
    /// The id column, if the kind of folder determines it.
    pub(super) id: Option<&'static str>,
}

/// The files of an input, with their id columns if known.
pub(super) fn list(input: &Path) -> Result<Vec<InputFile>> {
    if input.is_dir() {
        return files_in(input);
    }
    Ok(expand_pattern(input)?.into_iter().map(|path| InputFile { path, id: None }).collect())
}

/// The files of an input.
pub(super) fn expand(input: &Path) -> Result<Vec<PathBuf>> {
    Ok(list(input)?.into_iter().map(|file| file.path).collect())
}

/// The paths that match a glob pattern, in order; any other path is returned as it is.
pub fn expand_pattern(input: &Path) -> Result<Vec<PathBuf>> {
    let pattern = input.to_str().filter(|text| text.contains(['*', '?', '[']) && !input.exists());
    let Some(pattern) = pattern else { return Ok(vec![input.to_path_buf()]) };
    let paths =
        glob::glob(pattern).map_err(|error| DataError::malformed(input, "pattern", "a glob", error.msg))?;
    let paths = paths.collect::<std::result::Result<Vec<_>, _>>();
    let paths = paths.map_err(|error| DataError::io("read", error.path().to_path_buf())(error.into()))?;
    if paths.is_empty() {
        return Err(DataError::malformed(input, "pattern", "at least one file", "none"));
    }
    Ok(paths)
}

/// The Parquet files of clip-retrieval or img2dataset, numbered ones in numeric order; or the metadata table of an ImageFolder,
/// where the id of an image is its `file_name`.
fn files_in(folder: &Path) -> Result<Vec<InputFile>> {
    let listed = |paths: Vec<PathBuf>| paths.into_iter().map(|path| InputFile { path, id: None }).collect();
    let metadata = folder.join("metadata");
    if metadata.is_dir() {
        let tables = with_ending(&names_in(&metadata)?, "parquet");
        if !tables.is_empty() {
            return Ok(listed(tables));
        }
    }
    let files = names_in(folder)?;
    let tables = with_ending(&files, "parquet");
    // The same decision, in the same order, as for the images of a folder.
    let is_metadata = |path: &PathBuf| path.file_stem().is_some_and(|stem| stem == "metadata");
    let has_shards =
        !with_ending(&files, "tar").is_empty() || (!tables.is_empty() && !tables.iter().any(is_metadata));
    if let Some(path) = find_metadata(folder).filter(|_| !has_shards) {
        return Ok(vec![InputFile { path, id: Some("file_name") }]);
    }
    if tables.is_empty() {
        let found = match files.first().and_then(|path| path.file_name()) {
            None => "an empty folder".to_string(),
            Some(name) => format!("others (`{}`, …)", name.to_string_lossy()),
        };
        let expected = "metadata.csv, metadata.jsonl, metadata.parquet or Parquet files";
        return Err(DataError::malformed(folder, "folder", expected, found));
    }
    Ok(listed(tables))
}

fn names_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).map_err(DataError::io("read", folder))?;
    let paths: std::io::Result<Vec<_>> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths.map_err(DataError::io("read", folder))?;
    paths.sort();
    Ok(paths)
}

fn with_ending(files: &[PathBuf], ending: &str) -> Vec<PathBuf> {
    let number = |path: &PathBuf| {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("");
        stem.rsplit('_').next().and_then(|number| number.parse::<u64>().ok())
    };
    let has_ending = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == ending);
    let mut files: Vec<PathBuf> = files.iter().filter(has_ending).cloned().collect();
    files.sort_by_cached_key(|path| (number(path), path.clone()));
    files
}
