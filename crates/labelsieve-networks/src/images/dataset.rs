//! Decoded images with their classes, in memory.

use std::collections::{BTreeSet, HashMap};

use labelsieve_numerics::random::Stream;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::augment::Augmentation;
use super::budget::Budget;
use super::decode::{DecodeLimits, decode_for};
use super::resize::{Scaler, View, resize, scaling_bytes};
use super::rgb::RgbImage;
use crate::error::{Error, Result};
use crate::learner::Batch;

/// An encoded image from a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// Its name.
    pub id: String,
    /// Its class, if known.
    pub label: Option<String>,
    /// Its bytes, or why it is unreadable.
    pub bytes: std::result::Result<Vec<u8>, Unreadable>,
}

/// Why an image is unreadable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// As a message.
    pub reason: String,
    /// Whether an image is missing, or the rest of a file.
    pub cause: Cause,
}

/// A skipped image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedImage {
    /// Its name, or that of the file.
    pub id: String,
    /// Why.
    pub reason: String,
    /// The kind of reason.
    pub cause: Cause,
}

/// Why an image was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// It is not among the wanted classes.
    NotWanted,
    /// It cannot be read or decoded.
    BadImage,
    /// Its file is damaged; more images may be missing.
    BadFile,
}

/// How images that cannot be read or decoded are handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDamage {
    /// List them and continue.
    #[default]
    Skip,
    /// Stop at the first.
    Stop,
}

/// The size at which decoded images are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Storage {
    /// Each at its own.
    #[default]
    Own,
    /// Images that are larger than this on their shorter side are scaled down to it, keeping their shape: a random crop
    /// of 224 pixels gains nothing from a photo of 4000.
    ShorterSide(usize),
}

/// How a dataset is made.
#[derive(Clone, Debug)]
pub struct DatasetOptions {
    /// How large images may be.
    pub limits: DecodeLimits,
    /// The size at which they are kept.
    pub storage: Storage,
    /// The largest height and width they will be scaled to: images that cannot be scaled to it within the limits are skipped.
    pub size: (usize, usize),
    /// Whether to stop at an unreadable image.
    pub on_damage: OnDamage,
    /// The classes, in order; images of others are skipped. By default, all classes, by name.
    pub classes: Option<Vec<String>>,
}

impl Default for DatasetOptions {
    fn default() -> DatasetOptions {
        DatasetOptions {
            limits: DecodeLimits::default(),
            storage: Storage::default(),
            size: (224, 224),
            on_damage: OnDamage::default(),
            classes: None,
        }
    }
}

/// Decoded images with their classes.
#[derive(Clone, Debug)]
pub struct Dataset {
    images: Vec<RgbImage>,
    ids: Vec<String>,
    labels: Vec<u32>,
    classes: Vec<String>,
    skipped: Vec<SkippedImage>,
}

/// Images that are decoded together.
const CHUNK: usize = 512;

/// Their bytes before they are decoded. The last may have more.
const CHUNK_BYTES: usize = 64 << 20;

/// The next images of a source: at most `most`, and no more than fit in memory.
pub(crate) fn next_chunk(source: &mut impl Iterator<Item = Encoded>, most: usize) -> Vec<Encoded> {
    let mut chunk = Vec::new();
    let mut n_bytes = 0;
    while chunk.len() < most && n_bytes < CHUNK_BYTES {
        let Some(encoded) = source.next() else { break };
        n_bytes += encoded.bytes.as_ref().map_or(0, Vec::len);
        chunk.push(encoded);
    }
    chunk
}

impl Dataset {
    /// Decodes all images in parallel, in the order of the source. Unusable images are listed in [`Dataset::skipped`].
    pub fn decode(source: impl Iterator<Item = Encoded>, options: &DatasetOptions) -> Dataset {
        let known: Option<HashMap<&str, ()>> = options
            .classes
            .as_ref()
            .map(|classes| classes.iter().map(|class| (class.as_str(), ())).collect());
        let mut kept = Vec::new();
        let mut skipped = Vec::new();
        let mut source = source;
        loop {
            let chunk = next_chunk(&mut source, CHUNK);
            if chunk.is_empty() {
                break;
            }
            let decoded: Vec<_> = chunk
                .into_par_iter()
                .map(|Encoded { id, label, bytes }| {
                    let not_wanted = |reason| (reason, Cause::NotWanted);
                    let image = bytes.map_err(|bad| (bad.reason, bad.cause)).and_then(|bytes| {
                        let label = label.ok_or_else(|| not_wanted("no label".to_owned()))?;
                        if known.as_ref().is_some_and(|known| !known.contains_key(label.as_str())) {
                            return Err(not_wanted(format!("class `{label}` is not among the chosen ones")));
                        }
                        let image = prepare(&bytes, options).map_err(|reason| (reason, Cause::BadImage))?;
                        Ok((image, label))
                    });
                    (id, image)
                })
                .collect();
            for (id, image) in decoded {
                match image {
                    Ok((image, label)) => kept.push((id, image, label)),
                    Err((reason, cause)) => skipped.push(SkippedImage { id, reason, cause }),
                }
            }
            if options.on_damage == OnDamage::Stop && skipped.iter().any(|s| s.cause != Cause::NotWanted) {
                break;
            }
        }
        let classes = options.classes.clone().unwrap_or_else(|| {
            let distinct: BTreeSet<&String> = kept.iter().map(|(_, _, label)| label).collect();
            distinct.into_iter().cloned().collect()
        });
        let number: HashMap<&str, u32> = classes.iter().map(String::as_str).zip(0..).collect();
        let labels = kept.iter().map(|(_, _, label)| number[label.as_str()]).collect();
        let (ids, images) = kept.into_iter().map(|(id, image, _)| (id, image)).unzip();
        Dataset { images, ids, labels, classes, skipped }
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.images.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.images.is_empty()
    }

    /// One image.
    pub fn image(&self, row: usize) -> &RgbImage {
        &self.images[row]
    }

    /// The name of each image.
    pub fn ids(&self) -> &[String] {
        &self.ids
    }

    /// The class of each image, a position in [`Dataset::classes`].
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// The names of the classes.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The skipped images and reasons.
    pub fn skipped(&self) -> &[SkippedImage] {
        &self.skipped
    }

    /// Random views of the chosen images, prepared in parallel. A view depends only on `stream` and the row: use a new branch
    /// for every epoch.
    pub fn batch(&self, rows: &[usize], augmentation: &Augmentation, stream: Stream) -> Result<Batch> {
        let draw = |image: &RgbImage, row: usize, out: &mut [u8], scaler: &mut Scaler| {
            augmentation.apply(image, stream.branch(row as u64), out, scaler)
        };
        self.collect(rows, augmentation.size, draw)
    }

    /// The evaluation views of the chosen images.
    pub fn evaluation_batch(&self, rows: &[usize], size: (usize, usize), view: View) -> Result<Batch> {
        self.collect(rows, size, |image, _, out, scaler| {
            out.copy_from_slice(&view.apply(image, size, scaler)?);
            Ok(())
        })
    }

    fn collect(
        &self,
        rows: &[usize],
        size: (usize, usize),
        fill: impl Fn(&RgbImage, usize, &mut [u8], &mut Scaler) -> Result<()> + Sync,
    ) -> Result<Batch> {
        let (height, width) = size;
        if let Some(row) = rows.iter().find(|&&row| row >= self.len()) {
            let expected = format!("below {}", self.len());
            let found = row.to_string();
            return Err(Error::Shape { what: "row of a dataset".to_owned(), expected, found });
        }
        let mut pixels = vec![0; rows.len() * height * width * 3];
        pixels.par_chunks_mut((height * width * 3).max(1)).zip(rows).try_for_each_init(
            Scaler::default,
            |scaler, (out, &row)| {
                let image = &self.images[row];
                let shape = (image.height(), image.width());
                let max_bytes = View::Whole.bytes(shape, size).max(View::Centre.bytes(shape, size));
                let _taken = Budget::shared().take(max_bytes);
                fill(image, row, out, scaler)
            },
        )?;
        Batch::new(height, width, pixels)
    }
}

fn prepare(bytes: &[u8], options: &DatasetOptions) -> std::result::Result<RgbImage, String> {
    let stored = |height: usize, width: usize| match options.storage {
        Storage::ShorterSide(side) if side > 0 && height.min(width) > side => {
            let scaled = |length: usize| (length * side / height.min(width)).max(1);
            (scaled(height), scaled(width))
        }
        _ => (height, width),
    };
    let afterwards = |height: usize, width: usize| {
        let kept = stored(height, width);
        let result = if kept == (height, width) { 0 } else { 3 * kept.0 as u64 * kept.1 as u64 };
        let storing = scaling_bytes((height, width), kept).saturating_add(result);
        storing.max(View::Whole.bytes(kept, options.size)).max(View::Centre.bytes(kept, options.size))
    };
    let (image, _taken) =
        decode_for(bytes, &options.limits, &afterwards).map_err(|error| error.to_string())?;
    match stored(image.height(), image.width()) {
        size if size == (image.height(), image.width()) => Ok(image),
        (height, width) => resize(&image, height, width).map_err(|error| error.to_string()),
    }
}

#[cfg(test)]
#[path = "dataset_tests.rs"]
mod tests;
