//! `labelsieve-bench mini-imagenet`: mini-ImageNet as a photo set that `labelsieve-bench photos` reads.
//!
//! The lists and pickles assign classes to training, validation and test, but do not split the photos of a class. Here the last sixth
//! of a training class are test photos; of other classes it is the last half, from which the queries of trials are drawn, while clean
//! examples come from the first half.

mod source;

use std::collections::HashMap;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use image::{ImageFormat, RgbImage};
use labelsieve_files::work::outputs::Files;
use labelsieve_files::work::{Error, Monitor, Result, option, words};
use labelsieve_files::{DataError, counted};
use labelsieve_networks::image_files::{PhotoRow, PhotoWriter};
use serde::Serialize;

use self::source::{MiniImage, MiniImageNet as Source, MiniPart, MiniPhoto};
use crate::{COMMON, output};

/// Make a photo set of mini-ImageNet for `labelsieve-bench photos`
#[derive(Args)]
pub struct MiniImageNet {
    /// Folder with train.csv, val.csv and test.csv (filename,label), or with a pickle for each
    #[arg(long, value_name = "DIR")]
    splits: PathBuf,

    /// Folder with the photos that the lists name, or with ImageNet's class folders
    #[arg(long, value_name = "DIR")]
    images: Option<PathBuf>,

    /// Output file (.parquet)
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Print the result as JSON
    #[arg(long, help_heading = COMMON, display_order = 1002)]
    json: bool,
}

/// The size of the written photo set.
#[derive(Serialize)]
struct PhotoSetSize {
    n_photos: usize,
    base_classes: usize,
    validation_classes: usize,
    novel_classes: usize,
}

/// Photos in memory at a time.
const BLOCK: usize = 600;

impl MiniImageNet {
    pub(crate) fn run(&self, monitor: &dyn Monitor, out: &mut dyn Write) -> Result<()> {
        Files::default().writes([&self.output]).check()?;
        let lists = MiniPart::ALL.iter().any(|(part, _)| part.has_list(&self.splits));
        if lists && self.images.is_none() {
            return Err(Error::input(
                format!("`{}` has lists of photos, but the photos are missing", self.splits.display()),
                words!["give the folder of the photos, or ImageNet's class folders, with ", option("images")],
            ));
        }
        let source = Source::open(&self.splits, self.images.as_deref());
        let progress = monitor.progress(MiniPart::ALL.iter().map(|(_, n)| *n as u64).sum(), "classes");
        let mut writer = PhotoWriter::create(&self.output)?;
        let mut part_of: HashMap<String, MiniPart> = HashMap::new();
        let mut counts = [0; 3];
        let mut n_photos = 0;
        for (place, (part, expected)) in MiniPart::ALL.into_iter().enumerate() {
            let photos = class_by_class(&source, part, &mut |class, photos| {
                if let Some(other) = part_of.insert(class.to_owned(), part) {
                    return Err(DataError::malformed(
                        &self.splits,
                        format!("class `{class}`"),
                        "one part for each class",
                        format!("{} and {}", role(other), role(part)),
                    ));
                }
                counts[place] += 1;
                let rows = rows(part, class, photos);
                n_photos += rows.len();
                progress.inc(1);
                rows.chunks(BLOCK).try_for_each(|rows| writer.write(rows))
            });
            let list = photos?;
            if counts[place] == 0 {
                return Err(empty_part(part, &list));
            }
            if counts[place] != expected {
                let found = counted(counts[place], "class");
                monitor.warning(&format!("{}: {found}, but mini-ImageNet has {expected}", role(part)));
            }
        }
        writer.finish()?;
        progress.finish();
        let [base_classes, validation_classes, novel_classes] = counts;
        let size = PhotoSetSize { n_photos, base_classes, validation_classes, novel_classes };
        if self.json {
            return output::json(out, "mini-imagenet", &size);
        }
        monitor.note(&format!(
            "{} of {base_classes} base, {validation_classes} validation and {novel_classes} novel classes written to `{}`",
            counted(n_photos, "photo"),
            self.output.display()
        ));
        Ok(())
    }
}

fn empty_part(part: MiniPart, list: &Path) -> Error {
    Error::input(
        format!("`{}`: expected photos of {} classes, found none", list.display(), role(part)),
        "check that the list or pickle is the one of this part and complete",
    )
}

/// Passes the photos of a part to `each`, one class at a time; returns the file that listed them.
fn class_by_class(
    source: &Source,
    part: MiniPart,
    each: &mut dyn FnMut(&str, Vec<MiniPhoto>) -> labelsieve_files::Result<()>,
) -> Result<PathBuf> {
    let mut class: Vec<MiniPhoto> = Vec::new();
    let list = source.photos(part, &mut |photo| {
        if class.first().is_some_and(|first| first.class != photo.class) {
            let done = std::mem::take(&mut class);
            each(&done[0].class.clone(), done)?;
        }
        class.push(photo);
        Ok(())
    })?;
    if let Some(name) = class.first().map(|photo| photo.class.clone()) {
        each(&name, class)?;
    }
    Ok(list)
}

fn role(part: MiniPart) -> &'static str {
    match part {
        MiniPart::Train => "base",
        MiniPart::Validation => "validation",
        MiniPart::Test => "novel",
    }
}

/// The photos of a class with their splits.
fn rows(part: MiniPart, class: &str, photos: Vec<MiniPhoto>) -> Vec<PhotoRow> {
    let n_train = match part {
        MiniPart::Train => photos.len() - photos.len() / 6,
        MiniPart::Validation | MiniPart::Test => photos.len().div_ceil(2),
    };
    let row = |(place, photo): (usize, MiniPhoto)| PhotoRow {
        id: photo.id,
        class: class.to_owned(),
        title: String::new(),
        role: role(part).to_owned(),
        split: if place < n_train { "train" } else { "test" }.to_owned(),
        image: encoded(photo.image),
    };
    photos.into_iter().enumerate().map(row).collect()
}

/// The image file; raw pixels become PNG, which is lossless.
fn encoded(image: MiniImage) -> Vec<u8> {
    match image {
        MiniImage::Encoded(bytes) => bytes,
        MiniImage::Pixels { height, width, rgb } => {
            let mut bytes = Cursor::new(Vec::new());
            let image =
                RgbImage::from_raw(width as u32, height as u32, rgb).expect("height × width × 3 bytes");
            image.write_to(&mut bytes, ImageFormat::Png).expect("writing to memory cannot fail");
            bytes.into_inner()
        }
    }
}
