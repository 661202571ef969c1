//! `--images` and what belongs to it, as every command spells it.

use std::path::PathBuf;

use anyhow::Result;
use labelsieve_data::images::{ImageColumns, ImageResult, ImageSource, RowFilter};
use labelsieve_vision::images::{Dataset, DatasetOptions, Encoded, Storage};
use serde::Serialize;

use crate::printer::Printer;
use crate::resume;

/// Where images come from.
#[derive(clap::Args, Clone, Debug, Serialize)]
pub struct ImageArguments {
    /// Images: folders (with metadata.csv, .jsonl or .parquet, or one folder per class), .parquet files with image bytes,
    /// webdataset or img2dataset .tar files, image files, or patterns of these
    #[arg(long, value_name = "SOURCE", required = true, num_args = 1..)]
    #[serde(serialize_with = "resume::debug")]
    pub images: Vec<PathBuf>,

    /// Column of the image bytes; in a tar, the ending of the image's name [default: image, img, jpg or bytes]
    #[arg(long, value_name = "NAME")]
    pub image_column: Option<String>,

    /// Column of the name of each image [default: id, key, uid, image_path or file_name]
    #[arg(long, value_name = "NAME")]
    pub id_column: Option<String>,

    /// Column of the class; in a tar, a key of the JSON files or the ending of a text file [default: class or label]
    #[arg(long, value_name = "NAME")]
    pub label_column: Option<String>,

    /// Only images whose column has this value, or one of several: role=base, split=train,val; may be repeated
    #[arg(long = "where", value_name = "COLUMN=VALUE")]
    #[serde(serialize_with = "resume::debug")]
    pub filters: Vec<RowFilter>,
}

impl ImageArguments {
    /// Looks at all sources.
    pub fn open(&self) -> Result<ImageSource> {
        let columns = ImageColumns {
            image: self.image_column.clone(),
            id: self.id_column.clone(),
            label: self.label_column.clone(),
            filters: self.filters.clone(),
        };
        Ok(ImageSource::open(&self.images, &columns)?)
    }
}

/// An image as the decoders take it.
pub fn encoded(image: ImageResult) -> Encoded {
    match image {
        Ok(image) => Encoded { id: image.id, label: image.label, bytes: Ok(image.bytes) },
        Err(error) => Encoded { label: None, bytes: Err(error.error.to_string()), id: error.id },
    }
}

/// Decodes all images of a source that have a class (one of `classes`, if given) for a network that sees `side` pixels,
/// and says what was left out.
pub fn decode_all(
    source: &ImageSource,
    classes: Option<Vec<String>>,
    side: usize,
    printer: &Printer,
) -> Result<Dataset> {
    let progress = printer.progress(source.len_hint().unwrap_or(0) as u64, "images");
    progress.set_message("decoding");
    let counter = progress.clone();
    // Random crops are taken from images a little larger than what the network sees.
    let storage = Storage::ShorterSide(side * 8 / 7);
    let options = DatasetOptions { classes, storage, ..DatasetOptions::default() };
    let dataset = Dataset::decode(source.images()?.map(encoded).inspect(|_| counter.inc(1)), &options);
    progress.finish_and_clear();
    warn_of_skipped(&dataset, printer);
    Ok(dataset)
}

/// Says which images were left out, and why: the first few, and how many.
pub fn warn_of_skipped(dataset: &Dataset, printer: &Printer) {
    const SHOWN: usize = 5;
    for skipped in dataset.skipped().iter().take(SHOWN) {
        printer.warning(&format!("left out `{}`: {}", skipped.id, skipped.reason));
    }
    if dataset.skipped().len() > SHOWN {
        printer.warning(&format!("left out {} images in all", dataset.skipped().len()));
    }
}
