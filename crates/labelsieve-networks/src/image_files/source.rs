//! Detects the layout of sources before long work starts.

use std::collections::HashSet;
use std::hash::Hasher;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use labelsieve_files::storage::file_kind::is_image_name;
use labelsieve_files::{DataError, ExpectedFile, FileKind, Result};
use labelsieve_matching::text::expand_pattern;
use labelsieve_numerics::Fnv1a;

use super::ImageColumns;
use super::folder::Folder;
use super::parquet_images::ParquetImages;
use super::stream::{ImageStream, Sink};
use super::tars::Tar;

/// Images in files, folders and archives, in a fixed order.
#[derive(Clone, Debug)]
pub struct ImageSource {
    parts: Vec<Part>,
}

/// One place with images.
#[derive(Clone, Debug)]
pub(super) enum Part {
    Folder(Folder),
    Parquet(ParquetImages),
    Tar(Tar),
}

impl ImageSource {
    /// Finds and inspects every source. `inputs` are image files, `.parquet` and `.tar` files, glob patterns, and
    /// folders: of tars, of Parquet files, or of images as Hugging Face's ImageFolder has them.
    pub fn open(inputs: &[PathBuf], columns: &ImageColumns) -> Result<ImageSource> {
        let mut parts = Vec::new();
        for input in inputs {
            let mut loose = Vec::new();
            for path in expand_pattern(input)? {
                if path.is_file() && is_image_name(&extension(&path)) {
                    loose.push(path);
                } else {
                    open_one(&path, columns, &mut parts)?;
                }
            }
            if !loose.is_empty() {
                parts.push(Part::Folder(Folder::of_files(loose, columns)?));
            }
        }
        Ok(ImageSource { parts })
    }

    /// The number of images, if known without reading everything. It comes from unverified file headers: use it for progress,
    /// not for allocation.
    pub fn len_hint(&self) -> Option<usize> {
        self.parts.iter().try_fold(0usize, |sum, part| {
            let len = match part {
                Part::Folder(folder) => Some(folder.len()),
                Part::Parquet(file) => file.len_hint(),
                Part::Tar(tar) => tar.len_hint(),
            };
            Some(sum.saturating_add(len?))
        })
    }

    /// The files that are read; of a folder of images, the folder and its metadata file.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.parts.iter().flat_map(|part| match part {
            Part::Folder(folder) => folder.paths(),
            Part::Parquet(file) => vec![file.path()],
            Part::Tar(tar) => tar.paths(),
        })
    }

    /// An id shared by two files in folders, where an id is the path below the folder. Ids in Parquet files and tars are
    /// known only once they are read.
    pub fn id_listed_twice(&self) -> Option<&str> {
        let mut seen = HashSet::new();
        let folders = self.parts.iter().filter_map(|part| match part {
            Part::Folder(folder) => Some(folder),
            _ => None,
        });
        folders.flat_map(Folder::ids).find(|id| !seen.insert(*id))
    }

    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Every file that is read, images of folders too.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for part in &self.parts {
            match part {
                Part::Folder(folder) => files.extend(folder.files()),
                Part::Parquet(file) => files.push(file.path().to_path_buf()),
                Part::Tar(tar) => files.extend(tar.paths().into_iter().map(Path::to_path_buf)),
            }
        }
        files
    }

    /// A text that changes when a file is added, removed, renamed or written to (by size and time of change).
    pub fn fingerprint(&self) -> Result<String> {
        let mut hash = Fnv1a::default();
        let mut n_files = 0;
        for part in &self.parts {
            let files = match part {
                Part::Folder(folder) => folder.files(),
                Part::Parquet(file) => vec![file.path().to_path_buf()],
                Part::Tar(tar) => tar.paths().into_iter().map(Path::to_path_buf).collect(),
            };
            n_files += files.len();
            for file in files {
                add_to(&mut hash, file.as_os_str().as_encoded_bytes());
                // A listed file that is missing is a skipped image, not an error.
                let Ok(metadata) = std::fs::metadata(&file) else { continue };
                let changed = metadata.modified().map_err(DataError::io("open", &file))?;
                let age = changed.duration_since(std::time::UNIX_EPOCH).map_or(0, |age| age.as_nanos());
                add_to(&mut hash, &metadata.len().to_le_bytes());
                add_to(&mut hash, &age.to_le_bytes());
            }
        }
        Ok(format!("{n_files} image files {:016x}", hash.finish()))
    }

    /// All images, read on a thread of their own.
    pub fn images(&self) -> Result<ImageStream> {
        self.images_from(0)
    }

    /// The images from `position` on, where those that could not be read count too.
    pub fn images_from(&self, position: usize) -> Result<ImageStream> {
        let mut parts = self.parts.clone();
        let mut skip = position;
        // Files of a folder are skipped unread; other sources have to be read up to the position.
        while let Some(Part::Folder(folder)) = parts.first_mut() {
            let n = folder.len().min(skip);
            folder.drop_front(n);
            skip -= n;
            if folder.len() > 0 {
                break;
            }
            parts.remove(0);
        }
        ImageStream::start(parts, skip).map_err(DataError::io("start a thread for", "images"))
    }
}

impl Part {
    pub(super) fn visit(&self, sink: &mut Sink<'_>) -> ControlFlow<()> {
        match self {
            Part::Folder(folder) => folder.visit(sink),
            Part::Parquet(file) => file.visit(sink),
            Part::Tar(tar) => tar.visit(sink),
        }
    }
}

fn open_one(path: &Path, columns: &ImageColumns, parts: &mut Vec<Part>) -> Result<()> {
    if !path.is_dir() {
        std::fs::metadata(path).map_err(DataError::io("open", path))?;
        match extension(path).as_str() {
            "parquet" => parts.push(Part::Parquet(ParquetImages::open(path, columns)?)),
            "tar" => parts.push(Part::Tar(Tar::open(path, columns)?)),
            other => {
                let unknown = || {
                    DataError::malformed(
                        path,
                        "file name",
                        ExpectedFile::Images.to_string(),
                        format!("`.{other}`"),
                    )
                };
                let wrong = |found| DataError::WrongKind {
                    path: path.to_path_buf(),
                    wanted: ExpectedFile::Images,
                    found,
                };
                return Err(FileKind::of(path).map_or_else(unknown, wrong));
            }
        }
        return Ok(());
    }
    let tars = files_with(path, "tar")?;
    let tables = files_with(path, "parquet")?;
    let is_metadata = |file: &PathBuf| file.file_stem().is_some_and(|stem| stem == "metadata");
    if !tars.is_empty() {
        for tar in tars {
            parts.push(Part::Tar(Tar::open(&tar, columns)?));
        }
    } else if !tables.is_empty() && !tables.iter().any(is_metadata) {
        for table in tables {
            parts.push(Part::Parquet(ParquetImages::open(&table, columns)?));
        }
    } else {
        parts.push(Part::Folder(Folder::open(path, columns)?));
    }
    Ok(())
}

/// The files right below `folder` with this ending, in order.
fn files_with(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(DataError::io("read", folder))? {
        let path = entry.map_err(DataError::io("read", folder))?.path();
        if extension(&path) == ending && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The ending of a name in lower case.
pub(super) fn extension(path: &Path) -> String {
    path.extension().and_then(|extension| extension.to_str()).unwrap_or("").to_ascii_lowercase()
}

/// The length goes first, so that neighbouring texts cannot run together.
fn add_to(hash: &mut Fnv1a, bytes: &[u8]) {
    hash.write(&(bytes.len() as u64).to_le_bytes());
    hash.write(bytes);
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
