//! Reads encoded images from all supported layouts, one after the other, with only a few in memory.
//!
//! ```text
//! folder (ImageFolder) │ Parquet with image bytes │ webdataset and img2dataset tars ──► ImageSource ──► EncodedImage
//! ```
//!
//! Nothing here decodes an image. The order is fixed, so that a position in the stream means the same image in every
//! run: [`ImageSource::fingerprint`] says whether the files are still the same.

mod filter;
mod folder;
mod folder_metadata;
mod image_tables;
mod parquet_images;
mod pictures;
mod source;
mod stream;
mod tar_captions;
mod tars;

use std::path::Path;

use labelsieve_files::{DataError, Unread};

pub use filter::RowFilter;
pub use image_tables::{ImageRow, ImageTableWriter, PhotoRow, PhotoWriter, ThumbnailRow, ThumbnailWriter};
pub use pictures::{FolderFiles, FoundSources, PictureFiles, PictureSources};
pub use source::ImageSource;
pub use stream::ImageStream;
pub use tar_captions::read_tar_captions;

/// An image as it is stored, not yet decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedImage {
    /// Its name: the path below the folder, the value of the id column, or the key in a tar.
    pub id: String,
    /// Its class, if the source says so.
    pub label: Option<String>,
    /// JPEG, PNG, …, or anything that claims to be.
    pub bytes: Vec<u8>,
}

/// An image that could not be read, or the unreadable rest of a file. Reading continues after it.
#[derive(Debug, thiserror::Error)]
#[error("{error}{extent}")]
pub struct ImageError {
    /// The image's id, or the file's name where more than one image is affected.
    pub id: String,
    /// The error.
    pub error: DataError,
    /// How much it affects.
    pub extent: Extent,
}

/// How much an [`ImageError`] affects, displayed at the end of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// One image.
    Image,
    /// A file: how much of it was not read, where that is known and the message does not say so itself.
    File(Option<Unread>),
}

impl std::fmt::Display for Extent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Extent::File(Some(unread)) => write!(f, "; {unread}"),
            Extent::File(None) | Extent::Image => Ok(()),
        }
    }
}

/// An item of an [`ImageStream`].
pub type ImageResult = Result<EncodedImage, ImageError>;

/// The columns to read; by default, those with common names.
#[derive(Clone, Debug, Default)]
pub struct ImageColumns {
    /// The Parquet column of the bytes: `image`, `img`, `jpg`, `bytes`, or the only one that can hold images; in a tar,
    /// the ending of the image's name.
    pub image: Option<String>,
    /// The column of the id: `id`, `key`, `uid`, `image_path` or `file_name`.
    pub id: Option<String>,
    /// The column of the class, `class` or `label`; in a tar, a key of the JSON file or an ending such as `cls`.
    pub label: Option<String>,
    /// Rows must pass all of them.
    pub filters: Vec<RowFilter>,
}

/// Common names of a column of classes.
const LABEL_NAMES: [&str; 2] = ["class", "label"];

/// Encoded images larger than this are not read: photos of a hundred megapixels are smaller, and a few of this size fit in
/// memory.
const MAX_IMAGE_BYTES: u64 = 128 << 20;

/// The error for an encoded image of `size` bytes at `place`.
fn too_large(path: &Path, place: impl Into<String>, size: u64) -> DataError {
    DataError::malformed(path, place, format!("at most {MAX_IMAGE_BYTES} bytes"), size.to_string())
}
