//! Where pictures and captions come from: any number of folders, Parquet files and tars.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use labelsieve_data::Result;
use labelsieve_data::images::{ImageColumns, ImageSource, find_metadata, read_tar_captions};
use labelsieve_data::text::{TextColumns, has_captions, read_captions};

use crate::folder_files::FolderFiles;
use crate::thumbnails::{Block, Thumbnails};

/// Pictures of examples and their captions.
#[derive(Clone, Debug, Default)]
pub struct Pictures {
    /// Folders of images, of tars or of Parquet files; Parquet files with image bytes; tars; image files.
    pub images: Vec<PathBuf>,
    /// The column of the image bytes.
    pub image_column: Option<String>,
    /// The column of the names of examples, in all tables.
    pub id_column: Option<String>,
    /// Tables of captions; by default, those beside the images and the columns beside image bytes.
    pub texts: Vec<PathBuf>,
    /// The columns of captions, of which the first that is not empty counts; by default, those with a usual name.
    pub text_columns: Vec<String>,
}

/// Longer captions are cut.
const LONGEST_CAPTION: usize = 300;

impl Pictures {
    /// Looks for the captions and files of the examples `wanted` and for the pictures of `pictured`, a part of them;
    /// calls `progress` with the number of pictures as they are found.
    pub(crate) fn load(
        &self,
        wanted: &HashSet<&str>,
        pictured: &HashSet<&str>,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Thumbnails> {
        let mut found = Thumbnails::default();
        let (mut files, mut streams) = (FolderFiles::default(), Vec::new());
        for input in &self.images {
            match is_folder_of_files(input) {
                true => files.add_folder(input, wanted, &self.file_names(input, wanted)?)?,
                false => streams.push(ImageSource::open(std::slice::from_ref(input), &self.columns())?),
            }
        }
        let mut streamed = HashSet::new();
        for source in &streams {
            stream(source, wanted, pictured, &mut streamed, &mut found, progress)?;
        }
        // A file whose path is the id counts as a further source; a weaker match is used only if there is nothing else.
        let is_pictured = |id: &&str| pictured.contains(id);
        let both = files.exact().filter(is_pictured).filter(|id| found.by_id.contains_key(*id));
        found.ambiguous.extend(both.map(str::to_owned));
        found.ambiguous.extend(files.ambiguous.iter().filter(|id| is_pictured(&id.as_str())).cloned());
        for (id, path) in files.paths().filter(|(id, _)| !streamed.contains(*id)) {
            found.files.insert(id.to_owned(), path.to_path_buf());
        }
        let read = found.files.iter().filter(|(id, _)| is_pictured(&id.as_str()));
        let read: Vec<(String, PathBuf)> = read.map(|(id, path)| (id.clone(), path.clone())).collect();
        found.read_files(&read, progress);
        // Image files given one by one have their paths as ids.
        for path in streams.iter().flat_map(ImageSource::files) {
            if let Some(id) = path.to_str().filter(|id| wanted.contains(id)) {
                found.files.insert(id.to_owned(), path.clone());
            }
        }
        found.captions = self.captions(wanted, &files, &streams)?;
        found.captions.values_mut().for_each(shorten);
        Ok(found)
    }

    fn columns(&self) -> ImageColumns {
        ImageColumns {
            image: self.image_column.clone(),
            id: self.id_column.clone(),
            ..ImageColumns::default()
        }
    }

    fn text_columns(&self, id: Option<&str>) -> TextColumns {
        let id = self.id_column.clone().or(id.map(str::to_owned));
        TextColumns { id, texts: self.text_columns.clone(), ..TextColumns::default() }
    }

    /// The files of examples whose ids differ from their file names, by id.
    fn file_names(&self, folder: &Path, wanted: &HashSet<&str>) -> Result<HashMap<String, String>> {
        let (Some(_), Some(table)) = (&self.id_column, find_metadata(folder)) else {
            return Ok(HashMap::new());
        };
        let columns = TextColumns { texts: vec!["file_name".to_owned()], ..self.text_columns(None) };
        read_captions(&[table], &columns, &|id| wanted.contains(id))
    }

    fn captions(
        &self,
        wanted: &HashSet<&str>,
        files: &FolderFiles,
        streams: &[ImageSource],
    ) -> Result<HashMap<String, String>> {
        let is_wanted = |id: &str| wanted.contains(id);
        if !self.texts.is_empty() {
            return read_captions(&self.texts, &self.text_columns(None), &is_wanted);
        }
        let mut captions = HashMap::new();
        let mut without: Option<PathBuf> = None;
        for folder in self.images.iter().filter(|input| is_folder_of_files(input)) {
            let Some(table) = find_metadata(folder) else { continue };
            let columns = self.text_columns(Some("file_name"));
            if !has_captions(&table, &columns)? {
                without = without.or(Some(table));
                continue;
            }
            let shown = files.below(folder);
            let of_file = |name: &str| match self.id_column {
                Some(_) => wanted.contains(name),
                None => shown.contains_key(Path::new(name)),
            };
            for (name, caption) in read_captions(&[table], &columns, &of_file)? {
                let id = if self.id_column.is_some() {
                    Some(name.as_str())
                } else {
                    shown.get(Path::new(&name)).copied()
                };
                captions.extend(id.map(|id| (id.to_owned(), caption)));
            }
        }
        for path in streams.iter().flat_map(ImageSource::paths).filter(|path| path.is_file()) {
            let columns = self.text_columns(None);
            match path.extension().and_then(|ending| ending.to_str()) {
                Some("tar") => {
                    let (id, texts) = (self.id_column.as_deref(), &self.text_columns);
                    captions.extend(read_tar_captions(path, id, texts, &is_wanted)?);
                }
                Some("parquet") if has_captions(path, &columns)? => {
                    captions.extend(read_captions(&[path.to_path_buf()], &columns, &is_wanted)?);
                }
                Some("parquet") => without = without.or(Some(path.to_path_buf())),
                _ => (),
            }
        }
        if let (true, false, Some(table)) = (captions.is_empty(), self.text_columns.is_empty(), without) {
            read_captions(&[table], &self.text_columns(None), &is_wanted)?; // names the missing column
        }
        Ok(captions)
    }
}

/// Whether this is a folder with the images as files, which are found by name instead of being read one after the other.
/// Folders of tars or of Parquet files are recognised as in `embed`.
fn is_folder_of_files(input: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(input) else { return false };
    let paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    let has = |ending: &str| paths.iter().any(|path| path.extension().is_some_and(|found| found == ending));
    !has("tar") && (!has("parquet") || input.join("metadata.parquet").is_file())
}

/// Shrinks the pictures of `pictured` in a source that has to be read from start to end, and notes in `streamed` which
/// of `wanted` it has.
fn stream(
    source: &ImageSource,
    wanted: &HashSet<&str>,
    pictured: &HashSet<&str>,
    streamed: &mut HashSet<String>,
    found: &mut Thumbnails,
    progress: &mut dyn FnMut(usize),
) -> Result<()> {
    let (mut block, mut seen) = (Block::default(), BTreeSet::new());
    for image in source.images()? {
        match image {
            Ok(image) if wanted.contains(image.id.as_str()) => {
                streamed.insert(image.id.clone());
                if !pictured.contains(image.id.as_str()) {
                    continue;
                }
                if found.by_id.contains_key(&image.id) || !seen.insert(image.id.clone()) {
                    found.ambiguous.insert(image.id);
                    continue;
                }
                found.push(&mut block, image.id, image.bytes, progress);
            }
            Ok(_) => (),
            // A wanted picture, or the rest of a file, which may have held some.
            Err(error) if wanted.contains(error.id.as_str()) || Path::new(&error.id).is_file() => {
                found.unreadable.push((error.id, error.error.to_string()));
            }
            Err(_) => (),
        }
    }
    found.add(&mut block);
    progress(found.by_id.len());
    Ok(())
}

fn shorten(caption: &mut String) {
    if let Some((end, _)) = caption.char_indices().nth(LONGEST_CAPTION) {
        caption.truncate(end);
        caption.push('…');
    }
}

#[cfg(test)]
#[path = "pictures_tests.rs"]
mod tests;
