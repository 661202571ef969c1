//! Passes images from files to the decoders, and warns about unreadable ones.

use std::path::PathBuf;

use labelsieve_files::work::{Error, Monitor, Result, option, resume, words};
use serde::Serialize;

use crate::image_files::{Extent, ImageColumns, ImageResult, ImageSource};
use crate::images::{Cause, Dataset, DatasetOptions, Encoded, OnDamage, SkippedImage, Storage, Unreadable};

/// Where images come from.
#[derive(Clone, Debug, Serialize)]
pub struct ImageFiles {
    /// Folders, `.parquet` files with image bytes, `.tar` files, image files, or patterns of these.
    #[serde(serialize_with = "resume::debug")]
    pub sources: Vec<PathBuf>,
    /// The columns to read and the row filters.
    #[serde(serialize_with = "resume::debug")]
    pub columns: ImageColumns,
    /// How images and files that cannot be read are handled.
    #[serde(serialize_with = "resume::debug")]
    pub on_damage: OnDamage,
}

impl ImageFiles {
    /// Looks at all sources.
    pub fn open(&self) -> Result<ImageSource> {
        Ok(ImageSource::open(&self.sources, &self.columns)?)
    }
}

/// Fails if an image was skipped because of damage and `on_damage` is [`OnDamage::Stop`].
pub fn check_damage(on_damage: OnDamage, skipped: &[SkippedImage]) -> Result<()> {
    match skipped.iter().find(|skipped| skipped.cause != Cause::NotWanted) {
        Some(skipped) if on_damage == OnDamage::Stop => Err(Error::input(
            format!("cannot read `{}`: {}", skipped.id, skipped.reason),
            words!["repair or remove the file, or drop ", option("strict"), " to skip it"],
        )),
        _ => Ok(()),
    }
}

/// An image as the decoders take it.
pub fn encoded(image: ImageResult) -> Encoded {
    match image {
        Ok(image) => Encoded { id: image.id, label: image.label, bytes: Ok(image.bytes) },
        Err(error) => {
            let cause = if error.extent == Extent::Image { Cause::BadImage } else { Cause::BadFile };
            let bytes = Err(Unreadable { reason: error.to_string(), cause });
            Encoded { label: None, bytes, id: error.id }
        }
    }
}

/// Whether this is the unreadable rest of a file, with an unknown number of images.
pub fn is_bad_file(image: &Encoded) -> bool {
    image.bytes.as_ref().is_err_and(|bad| bad.cause == Cause::BadFile)
}

/// Decodes all images of a source that have a class (one of `classes`, if given) for a network of `side` pixels, and warns
/// about the others.
pub fn decode_all(
    source: &ImageSource,
    classes: Option<Vec<String>>,
    side: usize,
    on_damage: OnDamage,
    monitor: &dyn Monitor,
) -> Result<Dataset> {
    let progress = monitor.progress(source.len_hint().unwrap_or(0) as u64, "images");
    progress.set_message("decoding");
    let counter = progress.clone();
    // Random crops are taken from images a little larger than what the network sees.
    let storage = Storage::ShorterSide(side * 8 / 7);
    let size = (side, side);
    let options = DatasetOptions { classes, storage, size, on_damage, ..DatasetOptions::default() };
    let dataset = Dataset::decode(source.images()?.map(encoded).inspect(|_| counter.inc(1)), &options);
    progress.finish();
    check_damage(on_damage, dataset.skipped())?;
    warn_of_skipped(dataset.skipped(), monitor);
    Ok(dataset)
}

/// Warns about skipped images: all damaged files, the first few images, and the total.
pub fn warn_of_skipped(skipped: &[SkippedImage], monitor: &dyn Monitor) {
    const SHOWN: usize = 5;
    warn_of_bad_files(skipped, monitor);
    let images: Vec<&SkippedImage> =
        skipped.iter().filter(|skipped| skipped.cause != Cause::BadFile).collect();
    for skipped in images.iter().take(SHOWN) {
        monitor.warning(&format!("skipped `{}`: {}", skipped.id, skipped.reason));
    }
    if images.len() > SHOWN {
        monitor.warning(&format!("skipped {} images in total", images.len()));
    }
}

/// Warns about damaged files, each with how much of it was not read: the number of missing images is unknown.
pub fn warn_of_bad_files(skipped: &[SkippedImage], monitor: &dyn Monitor) {
    for skipped in skipped.iter().filter(|skipped| skipped.cause == Cause::BadFile) {
        monitor.warning(&format!("`{}` was not read completely: {}", skipped.id, skipped.reason));
    }
}
