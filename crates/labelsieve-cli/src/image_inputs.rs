//! `--images` and what belongs to it, as every command spells it.

use std::path::PathBuf;

use anyhow::Result;
use labelsieve_data::images::{Extent, ImageColumns, ImageResult, ImageSource, RowFilter};
use labelsieve_vision::images::{
    Cause, Dataset, DatasetOptions, Encoded, OnDamage, Skipped, Storage, Unreadable,
};
use serde::Serialize;

use crate::hint::user_error;
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

    #[command(flatten)]
    #[serde(flatten)]
    pub damage: DamageArguments,
}

/// What to do about images and files that cannot be read.
#[derive(clap::Args, Clone, Copy, Debug, Default, Serialize)]
pub struct DamageArguments {
    /// Stop at the first image that cannot be read or decoded, and at the first damaged .parquet or .tar file, instead of
    /// listing what is missing
    #[arg(long)]
    pub strict: bool,
}

impl DamageArguments {
    /// Refuses an image that was skipped for damage, if that is what the user wants.
    pub fn check(self, skipped: &[Skipped]) -> Result<()> {
        match skipped.iter().find(|skipped| skipped.cause != Cause::NotWanted) {
            Some(skipped) if self.strict => Err(user_error(
                format!("cannot read `{}`: {}", skipped.id, skipped.reason),
                "repair or remove the file, or leave out --strict to go on without it",
            )),
            _ => Ok(()),
        }
    }

    pub fn on_damage(self) -> OnDamage {
        if self.strict { OnDamage::Stop } else { OnDamage::Skip }
    }
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
        Err(error) => {
            let cause = if error.extent == Extent::Image { Cause::BadImage } else { Cause::BadFile };
            let bytes = Err(Unreadable { reason: error.to_string(), cause });
            Encoded { label: None, bytes, id: error.id }
        }
    }
}

/// Whether this stands for the unreadable rest of a file, whose images nobody knows.
pub fn is_bad_file(image: &Encoded) -> bool {
    image.bytes.as_ref().is_err_and(|bad| bad.cause == Cause::BadFile)
}

/// Decodes all images of a source that have a class (one of `classes`, if given) for a network that sees `side` pixels,
/// and says what was left out.
pub fn decode_all(
    source: &ImageSource,
    classes: Option<Vec<String>>,
    side: usize,
    damage: DamageArguments,
    printer: &Printer,
) -> Result<Dataset> {
    let progress = printer.progress(source.len_hint().unwrap_or(0) as u64, "images");
    progress.set_message("decoding");
    let counter = progress.clone();
    // Random crops are taken from images a little larger than what the network sees.
    let storage = Storage::ShorterSide(side * 8 / 7);
    let (size, on_damage) = ((side, side), damage.on_damage());
    let options = DatasetOptions { classes, storage, size, on_damage, ..DatasetOptions::default() };
    let dataset = Dataset::decode(source.images()?.map(encoded).inspect(|_| counter.inc(1)), &options);
    progress.finish_and_clear();
    damage.check(dataset.skipped())?;
    warn_of_skipped(dataset.skipped(), printer);
    Ok(dataset)
}

/// Says which images were left out, and why: all damaged files, the first few images, and how many.
pub fn warn_of_skipped(skipped: &[Skipped], printer: &Printer) {
    const SHOWN: usize = 5;
    warn_of_bad_files(skipped, printer);
    let images: Vec<&Skipped> = skipped.iter().filter(|skipped| skipped.cause != Cause::BadFile).collect();
    for skipped in images.iter().take(SHOWN) {
        printer.warning(&format!("left out `{}`: {}", skipped.id, skipped.reason));
    }
    if images.len() > SHOWN {
        printer.warning(&format!("left out {} images in all", images.len()));
    }
}

/// Says which files are damaged, each with how much of it was not read: more may be missing than anybody can count.
pub fn warn_of_bad_files(skipped: &[Skipped], printer: &Printer) {
    for skipped in skipped.iter().filter(|skipped| skipped.cause == Cause::BadFile) {
        printer.warning(&format!("`{}` was not read to its end: {}", skipped.id, skipped.reason));
    }
}
