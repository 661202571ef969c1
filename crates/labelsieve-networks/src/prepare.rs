//! Turns images into features, decoding ahead of the network.

use rayon::prelude::*;

use crate::embedder::Embedder;
use crate::error::{Error, Result};
use crate::images::{
    Cause, Dataset, DecodeLimits, Encoded, Prefetch, Scaler, SkippedImage, Unreadable, View, decode_for,
    next_chunk,
};
use crate::learner::Batch;
use crate::pca::to_unit_length;

/// How images are prepared for a network.
#[derive(Clone, Copy, Debug)]
pub struct Preparation {
    /// Height and width of the network's input.
    pub size: (usize, usize),
    /// The part of an image that the network sees.
    pub view: View,
    /// How large images may be.
    pub limits: DecodeLimits,
    /// Images per batch, readable or not.
    pub batch: usize,
}

/// A batch of prepared images.
#[derive(Clone, Debug)]
pub struct PreparedBatch {
    /// Images that were read from the source.
    pub n_read: usize,
    /// The ids of the usable ones.
    pub ids: Vec<String>,
    /// Their classes, where known.
    pub labels: Vec<Option<String>>,
    /// Their pixels; `None` if no image is usable.
    pub batch: Option<Batch>,
    /// The unusable ones.
    pub skipped: Vec<SkippedImage>,
}

/// Decodes the images of `source` batch by batch, in order, in the background.
pub fn prepare(
    source: impl Iterator<Item = Encoded> + Send + 'static,
    preparation: Preparation,
) -> Result<Prefetch<Result<PreparedBatch>>> {
    const AHEAD: usize = 2;
    let mut source = source;
    Prefetch::new(std::iter::from_fn(move || prepare_batch(&mut source, &preparation).transpose()), AHEAD)
}

/// The next batch; none at the end of the source.
fn prepare_batch(
    source: &mut impl Iterator<Item = Encoded>,
    preparation: &Preparation,
) -> Result<Option<PreparedBatch>> {
    let size = preparation.size;
    let n_wanted = preparation.batch.max(1);
    let mut prepared = PreparedBatch { n_read: 0, ids: vec![], labels: vec![], batch: None, skipped: vec![] };
    let mut all = Vec::new();
    // Large images are read a few at a time: a whole batch of them might not fit in memory.
    while prepared.n_read < n_wanted {
        let chunk = next_chunk(source, n_wanted - prepared.n_read);
        if chunk.is_empty() {
            break;
        }
        prepared.n_read += chunk.len();
        let decode = |scaler: &mut Scaler, Encoded { id, label, bytes }| {
            (id, label, prepare_image(bytes, preparation, scaler))
        };
        let decoded: Vec<_> = chunk.into_par_iter().map_init(Scaler::default, decode).collect();
        for (id, label, pixels) in decoded {
            match pixels {
                Ok(pixels) => {
                    all.extend(pixels);
                    prepared.ids.push(id);
                    prepared.labels.push(label);
                }
                Err(Unreadable { reason, cause }) => {
                    prepared.skipped.push(SkippedImage { id, reason, cause })
                }
            }
        }
    }
    if !all.is_empty() {
        prepared.batch = Some(Batch::new(size.0, size.1, all)?);
    }
    Ok((prepared.n_read > 0).then_some(prepared))
}

fn prepare_image(
    bytes: std::result::Result<Vec<u8>, Unreadable>,
    preparation: &Preparation,
    scaler: &mut Scaler,
) -> std::result::Result<Vec<u8>, Unreadable> {
    let Preparation { size, view, limits, .. } = *preparation;
    let bad = |reason| Unreadable { reason, cause: Cause::BadImage };
    let afterwards = |height, width| view.bytes((height, width), size);
    let (image, _taken) =
        decode_for(&bytes?, &limits, &afterwards).map_err(|error| bad(error.to_string()))?;
    view.apply(&image, size, scaler).map_err(|error| bad(error.to_string()))
}

/// The features of a batch, rows of unit length one after the other.
pub fn unit_features(embedder: &mut dyn Embedder, batch: &Batch) -> Result<Vec<f32>> {
    let mut features = embedder.features(batch)?;
    if let Some(value) = features.iter().find(|value| !value.is_finite()) {
        return Err(Error::Shape {
            what: "features".to_owned(),
            expected: "finite numbers".to_owned(),
            found: format!("{value}: the network may be untrained or damaged"),
        });
    }
    let dim = features.len() / batch.len().max(1);
    features.par_chunks_mut(dim.max(1)).for_each(to_unit_length);
    Ok(features)
}

/// Subtracts `centre` from rows of unit length and scales them to unit length again: the similarity of unrelated photos is then
/// about zero, without the part that all photos share.
pub fn centre_features(features: &mut [f32], centre: &[f32]) {
    features.par_chunks_mut(centre.len().max(1)).for_each(|row| {
        row.iter_mut().zip(centre).for_each(|(value, centre)| *value -= centre);
        to_unit_length(row);
    });
}

/// The features of these rows of a dataset, as [`unit_features`] gives them. `look` is the size and the view of an image; `done`
/// is called after every batch with the number of its rows.
pub fn dataset_features(
    embedder: &mut dyn Embedder,
    images: &Dataset,
    rows: &[usize],
    look: ((usize, usize), View),
    mut done: impl FnMut(usize),
) -> Result<Vec<f32>> {
    let (size, view) = look;
    const BATCH: usize = 64;
    let mut features = Vec::new();
    for rows in rows.chunks(BATCH) {
        features.extend(unit_features(embedder, &images.evaluation_batch(rows, size, view)?)?);
        done(rows.len());
    }
    Ok(features)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::architecture::{Architecture, Stem};
    use crate::cpu::CpuLearners;
    use crate::learner::{Learners, Snapshot};

    fn png(value: u8) -> Vec<u8> {
        let image =
            image::RgbImage::from_fn(20, 20, |x, y| image::Rgb([value, (x * 9) as u8, (y * 5) as u8]));
        let mut bytes = std::io::Cursor::new(Vec::new());
        image.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
        bytes.into_inner()
    }

    fn source() -> Vec<Encoded> {
        let bytes = |i: usize| if i == 3 { Ok(b"junk".to_vec()) } else { Ok(png(50 * i as u8)) };
        (0..5).map(|i| Encoded { id: i.to_string(), label: None, bytes: bytes(i) }).collect()
    }

    #[test]
    fn features_do_not_depend_on_the_batch_and_bad_images_are_listed() {
        let network = Architecture::ConvNet128.network(16, 16, Stem::Photo).unwrap();
        let mut learner = CpuLearners.learner(&network, &Snapshot::initial(&network, 0, 1)).unwrap();
        let mut all = |batch| {
            let preparation =
                Preparation { size: (16, 16), view: View::Whole, limits: DecodeLimits::default(), batch };
            let mut ids = vec![];
            let mut features = vec![];
            let mut skipped = vec![];
            let mut n_read = 0;
            for prepared in prepare(source().into_iter(), preparation).unwrap() {
                let prepared = prepared.unwrap();
                n_read += prepared.n_read;
                ids.extend(prepared.ids);
                skipped.extend(prepared.skipped);
                if let Some(batch) = &prepared.batch {
                    features.extend(unit_features(learner.as_mut(), batch).unwrap());
                }
            }
            (ids, features, skipped, n_read)
        };
        let whole = all(8);
        assert_eq!((&whole.0[..], whole.3), (&["0", "1", "2", "4"].map(String::from)[..], 5));
        assert_eq!(whole.2[0].id, "3");
        for row in whole.1.chunks(network.dim()) {
            assert!((row.iter().map(|v| v * v).sum::<f32>() - 1.0).abs() < 1e-5);
        }
        assert_eq!(all(1), whole, "one at a time, one batch is empty");
        assert_eq!(all(2), whole);
    }
}
