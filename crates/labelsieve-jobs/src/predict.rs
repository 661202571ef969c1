//! The classes of new examples: features by a classifier, images by a network with one.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;

use labelsieve::Scores;
use labelsieve::classifier::Confidence;
use labelsieve_files::inputs::same_network::{MixedNetworks, Origin};
use labelsieve_files::inputs::tables::{Table, load};
use labelsieve_files::work::outputs::{Files, OutputKind, Target, on_stdout};
use labelsieve_files::work::{Error, Monitor, Result, option, words};
use labelsieve_files::{Ids, PredictionRow, PredictionWriter, TableFormat};
use labelsieve_networks::image_files::ImageSource;
use labelsieve_networks::image_scores::ImageScorer;
use labelsieve_networks::opening::image_input::ImageFiles;
use labelsieve_numerics::Device;
use serde::Serialize;

use crate::device::Devices;
use crate::inputs::classifier::{ReadClassifier, load_classifier};

/// Names the classes of new examples.
#[derive(Clone, Debug)]
pub struct Predict {
    /// A classifier of features; for images, a network with a classifier.
    pub model: PathBuf,
    /// The examples to classify.
    pub examples: NewExamples,
    /// Whether features of another network than the classifier's are taken.
    pub mixed: MixedNetworks,
    /// Where networks run.
    pub device: Device,
    /// Predictions per example, best first.
    pub top: NonZeroUsize,
    /// Examples less typical than all but this share of the clean ones get no class.
    pub reject: Option<f64>,
    /// The file to write, `.parquet`, `.csv` or `.tsv`; `-` for CSV, nothing for TSV, on [`Monitor::stdout`].
    pub output: Option<PathBuf>,
}

/// Examples whose classes are wanted.
#[derive(Clone, Debug)]
pub enum NewExamples {
    /// A table of features.
    Features(Table),
    /// Images.
    Images(ImageFiles),
}

/// Summary of the predictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PredictSummary {
    /// Examples with a class.
    pub n_examples: usize,
    /// Classes to choose from.
    pub n_classes: usize,
    /// Examples that were given no class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub n_rejected: Option<usize>,
}

/// Examples in memory at a time.
const BLOCK: usize = 8192;

/// Predictions in memory at a time, or those of one example.
const ROWS: usize = 65_536;

impl Predict {
    /// Writes the best guesses for every example.
    pub fn run(&self, monitor: &dyn Monitor) -> Result<PredictSummary> {
        self.run_with(load_classifier, monitor)
    }

    /// As [`Predict::run`], for classifiers of features that `read` knows.
    pub fn run_with(&self, read: ReadClassifier, monitor: &dyn Monitor) -> Result<PredictSummary> {
        if let Some(share) = self.reject.filter(|share| !(*share > 0.0 && *share < 1.0)) {
            return Err(Error::input(
                words![option("reject"), format!(": expected a share between 0 and 1, found {share}")],
                "0.05 rejects what is less typical than all but one in twenty clean examples",
            ));
        }
        let target =
            self.output.as_deref().map(|output| OutputKind::Predictions.target(output)).transpose()?;
        let files = Files::default().reads([&self.model]);
        match &self.examples {
            NewExamples::Features(table) => {
                files.reads([&table.path]).writes(&self.output).check()?;
                let mut sink = Sink::new(target, self, monitor)?;
                let predicted = self.predict_features(read, table, &mut sink, monitor)?;
                sink.finish()?;
                Ok(predicted)
            }
            NewExamples::Images(images) => {
                let source = images.open()?;
                if self.reject.is_some() {
                    return Err(Error::input(
                        words![
                            option("reject"),
                            " needs a classifier that was learned with left-out examples"
                        ],
                        words!["use ", option("features"), ", or leave out ", option("reject")],
                    ));
                }
                files.reads_images(source.files()).writes(&self.output).check()?;
                let mut sink = Sink::new(target, self, monitor)?;
                let predicted = self.predict_images(images, &source, &mut sink, monitor)?;
                sink.finish()?;
                Ok(predicted)
            }
        }
    }

    fn predict_features(
        &self,
        read: ReadClassifier,
        features: &Table,
        sink: &mut Sink,
        monitor: &dyn Monitor,
    ) -> Result<PredictSummary> {
        let saved = read(&self.model)?;
        let table = features.open(monitor)?;
        if table.features.cols() != saved.dim && !table.is_empty() {
            return Err(Error::input(
                format!(
                    "`{}` has {} columns, but the classifier in `{}` has {}",
                    table.path.display(),
                    table.features.cols(),
                    self.model.display(),
                    saved.dim
                ),
                match &saved.backbone {
                    Some(backbone) => format!("the classifier was made with features of {backbone}"),
                    None => "extract all features with the same backbone".to_owned(),
                },
            ));
        }
        self.mixed.check(&[Origin::new(&self.model, saved.network.as_ref()), (&table).into()])?;
        self.check_reject(&saved.confidence)?;
        if matches!(table.ids, Ids::RowNumbers(_)) {
            monitor.note(&format!("`{}` has no ids; using row numbers", table.path.display()));
        }
        let progress = monitor.progress(table.len() as u64, "examples");
        for start in (0..table.len()).step_by(BLOCK) {
            monitor.watch().check()?;
            let rows: Vec<usize> = (start..table.len().min(start + BLOCK)).collect();
            let features = load(&table, &rows)?;
            let scores = saved.classifier.scores(&features);
            let ids = rows.iter().map(|&row| table.ids.get(row).into_owned()).collect();
            let typicality = (!saved.confidence.distances().is_empty()).then(|| {
                let distances = saved.classifier.distances(&features, &scores);
                distances.into_iter().map(|distance| saved.confidence.typicality(distance)).collect()
            });
            sink.write(
                Predictions { ids, scores: &scores, confidence: &saved.confidence, typicality },
                &saved.classes,
            )?;
            progress.inc(rows.len() as u64);
        }
        let n_rejected = self.reject.map(|_| sink.n_rejected);
        Ok(PredictSummary { n_examples: table.len(), n_classes: saved.classes.len(), n_rejected })
    }

    /// A share that the left-out examples are too few for would reject nothing, without a word.
    fn check_reject(&self, confidence: &Confidence) -> Result<()> {
        let Some(share) = self.reject else { return Ok(()) };
        let n_needed = Confidence::needed_to_reject(share);
        let n = confidence.distances().len();
        if n >= n_needed {
            return Ok(());
        }
        Err(Error::input(
            words![
                option("reject").set_to(share.to_string()),
                format!(
                    " needs at least {n_needed} left-out clean examples to compare with, but the classifier in `{}` has {n}",
                    self.model.display()
                ),
            ],
            if n == 0 {
                "train it again with a clean example and candidates, or two clean examples, per class"
                    .to_owned()
            } else {
                format!(
                    "reject a larger share, at least {:.3}, or train with more clean examples",
                    1.0 / (n + 1) as f64
                )
            },
        ))
    }

    fn predict_images(
        &self,
        images: &ImageFiles,
        source: &ImageSource,
        sink: &mut Sink,
        monitor: &dyn Monitor,
    ) -> Result<PredictSummary> {
        let scorer = ImageScorer::open(&self.model)?;
        let mut n_examples = 0;
        let confidence = Confidence::new(scorer.scale(), Vec::new());
        scorer.score(source, images.on_damage, self.device, &Devices, monitor, |images| {
            n_examples += images.ids.len();
            let confidence = &confidence;
            let found = Predictions { ids: images.ids, scores: &images.scores, confidence, typicality: None };
            sink.write(found, scorer.classes())?;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(PredictSummary { n_examples, n_classes: scorer.classes().len(), n_rejected: None })
    }
}

/// The scores of some examples, and what they mean.
struct Predictions<'a> {
    ids: Vec<String>,
    scores: &'a Scores,
    confidence: &'a Confidence,
    typicality: Option<Vec<f32>>,
}

/// Where predictions go.
struct Sink<'a> {
    writer: PredictionWriter,
    target: Target<'a>,
    top: usize,
    reject: Option<f64>,
    n_rejected: usize,
}

impl<'a> Sink<'a> {
    fn new(target: Option<Target<'a>>, job: &Predict, monitor: &dyn Monitor) -> Result<Sink<'a>> {
        let writer = match target {
            Some(Target::File(path)) => PredictionWriter::create(path)?,
            Some(Target::Stdout) => PredictionWriter::to_stream(monitor.stdout(), TableFormat::Csv),
            None => PredictionWriter::to_stream(monitor.stdout(), TableFormat::Tsv),
        };
        let target = target.unwrap_or(Target::Stdout);
        Ok(Sink { writer, target, top: job.top.get(), reject: job.reject, n_rejected: 0 })
    }

    /// The best classes of each example; of one that is rejected a single row, without a class, with the score and the
    /// probability of the best.
    fn write(&mut self, found: Predictions, classes: &[String]) -> Result<()> {
        let mut rows = Vec::new();
        for (i, (id, scores)) in found.ids.iter().zip(found.scores.rows()).enumerate() {
            let probabilities = found.confidence.probabilities(scores);
            let typicality = found.typicality.as_ref().map(|typicality| typicality[i]);
            let is_rejected = self
                .reject
                .is_some_and(|share| typicality.is_some_and(|typicality| f64::from(typicality) <= share));
            self.n_rejected += usize::from(is_rejected);
            let n_rows = if is_rejected { 1 } else { self.top };
            rows.extend(best(scores, n_rows).into_iter().zip(1..).map(|(c, rank)| PredictionRow {
                id: id.clone(),
                rank,
                class: (!is_rejected).then(|| classes[c].clone()),
                score: scores[c],
                probability: probabilities[c],
                typicality,
            }));
            if rows.len() >= ROWS {
                on_stdout(self.target, self.writer.write(&rows))?;
                rows.clear();
            }
        }
        on_stdout(self.target, self.writer.write(&rows))
    }

    fn finish(self) -> Result<()> {
        on_stdout(self.target, self.writer.finish())
    }
}

/// The `count` classes of highest score, best first; equal scores by lower class, as in the evaluation.
fn best(scores: &[f32], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
    order.truncate(count);
    order
}
