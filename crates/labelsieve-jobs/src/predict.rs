//! The classes of new examples: features by a classifier, images by a network with one.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;

use labelsieve::Scores;
use labelsieve_files::inputs::same_network::{MixedNetworks, Origin};
use labelsieve_files::inputs::tables::{Table, load};
use labelsieve_files::work::outputs::{Files, OutputKind, Target, on_stdout};
use labelsieve_files::work::{Error, Monitor, Result};
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
    /// What to name.
    pub examples: NewExamples,
    /// Whether features of another network than the classifier's are taken.
    pub mixed: MixedNetworks,
    /// Where networks run.
    pub device: Device,
    /// Predictions per example, best first.
    pub top: NonZeroUsize,
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

/// What was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PredictSummary {
    /// Examples with a class.
    pub n_examples: usize,
    /// Classes to choose from.
    pub n_classes: usize,
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
        let target =
            self.output.as_deref().map(|output| OutputKind::Predictions.target(output)).transpose()?;
        let files = Files::default().reads([&self.model]);
        match &self.examples {
            NewExamples::Features(table) => {
                files.reads([&table.path]).writes(&self.output).check()?;
                let mut sink = Sink::new(target, self.top.get(), monitor)?;
                let predicted = self.predict_features(read, table, &mut sink, monitor)?;
                sink.finish()?;
                Ok(predicted)
            }
            NewExamples::Images(images) => {
                let source = images.open()?;
                files.reads_images(source.files()).writes(&self.output).check()?;
                let mut sink = Sink::new(target, self.top.get(), monitor)?;
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
        if matches!(table.ids, Ids::RowNumbers(_)) {
            monitor.note(&format!("`{}` has no ids; using row numbers", table.path.display()));
        }
        let progress = monitor.progress(table.len() as u64, "examples");
        for start in (0..table.len()).step_by(BLOCK) {
            monitor.watch().check()?;
            let rows: Vec<usize> = (start..table.len().min(start + BLOCK)).collect();
            let scores = saved.classifier.scores(&load(&table, &rows)?);
            let ids = rows.iter().map(|&row| table.ids.get(row).into_owned()).collect();
            sink.write(ids, &scores, &saved.classes)?;
            progress.inc(rows.len() as u64);
        }
        Ok(PredictSummary { n_examples: table.len(), n_classes: saved.classes.len() })
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
        scorer.score(source, images.on_damage, self.device, &Devices, monitor, |images| {
            n_examples += images.ids.len();
            sink.write(images.ids, &images.scores, scorer.classes())?;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(PredictSummary { n_examples, n_classes: scorer.classes().len() })
    }
}

/// Where predictions go.
struct Sink<'a> {
    writer: PredictionWriter,
    target: Target<'a>,
    top: usize,
}

impl<'a> Sink<'a> {
    fn new(target: Option<Target<'a>>, top: usize, monitor: &dyn Monitor) -> Result<Sink<'a>> {
        let writer = match target {
            Some(Target::File(path)) => PredictionWriter::create(path)?,
            Some(Target::Stdout) => PredictionWriter::to_stream(monitor.stdout(), TableFormat::Csv),
            None => PredictionWriter::to_stream(monitor.stdout(), TableFormat::Tsv),
        };
        Ok(Sink { writer, target: target.unwrap_or(Target::Stdout), top })
    }

    fn write(&mut self, ids: Vec<String>, scores: &Scores, classes: &[String]) -> Result<()> {
        let mut rows = Vec::new();
        for (id, scores) in ids.iter().zip(scores.rows()) {
            rows.extend(best(scores, self.top).into_iter().zip(1..).map(|(c, rank)| PredictionRow {
                id: id.clone(),
                rank,
                class: classes[c].clone(),
                score: scores[c],
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
