//! The row "gcn, fine-tuned": the whole network learns from the photos by their relevance.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use anyhow::{Context, Result};
use indicatif::ProgressBar;
use labelsieve::Features;
use labelsieve::classifier::{WeightMatrix, WeightedClass, prototypes};
use labelsieve::evaluation::accuracy;
use labelsieve_data::images::{ImageColumns, ImageSource};
use labelsieve_vision::images::{Dataset, DatasetOptions, Encoded};
use labelsieve_vision::training::{Checkpoint, Examples, Recipe, Training, Watcher};
use labelsieve_vision::{Networks, ScaleRule, Snapshot, dataset_features};

use super::config::PhotoColumns;
use super::half::Half;
use super::measure::RowResult;
use crate::bench::{Reached, Row, Run, Task};
use crate::image_inputs::encoded;
use crate::network::OpenedNetwork;
use crate::printer::Printer;

/// A network, and the decoded photos of the reported classes.
pub struct FineTuning<'a> {
    networks: &'a dyn Networks,
    opened: &'a OpenedNetwork,
    images: Arc<Dataset>,
    /// Where each photo is among the images; not all can be read.
    place: HashMap<usize, usize>,
}

impl<'a> FineTuning<'a> {
    /// Decodes every photo of the reported classes that may be needed: clean examples, candidates and tests.
    pub fn new(
        networks: &'a dyn Networks,
        opened: &'a OpenedNetwork,
        report: &Half,
        columns: &PhotoColumns,
    ) -> Result<FineTuning<'a>> {
        let photos = report.ground.photos;
        let mut wanted = HashSet::new();
        for (class, &novel) in report.classes.iter().enumerate() {
            wanted.extend(&report.candidates(class).photos);
            wanted.extend(photos.novel[novel].train.iter().chain(&photos.novel[novel].test));
        }
        let by_id: HashMap<&str, usize> =
            wanted.into_iter().map(|&photo| (photos.ids[photo].as_str(), photo)).collect();
        let image_columns = ImageColumns {
            id: Some(columns.id.clone()),
            image: Some(columns.image.clone()),
            ..ImageColumns::default()
        };
        let source = ImageSource::open(&photos.files, &image_columns)?.images()?.map(encoded);
        let chosen = source.filter(|image| by_id.contains_key(image.id.as_str()));
        // A dataset has classes of its own; which class a photo is an example of depends on the pool it is in.
        let labelled = chosen.map(|image| Encoded { label: Some("photo".to_owned()), ..image });
        let images = Dataset::decode(labelled, &DatasetOptions::default());
        let place = images.ids().iter().enumerate().map(|(row, id)| (by_id[id.as_str()], row)).collect();
        Ok(FineTuning { networks, opened, images: Arc::new(images), place })
    }

    /// The row, for the first `episodes` episodes of every shot.
    pub fn row(
        &self,
        run: &mut Run,
        report: &Half,
        gcn: &Row,
        episodes: usize,
        printer: &Printer,
    ) -> Result<RowResult> {
        let input = self.opened.network.input();
        let recipe = Recipe::fine_tuning(input.height, input.width);
        let mut cells = Vec::new();
        for (shot, source) in gcn.sources.iter().enumerate() {
            let k = run.grid.shots[shot];
            let mut of_shot = Vec::new();
            for episode in 0..episodes.min(run.grid.episodes) {
                let key = format!(
                    "{} fine-tuned {} k={k} episode={episode} {}",
                    report.journal_name(),
                    serde_json::json!(recipe),
                    source.key()
                );
                let kept = run.kept(&key).and_then(|bytes| serde_json::from_slice::<Reached>(bytes).ok());
                of_shot.push(match kept {
                    Some(reached) => reached,
                    None => {
                        let weights = run.weights(report, shot, source, episode)?;
                        let seed = run.grid.seed;
                        let reached = run.clock.time("fine-tuning", || {
                            self.cell(report, (k, episode), &weights, &recipe, seed, printer)
                        })?;
                        run.keep(key, serde_json::to_vec(&reached)?)?;
                        reached
                    }
                });
            }
            cells.push(of_shot);
        }
        Ok(RowResult { name: "gcn, fine-tuned".to_owned(), is_bound: false, cells })
    }

    /// Fine-tunes on one episode and tests on the novel classes.
    fn cell(
        &self,
        report: &Half,
        (k, episode): (usize, usize),
        weights: &[Vec<f32>],
        recipe: &Recipe,
        seed: u64,
        printer: &Printer,
    ) -> Result<Reached> {
        let start = self.start(report, (k, episode), weights)?;
        let examples = self.examples(report, (k, episode), weights).without_irrelevant();
        let training = Training {
            networks: self.networks,
            network: &self.opened.network,
            examples: &examples,
            validation: None,
            recipe,
            scale: ScaleRule::Fixed,
            seed,
        };
        let images = (recipe.epochs * recipe.batches(examples.rows.len()) * recipe.batch) as u64;
        let progress = printer.progress(images, "images");
        progress.set_message(format!("fine-tuning, k = {k}, episode {}", episode + 1));
        let learned = training.run(Checkpoint::start(start), &mut Shown(&progress))?;
        progress.finish_and_clear();
        self.test(report, &learned.snapshot)
    }

    /// The network with the prototypes of the weighted examples as its classifier.
    fn start(&self, report: &Half, (k, episode): (usize, usize), weights: &[Vec<f32>]) -> Result<Snapshot> {
        let clean = report.clean(episode, k)?;
        let pools = (0..clean.len()).map(|class| report.pool(class)).collect::<Result<Vec<Features>>>()?;
        let classes = (0..clean.len())
            .map(|class| WeightedClass::new(&clean[class], &pools[class], &weights[class]))
            .collect::<labelsieve::Result<Vec<_>>>()?;
        let matrix = prototypes(&classes, report.dim(), report.scale())?;
        let rows = matrix.weights().block(0..classes.len());
        Ok(self.opened.snapshot.with_classifier(&self.opened.network, rows, report.scale())?)
    }

    /// Clean photos count 1, candidates by their relevance.
    fn examples(&self, report: &Half, (k, episode): (usize, usize), weights: &[Vec<f32>]) -> Examples {
        let examples = weights.iter().enumerate().flat_map(|(class, weights)| {
            let clean = report.clean_photos(class, episode, k).iter().map(|&photo| (photo, 1.0));
            let noisy = report.candidates(class).photos.iter().copied().zip(weights.iter().copied());
            clean.chain(noisy).filter_map(move |(photo, relevance)| {
                Some((*self.place.get(&photo)?, class as u32, relevance))
            })
        });
        Examples::weighted(self.images.clone(), weights.len(), examples)
    }

    /// Tests on the novel classes; base classes have no weights in a network that has moved on.
    fn test(&self, report: &Half, snapshot: &Snapshot) -> Result<Reached> {
        let network = &self.opened.network;
        let mut learner = self.networks.learner(network, snapshot)?;
        let (mut rows, mut labels) = (Vec::new(), Vec::new());
        for (label, &class) in report.classes.iter().enumerate() {
            let tests = report.ground.photos.novel[class].test.iter();
            let readable: Vec<usize> = tests.filter_map(|photo| self.place.get(photo).copied()).collect();
            labels.extend(std::iter::repeat_n(label, readable.len()));
            rows.extend(readable);
        }
        let look = (self.opened.metadata.image_size, self.opened.view);
        let features = dataset_features(learner.as_mut(), &self.images, &rows, look, |_| ())?;
        let weights = Features::new(snapshot.class_weights(network)?.to_vec(), network.dim())?;
        let weights = WeightMatrix::new(weights, report.scale())?;
        let found = accuracy(&weights, &Features::new(features, network.dim())?, &labels)
            .context("cannot test the fine-tuned network")?;
        Ok(Reached::from_accuracy(&found, None))
    }
}

/// Shows how far a training is.
struct Shown<'a>(&'a ProgressBar);

impl Watcher for Shown<'_> {
    fn epoch_starts(&mut self, _: usize, _: usize) {}

    fn batch_done(&mut self, images: usize) {
        self.0.inc(images as u64);
    }

    fn epoch_done(&mut self, _: &Checkpoint) -> labelsieve_vision::Result<()> {
        Ok(())
    }
}
