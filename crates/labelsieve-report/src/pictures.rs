//! Where pictures and captions come from: any number of folders, Parquet files and tars.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use labelsieve_data::Result;
use labelsieve_data::images::ImageSource;
pub use labelsieve_data::images::PictureSources as Pictures;

use crate::thumbnails::{Block, Thumbnails};

/// Looks for the pictures and captions of `wanted`, and calls `progress` with the number of pictures as they are found.
pub(crate) fn load(
    pictures: &Pictures,
    wanted: &HashSet<&str>,
    progress: &mut dyn FnMut(usize),
) -> Result<Thumbnails> {
    let mut found = Thumbnails::default();
    let sources = pictures.find(wanted)?;
    for source in &sources.streams {
        stream(source, wanted, &mut found, progress)?;
    }
    // A file whose path is the id counts as a further source; a weaker match is used only if there is nothing else.
    let files = &sources.files;
    let both = files.exact().filter(|id| found.by_id.contains_key(*id)).map(str::to_owned);
    found.ambiguous.extend(both.chain(files.ambiguous.iter().cloned()));
    let read = files.paths().filter(|(id, _)| !found.by_id.contains_key(*id));
    let read: Vec<(String, PathBuf)> = read.map(|(id, path)| (id.to_owned(), path.to_path_buf())).collect();
    found.read_files(&read, progress);
    found.captions = pictures.captions(wanted, &sources)?;
    Ok(found)
}

/// Shrinks the wanted pictures of a source that has to be read from start to end.
fn stream(
    source: &ImageSource,
    wanted: &HashSet<&str>,
    found: &mut Thumbnails,
    progress: &mut dyn FnMut(usize),
) -> Result<()> {
    let (mut block, mut seen) = (Block::default(), BTreeSet::new());
    for image in source.images()? {
        match image {
            Ok(image) if wanted.contains(image.id.as_str()) => {
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

#[cfg(test)]
#[path = "pictures_tests.rs"]
mod tests;
