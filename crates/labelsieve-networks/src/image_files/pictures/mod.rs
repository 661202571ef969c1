//! Pictures and captions of examples, found by id in any number of folders, Parquet files and tars.
//!
//! ```text
//! PictureSources ──find──► FoundSources ─┬─► ImageSource: all pictures once, for a report
//!                                        └─► PictureFiles: any picture at any time, for a review
//! ```
//!
//! Both find the same picture for an id.

mod captions;
mod folder_files;
mod picture_files;
mod row_blocks;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use labelsieve_files::Result;
use labelsieve_matching::text::{TextColumns, find_metadata, read_captions};

pub use folder_files::FolderFiles;
pub use picture_files::PictureFiles;

use super::{ImageColumns, ImageSource};

/// The sources of pictures and captions of examples.
#[derive(Clone, Debug, Default)]
pub struct PictureSources {
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

/// The opened sources of pictures.
pub struct FoundSources {
    /// Files in folders, which are known by their names.
    pub files: FolderFiles,
    /// Parquet files, tars and image files, whose ids are known once they are read.
    pub streams: Vec<ImageSource>,
}

impl PictureSources {
    /// Looks through folders for the files of `wanted`, and opens all other sources.
    pub fn find(&self, wanted: &HashSet<&str>) -> Result<FoundSources> {
        let mut files = FolderFiles::default();
        let mut streams = Vec::new();
        for input in &self.images {
            if is_folder_of_files(input) {
                files.add_folder(input, wanted, &self.file_names(input, wanted)?)?
            } else {
                streams.push(ImageSource::open(std::slice::from_ref(input), &self.columns())?)
            }
        }
        Ok(FoundSources { files, streams })
    }

    /// The captions of `wanted`, by id.
    pub fn captions(&self, wanted: &HashSet<&str>, found: &FoundSources) -> Result<HashMap<String, String>> {
        captions::read(self, wanted, found)
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
}

/// Whether this is a folder of image files, which are found by name; otherwise it contains tars or Parquet files, which are
/// detected as in `embed`.
fn is_folder_of_files(input: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(input) else { return false };
    let paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    let has = |ending: &str| paths.iter().any(|path| path.extension().is_some_and(|found| found == ending));
    !has("tar") && (!has("parquet") || input.join("metadata.parquet").is_file())
}
