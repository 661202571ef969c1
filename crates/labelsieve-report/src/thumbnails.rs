//! Small pictures of examples: shrunk, ready for a page.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Cursor;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use image::codecs::jpeg::JpegEncoder;
use image::{DynamicImage, ImageFormat, ImageReader, Limits};
use rayon::prelude::*;

/// Longest side of a thumbnail.
const SIDE: u32 = 96;
/// Smaller files are used unchanged, if they are not larger in pixels either.
const SMALL_FILE: usize = 12 << 10;
/// Larger files are not opened: photos are smaller.
const MAX_FILE_BYTES: u64 = 128 << 20;
/// Pictures decoded at a time, unless that takes more than [`MAX_BLOCK_BYTES`].
const MAX_BLOCK: usize = 256;
/// The most memory for the pictures of a block, encoded and decoded, on all threads together.
const MAX_BLOCK_BYTES: u64 = 256 << 20;
/// The most memory for one picture, which may be in a block of its own.
const MAX_PICTURE_BYTES: u64 = 1 << 30;
const QUALITY: u8 = 80;

/// The pictures that were found, and those that could not be used.
#[derive(Debug, Default)]
pub(crate) struct Thumbnails {
    /// Data URIs: `data:image/jpeg;base64,…`
    pub(crate) by_id: HashMap<String, String>,
    /// Captions of examples, shown under their pictures or in place of missing ones.
    pub(crate) captions: HashMap<String, String>,
    /// Files of pictures, for links; none for those inside Parquet files and tars.
    pub(crate) files: BTreeMap<String, PathBuf>,
    /// Ids that name pictures in several places; one of them is shown.
    pub(crate) ambiguous: BTreeSet<String>,
    /// Ids of pictures that could not be read, with the reason.
    pub(crate) unreadable: Vec<(String, String)>,
}

impl Thumbnails {
    /// Shrinks a block of encoded pictures on all threads.
    pub(crate) fn add(&mut self, block: &mut PictureBlock) {
        let pictures = std::mem::take(block).pictures;
        let shrunk: Vec<_> = pictures.into_par_iter().map(|(id, bytes)| (id, shrink(&bytes))).collect();
        for (id, uri) in shrunk {
            match uri {
                Ok(uri) => drop(self.by_id.insert(id, uri)),
                Err(reason) => self.unreadable.push((id, reason)),
            }
        }
    }

    /// Adds a picture to the block, and shrinks the block before it takes too much memory.
    pub(crate) fn push(
        &mut self,
        block: &mut PictureBlock,
        id: String,
        bytes: Vec<u8>,
        progress: &mut dyn FnMut(usize),
    ) {
        if bytes.len() as u64 > MAX_FILE_BYTES {
            self.unreadable.push((id, too_long(bytes.len() as u64)));
            return;
        }
        if block.is_full_for(bytes.len() as u64 + decoded_bytes(&bytes)) {
            self.add(block);
            progress(self.by_id.len());
        }
        block.push(id, bytes);
    }

    /// Reads and shrinks the files of examples, and calls `progress` with the number of pictures.
    pub(crate) fn read_files(&mut self, files: &[(String, PathBuf)], progress: &mut dyn FnMut(usize)) {
        let mut block = PictureBlock::default();
        for (id, path) in files {
            let length = match std::fs::metadata(path) {
                Ok(metadata) if metadata.len() > MAX_FILE_BYTES => Err(too_long(metadata.len())),
                Ok(metadata) => Ok(metadata.len()),
                Err(error) => Err(error.to_string()),
            };
            if block.is_full_for(length.as_ref().map_or(0, |length| *length)) {
                self.add(&mut block);
                progress(self.by_id.len());
            }
            match length.and_then(|_| std::fs::read(path).map_err(|error| error.to_string())) {
                Ok(bytes) => self.push(&mut block, id.clone(), bytes, progress),
                Err(reason) => self.unreadable.push((id.clone(), reason)),
            }
        }
        self.add(&mut block);
        progress(self.by_id.len());
    }
}

/// Encoded pictures that are decoded together.
#[derive(Default)]
pub(crate) struct PictureBlock {
    pictures: Vec<(String, Vec<u8>)>,
    /// Their memory, encoded and decoded.
    bytes: u64,
}

impl PictureBlock {
    fn push(&mut self, id: String, bytes: Vec<u8>) {
        self.bytes += bytes.len() as u64 + decoded_bytes(&bytes).min(MAX_PICTURE_BYTES);
        self.pictures.push((id, bytes));
    }

    /// Whether a picture of this size would exceed the limit.
    fn is_full_for(&self, bytes: u64) -> bool {
        let is_empty = self.pictures.is_empty();
        self.pictures.len() == MAX_BLOCK || (!is_empty && self.bytes.saturating_add(bytes) > MAX_BLOCK_BYTES)
    }
}

/// The memory needed to decode a picture, from its header: the decoder's result and a copy for its conversion.
fn decoded_bytes(bytes: &[u8]) -> u64 {
    let dimensions = image::guess_format(bytes)
        .ok()
        .and_then(|format| ImageReader::with_format(Cursor::new(bytes), format).into_dimensions().ok());
    dimensions.map_or(0, |(width, height)| u64::from(width).saturating_mul(height.into()).saturating_mul(12))
}

fn too_long(length: u64) -> String {
    format!("expected at most {MAX_FILE_BYTES} bytes, found {length}")
}

/// A data URI of at most [`SIDE`] pixels a side, or the reason why not.
fn shrink(bytes: &[u8]) -> Result<String, String> {
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
        limits.max_alloc = Some(MAX_PICTURE_BYTES);
        reader.limits(limits);
        reader
    };
    let (width, height) = reader().into_dimensions().map_err(|error| error.to_string())?;
    let needed = decoded_bytes(bytes);
    if needed > MAX_PICTURE_BYTES {
        return Err(format!(
            "expected at most {MAX_PICTURE_BYTES} bytes for decoding, found {width}×{height} pixels, which need {needed}"
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

/// JPEG has no transparency.
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
    fn what_is_not_a_picture_is_reported() {
        assert_eq!(shrink(b"<svg onload=alert(1)>").unwrap_err(), "neither JPEG, PNG, WebP nor GIF");
        let whole = encoded(RgbImage::new(200, 200), ImageFormat::Png);
        assert!(shrink(&whole[..60]).is_err());
        // A small file that claims to be enormous.
        let mut bomb = whole.clone();
        bomb[16..24].copy_from_slice(&[0, 0, 255, 255, 0, 0, 255, 255]);
        assert!(shrink(&bomb).is_err());
    }
}
