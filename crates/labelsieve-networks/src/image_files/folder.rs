//! Folders of image files in the layout of Hugging Face's ImageFolder.

use std::collections::HashSet;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Component, Path, PathBuf};

use labelsieve_files::storage::file_kind::{IMAGE_EXTENSIONS, is_image_name};
use labelsieve_files::storage::regular_file::open_regular;
use labelsieve_files::{DataError, Result};
use labelsieve_matching::text::find_metadata;

use super::folder_metadata::read_metadata;
use super::source::extension;
use super::stream::{Sink, deliver};
use super::{ImageColumns, MAX_IMAGE_BYTES, too_large};

/// Files below a folder.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    root: PathBuf,
    metadata: Option<PathBuf>,
    images: Vec<FolderImage>,
}

/// One image file.
#[derive(Clone, Debug)]
struct FolderImage {
    path: PathBuf,
    id: String,
    label: Option<String>,
}

impl Folder {
    /// With a `metadata.csv`, `.jsonl` or `.parquet`, the files it lists, in its order; else all images below `root`,
    /// sorted by path, with the name of their folder as the label.
    pub(super) fn open(root: &Path, columns: &ImageColumns) -> Result<Folder> {
        let metadata = find_metadata(root);
        let images = match &metadata {
            Some(table) => listed_in(root, table, columns)?,
            None => {
                refuse_columns(root, columns)?;
                let mut paths = Vec::new();
                walk(root, &mut paths)?;
                paths.sort();
                paths.into_iter().map(|path| named(root, path)).collect()
            }
        };
        if images.is_empty() {
            let expected = format!("images ({})", IMAGE_EXTENSIONS.join(", "));
            return Err(DataError::malformed(root, "folder", expected, "none"));
        }
        Ok(Folder { root: root.to_path_buf(), metadata, images })
    }

    /// Single files, with their paths as ids.
    pub(super) fn of_files(files: Vec<PathBuf>, columns: &ImageColumns) -> Result<Folder> {
        let root = files.first().cloned().unwrap_or_default();
        refuse_columns(&root, columns)?;
        let listed = |path: PathBuf| FolderImage { id: display(&path), label: None, path };
        Ok(Folder { root, metadata: None, images: files.into_iter().map(listed).collect() })
    }

    pub(super) fn len(&self) -> usize {
        self.images.len()
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.images.iter().map(|image| image.id.as_str())
    }

    /// The id and the file of every image.
    pub(super) fn listed(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.images.iter().map(|image| (image.id.as_str(), image.path.as_path()))
    }

    /// The folder and its metadata file.
    pub(super) fn paths(&self) -> Vec<&Path> {
        [&self.root].into_iter().chain(&self.metadata).map(PathBuf::as_path).collect()
    }

    /// Everything that is read.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        self.metadata.iter().chain(self.images.iter().map(|image| &image.path)).cloned().collect()
    }

    /// Skips the first `n` images.
    pub(super) fn drop_front(&mut self, n: usize) {
        self.images.drain(..n);
    }

    pub(super) fn visit(&self, sink: &mut Sink<'_>) -> ControlFlow<()> {
        for image in &self.images {
            deliver(&image.id, image.label.as_deref(), read(&image.path), sink)?;
        }
        ControlFlow::Continue(())
    }
}

/// Reads a file without trusting its reported length.
pub(super) fn read(path: &Path) -> Result<Vec<u8>> {
    if path.is_dir() {
        return Err(DataError::malformed(
            path,
            "file type",
            "an image",
            "a link to a folder, which is not followed",
        ));
    }
    let file = open_regular(path)?;
    let len = file.metadata().map_err(DataError::io("read", path))?.len();
    if len > MAX_IMAGE_BYTES {
        return Err(too_large(path, "size", len));
    }
    let mut bytes = Vec::with_capacity(len as usize);
    file.take(MAX_IMAGE_BYTES + 1).read_to_end(&mut bytes).map_err(DataError::io("read", path))?;
    if bytes.len() as u64 > MAX_IMAGE_BYTES {
        return Err(too_large(path, "size", bytes.len() as u64));
    }
    Ok(bytes)
}

/// Rejects columns and filters without a metadata file.
fn refuse_columns(root: &Path, columns: &ImageColumns) -> Result<()> {
    let filtered = columns.filters.first().map(|filter| &filter.column);
    let asked = filtered.or(columns.label.as_ref()).or(columns.id.as_ref());
    match asked {
        Some(column) => {
            let expected = format!("a metadata.csv, .jsonl or .parquet with a column `{column}`");
            Err(DataError::malformed(root, "folder", expected, "none"))
        }
        None => Ok(()),
    }
}

fn listed_in(root: &Path, table: &Path, columns: &ImageColumns) -> Result<Vec<FolderImage>> {
    let mut seen = HashSet::new();
    let mut images = Vec::new();
    for row in read_metadata(table, columns)? {
        let relative = Path::new(&row.file_name);
        let is_below = relative
            .components()
            .all(|component| matches!(component, Component::Normal(_) | Component::CurDir));
        if !is_below {
            let found = format!("`{}`", row.file_name);
            return Err(DataError::malformed(table, "column `file_name`", "files below its folder", found));
        }
        if !seen.insert(row.file_name.clone()) {
            let found = format!("`{}` twice", row.file_name);
            return Err(DataError::malformed(table, "column `file_name`", "distinct files", found));
        }
        let path = root.join(relative);
        images.push(FolderImage { path, id: row.id.unwrap_or(row.file_name), label: row.label });
    }
    Ok(images)
}

/// Collects the images below `folder`. Entries with the name of an image that are not files, and links to folders (which could
/// form a cycle), are reported when they are read.
fn walk(folder: &Path, images: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder).map_err(DataError::io("read", folder))? {
        let entry = entry.map_err(DataError::io("read", folder))?;
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue; // thumbnails and the like that file managers leave
        }
        let path = entry.path();
        let kind = entry.file_type().map_err(DataError::io("read", &path))?;
        if kind.is_dir() {
            walk(&path, images)?;
        } else if is_image_name(&extension(&path)) || (kind.is_symlink() && path.is_dir()) {
            images.push(path);
        }
    }
    Ok(())
}

fn named(root: &Path, path: PathBuf) -> FolderImage {
    let relative = path.strip_prefix(root).unwrap_or(&path);
    let folder = relative.parent().and_then(Path::file_name);
    let label = folder.map(|name| name.to_string_lossy().into_owned());
    FolderImage { id: display(relative), label, path }
}

/// A path with `/` between its parts on every system.
fn display(path: &Path) -> String {
    let text = path.to_string_lossy();
    if cfg!(windows) { text.replace('\\', "/") } else { text.into_owned() }
}
