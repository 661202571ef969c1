//! Pictures as a page asks for them: small ones are kept, whole ones are read again.

use std::sync::Arc;

use labelsieve_files::DataError;
use labelsieve_files::work::Result;
use labelsieve_networks::images::BrowserImage;

use super::cache::Cache;
use super::contents::Contents;

/// Longest side of a thumbnail.
const SIDE: usize = 192;
/// What kept thumbnails may take.
const MOST_BYTES: u64 = 64 << 20;

/// What there is to see of an example.
#[derive(Clone, Debug)]
pub enum Picture {
    /// An image.
    Image(Arc<BrowserImage>),
    /// Nothing: no source has a picture of it.
    None,
    /// Something that is no image, is damaged or is too large, and why.
    Undecodable(String),
}

/// Thumbnails that were asked for lately.
pub(super) struct Thumbnails(Cache<Picture>);

impl Default for Thumbnails {
    fn default() -> Thumbnails {
        Thumbnails(Cache::new(MOST_BYTES))
    }
}

impl Thumbnails {
    pub(super) fn get(&self, contents: &Contents, example: usize) -> Result<Picture> {
        if let Some(known) = self.0.get(example) {
            return Ok(known.as_ref().clone());
        }
        let picture = read(contents, example, |bytes| BrowserImage::thumbnail(bytes, SIDE))?;
        let bytes = match &picture {
            Picture::Image(image) => image.bytes.len() as u64,
            Picture::None | Picture::Undecodable(_) => 0,
        };
        self.0.add(example, Arc::new(picture.clone()), bytes + 256);
        Ok(picture)
    }
}

/// The whole picture.
pub(super) fn whole(contents: &Contents, example: usize) -> Result<Picture> {
    read(contents, example, BrowserImage::whole)
}

fn read(
    contents: &Contents,
    example: usize,
    make: impl FnOnce(Vec<u8>) -> std::result::Result<BrowserImage, labelsieve_networks::images::DecodeError>,
) -> Result<Picture> {
    match contents.pictures.read(example) {
        Ok(None) => Ok(Picture::None),
        Ok(Some(bytes)) => Ok(match make(bytes) {
            Ok(image) => Picture::Image(Arc::new(image)),
            Err(error) => Picture::Undecodable(error.to_string()),
        }),
        // It is what the file holds: asking again gives the same. All else may be over in a moment.
        Err(error @ (DataError::Malformed { .. } | DataError::Undecodable { .. })) => {
            Ok(Picture::Undecodable(error.to_string()))
        }
        Err(error) => Err(error.into()),
    }
}
