//! Where pictures and captions come from: any number of folders, Parquet files and tars.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use labelsieve_files::Result;
use labelsieve_networks::image_files::ImageSource;

pub use labelsieve_networks::image_files::PictureSources as Pictures;

use crate::thumbnails::{PictureBlock, Thumbnails};

/// Looks for the captions and files of the examples `wanted` and for the pictures of `pictured`, a part of them; calls
/// `progress` with the number of pictures as they are found.
pub(crate) fn load(
    pictures: &Pictures,
    wanted: &HashSet<&str>,
    pictured: &HashSet<&str>,
    progress: &mut dyn FnMut(usize),
) -> Result<Thumbnails> {
    let mut found = Thumbnails::default();
    let sources = pictures.find(wanted)?;
    let mut streamed = HashSet::new();
    for source in &sources.streams {
        streamed.extend(stream(source, wanted, pictured, &mut found, progress)?);
    }
    // A file whose path is the id counts as a further source; a weaker match is used only if there is nothing else.
    let files = &sources.files;
    let is_pictured = |id: &&str| pictured.contains(id);
    let both = files.exact().filter(|id| found.by_id.contains_key(*id)).map(str::to_owned);
    found.ambiguous.extend(both);
    found.ambiguous.extend(files.ambiguous.iter().filter(|id| is_pictured(&id.as_str())).cloned());
    for (id, path) in files.paths().filter(|(id, _)| !streamed.contains(*id)) {
        found.files.insert(id.to_owned(), path.to_path_buf());
    }
    let read = found.files.iter().filter(|(id, _)| is_pictured(&id.as_str()));
    let read: Vec<(String, PathBuf)> = read.map(|(id, path)| (id.clone(), path.clone())).collect();
    found.read_files(&read, progress);
    // Image files given one by one have their paths as ids.
    for path in sources.streams.iter().flat_map(ImageSource::files) {
        if let Some(id) = path.to_str().filter(|id| wanted.contains(id)) {
            found.files.insert(id.to_owned(), path.clone());
        }
    }
    found.captions = pictures.captions(wanted, &sources)?;
    Ok(found)
}

/// Shrinks the pictures of `pictured` in a source that has to be read from start to end; returns which of `wanted` it has.
fn stream(
    source: &ImageSource,
    wanted: &HashSet<&str>,
    pictured: &HashSet<&str>,
    found: &mut Thumbnails,
    progress: &mut dyn FnMut(usize),
) -> Result<Vec<String>> {
    let mut block = PictureBlock::default();
    let mut seen = BTreeSet::new();
    let mut ids = Vec::new();
    for image in source.images()? {
        match image {
            Ok(image) if pictured.contains(image.id.as_str()) => {
                ids.push(image.id.clone());
                if found.by_id.contains_key(&image.id) || !seen.insert(image.id.clone()) {
                    found.ambiguous.insert(image.id);
                    continue;
                }
                found.push(&mut block, image.id, image.bytes, progress);
            }
            Ok(image) if wanted.contains(image.id.as_str()) => ids.push(image.id),
            Ok(_) => (),
            // A picture of the page, or the rest of a file, which may have held some.
            Err(error) if pictured.contains(error.id.as_str()) || Path::new(&error.id).is_file() => {
                found.unreadable.push((error.id, error.error.to_string()));
            }
            Err(_) => (),
        }
    }
    found.add(&mut block);
    progress(found.by_id.len());
    Ok(ids)
}

#[cfg(test)]
#[path = "pictures_tests.rs"]
mod tests;
