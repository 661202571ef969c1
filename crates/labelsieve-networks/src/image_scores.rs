//! Scores images with a network and its classifier, for `predict` and `evaluate`.

use std::ops::ControlFlow;
use std::path::Path;

use labelsieve::classifier::WeightMatrix;
use labelsieve::{Classifier, Features, Scores};
use labelsieve_files::work::{Error, Monitor, Result, option, words};
use labelsieve_numerics::Device;

use crate::devices::Devices;
use crate::image_files::ImageSource;
use crate::images::{Cause, DecodeLimits, OnDamage};
use crate::opening::image_input::{check_damage, encoded, warn_of_bad_files};
use crate::opening::network::{NetworkPart, OpenedNetwork, open_network};
use crate::{Preparation, prepare, unit_features};

/// Batch size.
const IMAGES: usize = 64;

/// A network with a classifier.
pub struct ImageScorer {
    opened: OpenedNetwork,
    classifier: WeightMatrix,
}

/// Some images with a row of scores each, one score per class of the network.
pub struct ScoredImages {
    /// Their ids.
    pub ids: Vec<String>,
    /// Their classes, where the source says so.
    pub labels: Vec<Option<String>>,
    /// Their scores.
    pub scores: Scores,
}

impl ImageScorer {
    /// Reads a network with a classifier.
    pub fn open(model: &Path) -> Result<ImageScorer> {
        let opened = open_network(model, NetworkPart::Classifier, None)?;
        let weights = opened.snapshot.class_weights(&opened.network)?.to_vec();
        let weights = Features::new(weights, opened.network.dim())?;
        let classifier = WeightMatrix::new(weights, opened.scale)?;
        Ok(ImageScorer { opened, classifier })
    }

    /// The classes that scores are for.
    pub fn classes(&self) -> &[String] {
        &self.opened.metadata.classes
    }

    /// The factor on scores before the softmax.
    pub fn scale(&self) -> f32 {
        self.classifier.scale()
    }

    /// Passes all readable images to `visit`, in order and in batches, until it breaks; warns about the others.
    pub fn score(
        &self,
        source: &ImageSource,
        on_damage: OnDamage,
        device: Device,
        devices: &dyn Devices,
        monitor: &dyn Monitor,
        mut visit: impl FnMut(ScoredImages) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let networks = devices.learners(device, monitor)?;
        let mut learner = networks.learners().learner(&self.opened.network, &self.opened.snapshot)?;
        let preparation = Preparation {
            size: self.opened.metadata.image_size,
            view: self.opened.view,
            limits: DecodeLimits::default(),
            batch: IMAGES,
        };
        let progress = monitor.progress(source.len_hint().unwrap_or(0) as u64, "images");
        let mut n_scored = 0;
        for prepared in prepare(source.images()?.map(encoded), preparation)? {
            monitor.watch().check()?;
            let prepared = prepared?;
            check_damage(on_damage, &prepared.skipped)?;
            warn_of_bad_files(&prepared.skipped, monitor);
            for skipped in prepared.skipped.iter().filter(|skipped| skipped.cause != Cause::BadFile) {
                monitor.warning(&format!("skipped `{}`: {}", skipped.id, skipped.reason));
            }
            if let Some(batch) = &prepared.batch {
                n_scored += prepared.ids.len();
                let features = unit_features(learner.as_mut(), batch)?;
                let features = Features::new(features, self.opened.network.dim())?;
                let scores = self.classifier.scores(&features);
                let scored = ScoredImages { ids: prepared.ids, labels: prepared.labels, scores };
                if visit(scored)?.is_break() {
                    break;
                }
            }
            progress.inc(prepared.n_read as u64);
        }
        progress.finish();
        match n_scored {
            0 => Err(Error::input(
                "no readable images",
                words![
                    "check ",
                    option("images"),
                    " and ",
                    option("where"),
                    "; formats are JPEG, PNG, WebP, GIF, BMP and TIFF"
                ],
            )),
            _ => Ok(()),
        }
    }
}
