//! Decoded images with their classes, in memory.

use std::collections::{BTreeSet, HashMap};

use labelsieve::random::Stream;
use rayon::prelude::*;

use super::augment::Augmentation;
use super::decode::{DecodeLimits, decode};
use super::resize::{Scaler, View, resize};
use super::rgb::RgbImage;
use crate::error::{Error, Result};
use crate::learner::Batch;

/// An image as a source hands it over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// Its name.
    pub id: String,
    /// Its class, if known.
    pub label: Option<String>,
    /// Its bytes, or why there are none.
    pub bytes: std::result::Result<Vec<u8>, String>,
}

/// An image that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Its name.
    pub id: String,
    /// Why.
    pub reason: String,
}

/// At which size decoded images are kept.
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
#[derive(Clone, Debug, Default)]
pub struct DatasetOptions {
    /// How large images may be.
    pub limits: DecodeLimits,
    /// At which size they are kept.
    pub storage: Storage,
    /// The classes that count, in this order; images of others are left out. By default, all that occur, by name.
    pub classes: Option<Vec<String>>,
}

/// Images of known classes.
#[derive(Clone, Debug)]
pub struct Dataset {
    images: Vec<RgbImage>,
    ids: Vec<String>,
    labels: Vec<u32>,
    classes: Vec<String>,
    skipped: Vec<Skipped>,
}

/// Images that are decoded together.
const CHUNK: usize = 512;

impl Dataset {
    /// Decodes all images, as many at a time as there are threads. What cannot be used is listed in
    /// [`Dataset::skipped`]; the order is that of the source.
    pub fn decode(source: impl Iterator<Item = Encoded>, options: &DatasetOptions) -> Dataset {
        let known: Option<HashMap<&str, ()>> = options
            .classes
            .as_ref()
            .map(|classes| classes.iter().map(|class| (class.as_str(), ())).collect());
        let (mut kept, mut skipped) = (Vec::new(), Vec::new());
        let mut source = source.peekable();
        while source.peek().is_some() {
            let chunk: Vec<Encoded> = source.by_ref().take(CHUNK).collect();
            let decoded: Vec<_> = chunk
                .into_par_iter()
                .map(|encoded| {
                    let Encoded { id, label, bytes } = encoded;
                    let image = label.ok_or_else(|| "no label".to_owned()).and_then(|label| {
                        if known.as_ref().is_some_and(|known| !known.contains_key(label.as_str())) {
                            return Err(format!("class `{label}` is not among the chosen ones"));
                        }
                        Ok((prepare(bytes, options)?, label))
                    });
                    (id, image)
                })
                .collect();
            for (id, image) in decoded {
                match image {
                    Ok((image, label)) => kept.push((id, image, label)),
                    Err(reason) => skipped.push(Skipped { id, reason }),
                }
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

    /// Whether there is none.
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

    /// What was left out, and why.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// Random views of the chosen images, prepared in parallel. What an image looks like depends on `stream` and its
    /// row alone: branch off a stream for every epoch.
    pub fn batch(&self, rows: &[usize], augmentation: &Augmentation, stream: Stream) -> Result<Batch> {
        let draw = |image: &RgbImage, row: usize, out: &mut [u8], scaler: &mut Scaler| {
            augmentation.apply(image, stream.branch(row as u64), out, scaler)
        };
        self.collect(rows, augmentation.size, draw)
    }

    /// The chosen images as they are looked at for evaluation.
    pub fn evaluation_batch(&self, rows: &[usize], size: (usize, usize), view: View) -> Result<Batch> {
        self.collect(rows, size, |image, _, out, scaler| {
            out.copy_from_slice(&view.apply(image, size, scaler)?);
            Ok(())
        })
    }

    fn collect(
        &self,
        rows: &[usize],
        (height, width): (usize, usize),
        fill: impl Fn(&RgbImage, usize, &mut [u8], &mut Scaler) -> Result<()> + Sync,
    ) -> Result<Batch> {
        if let Some(row) = rows.iter().find(|&&row| row >= self.len()) {
            let (expected, found) = (format!("below {}", self.len()), row.to_string());
            return Err(Error::Shape { what: "row of a dataset".to_owned(), expected, found });
        }
        let mut pixels = vec![0; rows.len() * height * width * 3];
        pixels
            .par_chunks_mut((height * width * 3).max(1))
            .zip(rows)
            .try_for_each_init(Scaler::default, |scaler, (out, &row)| {
                fill(&self.images[row], row, out, scaler)
            })?;
        Batch::new(height, width, pixels)
    }
}

fn prepare(
    bytes: std::result::Result<Vec<u8>, String>,
    options: &DatasetOptions,
) -> std::result::Result<RgbImage, String> {
    let image = decode(&bytes?, &options.limits).map_err(|error| error.to_string())?;
    let (height, width) = (image.height(), image.width());
    match options.storage {
        Storage::ShorterSide(side) if side > 0 && height.min(width) > side => {
            let scaled = |length: usize| (length * side / height.min(width)).max(1);
            resize(&image, scaled(height), scaled(width)).map_err(|error| error.to_string())
        }
        _ => Ok(image),
    }
}

#[cfg(test)]
#[path = "dataset_tests.rs"]
mod tests;
