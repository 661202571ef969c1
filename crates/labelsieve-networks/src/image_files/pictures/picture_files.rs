//! Random access to the encoded pictures of examples.

use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use labelsieve_files::storage::regular_file::open_regular;
use labelsieve_files::{DataError, Result};

use super::super::folder::read as read_file;
use super::super::source::Part;
use super::super::{MAX_IMAGE_BYTES, too_large};
use super::FoundSources;
use super::row_blocks::RowBlocks;

/// The location of the picture of each example. Examples are addressed by position, so that a request cannot name a file.
pub struct PictureFiles {
    places: Vec<Option<PictureLocation>>,
    tars: Vec<PathBuf>,
    tables: Vec<RowBlocks>,
}

/// The location of a picture.
enum PictureLocation {
    File(PathBuf),
    InTar { tar: u32, offset: u64, len: u64 },
    InTable { table: u32, row: usize },
}

impl PictureFiles {
    /// Locates the pictures of `wanted` by reading the ids of tables and the headers of tars, but no pictures. The first of
    /// several pictures of an id counts; tables and tars come before files with inexact matches.
    pub fn locate(found: &FoundSources, wanted: &[&str]) -> Result<PictureFiles> {
        let position: HashMap<&str, usize> = wanted.iter().enumerate().map(|(i, id)| (*id, i)).collect();
        let mut files = PictureFiles {
            places: wanted.iter().map(|_| None).collect(),
            tars: Vec::new(),
            tables: Vec::new(),
        };
        for part in found.streams.iter().flat_map(|source| source.parts()) {
            files.locate_in(part, &position)?;
        }
        for (id, path) in found.files.paths() {
            if let Some(&at) = position.get(id) {
                files.places[at].get_or_insert_with(|| PictureLocation::File(path.to_path_buf()));
            }
        }
        Ok(files)
    }

    fn locate_in(&mut self, part: &Part, position: &HashMap<&str, usize>) -> Result<()> {
        let places = &mut self.places;
        let mut note = |id: &str, place: PictureLocation| {
            if let Some(&at) = position.get(id) {
                places[at].get_or_insert(place);
            }
        };
        match part {
            Part::Folder(folder) => {
                for (id, path) in folder.listed() {
                    note(id, PictureLocation::File(path.to_path_buf()));
                }
            }
            Part::Tar(tar) => {
                let number = self.tars.len() as u32;
                tar.locate(&mut |id, offset, len| {
                    note(id, PictureLocation::InTar { tar: number, offset, len })
                })?;
                self.tars.push(tar.path().to_path_buf());
            }
            Part::Parquet(file) => {
                let number = self.tables.len() as u32;
                file.locate(&mut |id, row| note(id, PictureLocation::InTable { table: number, row }))?;
                self.tables.push(RowBlocks::open(file.clone())?);
            }
        }
        Ok(())
    }

    /// How many of the examples have a picture.
    pub fn n_found(&self) -> usize {
        self.places.iter().flatten().count()
    }

    /// Whether there is a picture of the example at this position.
    pub fn has(&self, example: usize) -> bool {
        self.places.get(example).is_some_and(Option::is_some)
    }

    /// The encoded picture of the example at this position; none if there is none.
    pub fn read(&self, example: usize) -> Result<Option<Vec<u8>>> {
        match self.places.get(example) {
            None | Some(None) => Ok(None),
            Some(Some(PictureLocation::File(path))) => read_file(path).map(Some),
            Some(Some(PictureLocation::InTar { tar, offset, len })) => {
                read_piece(&self.tars[*tar as usize], *offset, *len).map(Some)
            }
            Some(Some(PictureLocation::InTable { table, row })) => {
                self.tables[*table as usize].read(*row).map(Some)
            }
        }
    }
}

/// A byte range of a file.
fn read_piece(path: &Path, offset: u64, len: u64) -> Result<Vec<u8>> {
    if len > MAX_IMAGE_BYTES {
        return Err(too_large(path, format!("byte {offset}"), len));
    }
    let mut file = open_regular(path)?;
    let mut bytes = Vec::new();
    let read = file.seek(SeekFrom::Start(offset)).and_then(|_| file.take(len).read_to_end(&mut bytes));
    read.map_err(DataError::io("read", path))?;
    if bytes.len() as u64 != len {
        let found = format!("{} bytes", bytes.len());
        return Err(DataError::malformed(path, format!("byte {offset}"), format!("{len} bytes"), found));
    }
    Ok(bytes)
}

#[cfg(test)]
#[path = "picture_files_tests.rs"]
mod tests;
