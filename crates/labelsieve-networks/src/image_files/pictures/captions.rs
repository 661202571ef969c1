//! The captions of examples: from tables of their own, or from beside their pictures.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use labelsieve_files::Result;
use labelsieve_matching::text::{find_metadata, has_captions, read_captions};

use super::{FoundSources, PictureSources, is_folder_of_files};
use crate::image_files::{ImageSource, read_tar_captions};

/// Longer captions are cut.
const MAX_CAPTION_CHARS: usize = 300;

pub(super) fn read(
    sources: &PictureSources,
    wanted: &HashSet<&str>,
    found: &FoundSources,
) -> Result<HashMap<String, String>> {
    let mut captions = uncut(sources, wanted, found)?;
    captions.values_mut().for_each(shorten);
    Ok(captions)
}

fn uncut(
    sources: &PictureSources,
    wanted: &HashSet<&str>,
    FoundSources { files, streams }: &FoundSources,
) -> Result<HashMap<String, String>> {
    let is_wanted = |id: &str| wanted.contains(id);
    if !sources.texts.is_empty() {
        return read_captions(&sources.texts, &sources.text_columns(None), &is_wanted);
    }
    let mut captions = HashMap::new();
    let mut without: Option<PathBuf> = None;
    for folder in sources.images.iter().filter(|input| is_folder_of_files(input)) {
        let Some(table) = find_metadata(folder) else { continue };
        let columns = sources.text_columns(Some("file_name"));
        if !has_captions(&table, &columns)? {
            without = without.or(Some(table));
            continue;
        }
        let shown = files.below(folder);
        let of_file = |name: &str| match sources.id_column {
            Some(_) => wanted.contains(name),
            None => shown.contains_key(Path::new(name)),
        };
        for (name, caption) in read_captions(&[table], &columns, &of_file)? {
            let id = match sources.id_column {
                Some(_) => Some(name.as_str()),
                None => shown.get(Path::new(&name)).copied(),
            };
            captions.extend(id.map(|id| (id.to_owned(), caption)));
        }
    }
    for path in streams.iter().flat_map(ImageSource::paths).filter(|path| path.is_file()) {
        let columns = sources.text_columns(None);
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("tar") => {
                let id = sources.id_column.as_deref();
                let texts = &sources.text_columns;
                captions.extend(read_tar_captions(path, id, texts, &is_wanted)?);
            }
            Some("parquet") if has_captions(path, &columns)? => {
                captions.extend(read_captions(&[path.to_path_buf()], &columns, &is_wanted)?);
            }
            Some("parquet") => without = without.or(Some(path.to_path_buf())),
            _ => (),
        }
    }
    if let (true, false, Some(table)) = (captions.is_empty(), sources.text_columns.is_empty(), without) {
        read_captions(&[table], &sources.text_columns(None), &is_wanted)?; // names the missing column
    }
    Ok(captions)
}

fn shorten(caption: &mut String) {
    if let Some((end, _)) = caption.char_indices().nth(MAX_CAPTION_CHARS) {
        caption.truncate(end);
        caption.push('…');
    }
}
