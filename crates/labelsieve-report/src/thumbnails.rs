//! Small pictures of examples: found in a folder or a Parquet file, shrunk, ready for a page.

use std::collections::{HashMap, HashSet};
use std::io::Cursor;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use image::codecs::jpeg::JpegEncoder;
use image::{DynamicImage, ImageFormat, ImageReader, Limits};
use labelsieve_data::{DataError, Result, for_each_image};
use rayon::prelude::*;

/// Longest side of a thumbnail.
const SIDE: u32 = 96;
/// Smaller files are taken as they are, if they are no larger in pixels either.
const SMALL_FILE: usize = 12 << 10;
/// Larger files are not opened: no photo has so many bytes.
const LARGEST_FILE: u64 = 128 << 20;
/// Pictures decoded at a time, unless that takes more than [`BLOCK_BYTES`].
const BLOCK: usize = 256;
/// The most memory for the pictures of a block, encoded and decoded, on all threads together.
const BLOCK_BYTES: u64 = 256 << 20;
/// The most memory for one picture, which may be in a block of its own.
const LARGEST_PICTURE: u64 = 1 << 30;
const QUALITY: u8 = 80;

/// A picture for a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Thumbnail {
    /// `data:image/jpeg;base64,…`
    pub(crate) uri: String,
    pub(crate) title: Option<String>,
}

/// The pictures that were found, and those that could not be used.
#[derive(Debug, Default)]
pub(crate) struct Thumbnails {
    pub(crate) by_id: HashMap<String, Thumbnail>,
    /// Ids of files that are no readable pictures, with the reason.
    pub(crate) unreadable: Vec<(String, String)>,
}

impl Thumbnails {
    /// Looks for the pictures of `wanted` in a folder or a Parquet file, and calls `progress` with their number as they are
    /// found.
    pub(crate) fn load(
        source: &Path,
        wanted: &HashSet<&str>,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Thumbnails> {
        if source.is_dir() {
            from_folder(source, wanted, progress)
        } else {
            from_parquet(source, wanted, progress)
        }
    }

    /// Shrinks a block of encoded pictures on all threads.
    fn add(&mut self, block: &mut Block) {
        let pictures = std::mem::take(block).pictures;
        let shrunk: Vec<_> =
            pictures.into_par_iter().map(|(id, bytes, title)| (id, shrink(&bytes), title)).collect();
        for (id, uri, title) in shrunk {
            match uri {
                Ok(uri) => drop(self.by_id.insert(id, Thumbnail { uri, title })),
                Err(reason) => self.unreadable.push((id, reason)),
            }
        }
    }
}

/// Encoded pictures that are decoded together.
#[derive(Default)]
struct Block {
    pictures: Vec<(String, Vec<u8>, Option<String>)>,
    /// What they take, encoded and decoded.
    bytes: u64,
}

impl Block {
    fn push(&mut self, id: &str, bytes: Vec<u8>, title: Option<&str>) {
        self.bytes += bytes.len() as u64 + decoded_bytes(&bytes).min(LARGEST_PICTURE);
        self.pictures.push((id.to_owned(), bytes, title.map(str::to_owned)));
    }

    /// Whether a picture of so many bytes is one too many.
    fn is_full_for(&self, bytes: u64) -> bool {
        let is_empty = self.pictures.is_empty();
        self.pictures.len() == BLOCK || (!is_empty && self.bytes.saturating_add(bytes) > BLOCK_BYTES)
    }
}

/// What decoding a picture takes, as far as its first bytes tell: the decoder's result and another for its conversion.
fn decoded_bytes(bytes: &[u8]) -> u64 {
    let dimensions = image::guess_format(bytes)
        .ok()
        .and_then(|format| ImageReader::with_format(Cursor::new(bytes), format).into_dimensions().ok());
    dimensions.map_or(0, |(width, height)| u64::from(width).saturating_mul(height.into()).saturating_mul(12))
}

fn from_parquet(path: &Path, wanted: &HashSet<&str>, progress: &mut dyn FnMut(usize)) -> Result<Thumbnails> {
    let (mut found, mut block) = (Thumbnails::default(), Block::default());
    for_each_image(path, |id, bytes, title| {
        if !wanted.contains(id) {
            return Ok(());
        }
        let length = bytes.len() as u64;
        if length > LARGEST_FILE {
            found.unreadable.push((id.to_owned(), too_long(length)));
            return Ok(());
        }
        if block.is_full_for(length + decoded_bytes(bytes)) {
            found.add(&mut block);
            progress(found.by_id.len());
        }
        block.push(id, bytes.to_vec(), title);
        Ok(())
    })?;
    found.add(&mut block);
    progress(found.by_id.len());
    Ok(found)
}

fn from_folder(folder: &Path, wanted: &HashSet<&str>, progress: &mut dyn FnMut(usize)) -> Result<Thumbnails> {
    let mut files = HashMap::new();
    find_files(folder, folder, wanted, &mut files)?;
    let mut files: Vec<(String, PathBuf)> = files.into_iter().collect();
    files.sort();
    let (mut found, mut block) = (Thumbnails::default(), Block::default());
    for (id, path) in files {
        let length = match std::fs::metadata(&path) {
            Ok(metadata) if metadata.len() > LARGEST_FILE => Err(too_long(metadata.len())),
            Ok(metadata) => Ok(metadata.len()),
            Err(error) => Err(error.to_string()),
        };
        if block.is_full_for(length.as_ref().map_or(0, |length| *length)) {
            found.add(&mut block);
            progress(found.by_id.len());
        }
        match length.and_then(|_| std::fs::read(&path).map_err(|error| error.to_string())) {
            Ok(bytes) => {
                if block.is_full_for(bytes.len() as u64 + decoded_bytes(&bytes)) {
                    found.add(&mut block);
                    progress(found.by_id.len());
                }
                block.push(&id, bytes, None);
            }
            Err(reason) => found.unreadable.push((id, reason)),
        }
    }
    found.add(&mut block);
    progress(found.by_id.len());
    Ok(found)
}

fn too_long(length: u64) -> String {
    format!("expected at most {LARGEST_FILE} bytes, found {length}")
}

/// An example is called by its path below the folder or by its file name, either with or without extension.
fn find_files(
    root: &Path,
    folder: &Path,
    wanted: &HashSet<&str>,
    files: &mut HashMap<String, PathBuf>,
) -> Result<()> {
    let entries = std::fs::read_dir(folder).map_err(DataError::io("read", folder))?;
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.map_err(DataError::io("read", folder))?.path());
    }
    paths.sort(); // so that of two files that fit, it is always the same one
    for path in paths {
        let kind = std::fs::symlink_metadata(&path).map_err(DataError::io("read", &path))?.file_type();
        if kind.is_dir() {
            find_files(root, &path, wanted, files)?;
        } else if path.is_file() {
            let below = path.strip_prefix(root).unwrap_or(&path);
            let names = [below.to_path_buf(), below.with_extension("")];
            let bare = [path.file_name(), path.file_stem()].into_iter().flatten().map(PathBuf::from);
            let id = names.into_iter().chain(bare).find_map(|name| wanted.get(name.to_str()?).copied());
            if let Some(id) = id {
                files.entry(id.to_owned()).or_insert(path);
            }
        }
    }
    Ok(())
}

/// A data URI of at most [`SIDE`] pixels a side, or why there is none.
fn shrink(bytes: &[u8]) -> std::result::Result<String, String> {
    let format = image::guess_format(bytes).map_err(|_| "neither JPEG, PNG, WebP nor GIF".to_owned())?;
    let mime = match format {
        ImageFormat::Jpeg => "image/jpeg",
        ImageFormat::Png => "image/png",
        ImageFormat::WebP => "image/webp",
        ImageFormat::Gif => "image/gif",
        other => return Err(format!("{other:?} is not supported")),
    };
    let reader = || {
        let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
        let mut limits = Limits::default();
        limits.max_alloc = Some(LARGEST_PICTURE);
        reader.limits(limits);
        reader
    };
    let (width, height) = reader().into_dimensions().map_err(|error| error.to_string())?;
    let needed = decoded_bytes(bytes);
    if needed > LARGEST_PICTURE {
        return Err(format!(
            "expected at most {LARGEST_PICTURE} bytes for decoding, found {width}×{height} pixels, which need {needed}"
        ));
    }
    let picture = reader().decode().map_err(|error| error.to_string())?;
    if bytes.len() <= SMALL_FILE && width.max(height) <= SIDE {
        return Ok(data_uri(mime, bytes));
    }
    let picture = if width.max(height) > SIDE { picture.thumbnail(SIDE, SIDE) } else { picture };
    let mut jpeg = Vec::new();
    on_white(&picture)
        .write_with_encoder(JpegEncoder::new_with_quality(&mut jpeg, QUALITY))
        .map_err(|error| error.to_string())?;
    Ok(data_uri("image/jpeg", &jpeg))
}

/// JPEG knows no transparency.
fn on_white(picture: &DynamicImage) -> DynamicImage {
    if !picture.color().has_alpha() {
        return DynamicImage::ImageRgb8(picture.to_rgb8());
    }
    let mut paper = image::RgbaImage::from_pixel(picture.width(), picture.height(), image::Rgba([255; 4]));
    image::imageops::overlay(&mut paper, &picture.to_rgba8(), 0, 0);
    DynamicImage::ImageRgb8(DynamicImage::ImageRgba8(paper).to_rgb8())
}

fn data_uri(mime: &str, bytes: &[u8]) -> String {
    format!("data:{mime};base64,{}", STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use image::{Rgb, RgbImage, Rgba, RgbaImage};

    use super::*;

    fn encoded(picture: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        picture.into().write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    fn decoded(uri: &str) -> DynamicImage {
        let (_, bytes) = uri.split_once(";base64,").unwrap();
        image::load_from_memory(&STANDARD.decode(bytes).unwrap()).unwrap()
    }

    #[test]
    fn large_pictures_shrink_and_small_ones_stay_as_they_are() {
        let large = encoded(RgbImage::from_pixel(400, 200, Rgb([10, 200, 30])), ImageFormat::Png);
        let uri = shrink(&large).unwrap();
        assert!(uri.starts_with("data:image/jpeg;base64,"));
        assert_eq!((decoded(&uri).width(), decoded(&uri).height()), (96, 48));
        let small = encoded(RgbImage::new(20, 20), ImageFormat::Png);
        assert_eq!(shrink(&small).unwrap(), data_uri("image/png", &small));
    }

    #[test]
    fn what_is_transparent_becomes_white() {
        let clear = encoded(RgbaImage::from_pixel(200, 200, Rgba([0, 0, 0, 0])), ImageFormat::Png);
        let picture = decoded(&shrink(&clear).unwrap()).to_rgb8();
        assert!(picture.pixels().all(|pixel| pixel.0.iter().all(|&value| value > 250)));
    }

    #[test]
    fn what_is_no_picture_is_said_and_no_more() {
        assert_eq!(shrink(b"<svg onload=alert(1)>").unwrap_err(), "neither JPEG, PNG, WebP nor GIF");
        let whole = encoded(RgbImage::new(200, 200), ImageFormat::Png);
        assert!(shrink(&whole[..60]).is_err());
        // A small file that claims to be enormous.
        let mut bomb = whole.clone();
        bomb[16..24].copy_from_slice(&[0, 0, 255, 255, 0, 0, 255, 255]);
        assert!(shrink(&bomb).is_err());
    }

    #[test]
    fn files_are_found_by_path_and_by_name() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("owl")).unwrap();
        let picture = encoded(RgbImage::new(9, 9), ImageFormat::Png);
        for name in ["owl/1.png", "owl/2.png", "3.png", "4.png"] {
            std::fs::write(folder.path().join(name), &picture).unwrap();
        }
        std::fs::write(folder.path().join("5.jpg"), "no picture").unwrap();
        let wanted = HashSet::from(["owl/1.png", "2", "3.png", "5", "6"]);
        let mut counts = Vec::new();
        let found = Thumbnails::load(folder.path(), &wanted, &mut |count| counts.push(count)).unwrap();
        let mut ids: Vec<&str> = found.by_id.keys().map(String::as_str).collect();
        ids.sort_unstable();
        assert_eq!(ids, ["2", "3.png", "owl/1.png"]);
        assert_eq!(counts, [3]);
        assert_eq!(found.unreadable, [("5".to_owned(), "neither JPEG, PNG, WebP nor GIF".to_owned())]);
    }
}
