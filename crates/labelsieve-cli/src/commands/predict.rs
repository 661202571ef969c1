//! `labelsieve predict`: the classes of new examples.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{ArgGroup, Args};
use labelsieve::{Classifier, Scores};
use labelsieve_data::images::{ImageColumns, ImageSource, RowFilter};
use labelsieve_data::{PredictionRow, PredictionWriter};

use super::evaluate::load_classifier;
use super::image_scores::ImageScorer;
use crate::device::DeviceArguments;
use crate::hint::user_error;
use crate::inputs::{Columns, check_output, load};
use crate::printer::Printer;
use crate::same_network::{MixedArguments, Origin};

/// Name the classes of new examples
#[derive(Args)]
#[command(group = ArgGroup::new("examples").required(true))]
pub struct Predict {
    /// Classifier, as `labelsieve train` writes it; for --images, a network with one, as `train --classifier finetune`
    /// and `pretrain` write it
    #[arg(long, value_name = "FILE")]
    model: PathBuf,

    /// Examples: .npz, .npy, .parquet or a clip-retrieval folder
    #[arg(long, value_name = "FILE", group = "examples")]
    features: Option<PathBuf>,

    /// Images instead: folders, .parquet files with image bytes, .tar files, image files
    #[arg(long, value_name = "SOURCE", num_args = 1.., group = "examples")]
    images: Vec<PathBuf>,

    /// Column of the image bytes [default: image, img, jpg or bytes]
    #[arg(long, value_name = "NAME", requires = "images")]
    image_column: Option<String>,

    /// Only images whose column has this value, e.g. split=test; may be repeated
    #[arg(long = "where", value_name = "COLUMN=VALUE", requires = "images")]
    filters: Vec<RowFilter>,

    #[command(flatten)]
    columns: Columns,

    #[command(flatten)]
    mixed: MixedArguments,

    #[command(flatten)]
    device: DeviceArguments,

    /// Guesses per example, best first
    #[arg(long, value_name = "N", default_value_t = NonZeroUsize::MIN)]
    top: NonZeroUsize,

    /// Parquet file to write [default: tab-separated lines on stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Examples in memory at a time.
const BLOCK: usize = 8192;

impl Predict {
    pub fn run(&self, printer: &Printer) -> Result<()> {
        let inputs = self.features.iter().chain(&self.images).chain([&self.model]);
        let inputs: Vec<&Path> = inputs.map(PathBuf::as_path).collect();
        if let Some(output) = &self.output {
            check_output(output, &inputs)?;
        }
        let mut sink = Sink::new(self.output.as_deref(), self.top.get(), printer)?;
        match &self.features {
            Some(features) => self.predict_features(features, &mut sink, printer)?,
            None => self.predict_images(&mut sink, printer)?,
        }
        sink.finish()
    }

    fn predict_features(&self, features: &Path, sink: &mut Sink, printer: &Printer) -> Result<()> {
        let (saved, classifier) = load_classifier(&self.model)?;
        let table = self.columns.open(features, None, printer)?;
        if table.features.cols() != saved.dim && !table.is_empty() {
            return Err(user_error(
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
        let progress = printer.progress(table.len() as u64, "examples");
        for start in (0..table.len()).step_by(BLOCK) {
            let rows: Vec<usize> = (start..table.len().min(start + BLOCK)).collect();
            let scores = classifier.scores(&load(&table, &rows)?);
            let ids = rows.iter().map(|&row| table.ids.get(row).into_owned()).collect();
            sink.write(ids, &scores, &saved.classes)?;
            progress.inc(rows.len() as u64);
        }
        progress.finish_and_clear();
        Ok(())
    }

    fn predict_images(&self, sink: &mut Sink, printer: &Printer) -> Result<()> {
        let scorer = ImageScorer::open(&self.model)?;
        let columns = ImageColumns {
            image: self.image_column.clone(),
            id: self.columns.id_column.clone(),
            label: None,
            filters: self.filters.clone(),
        };
        let source = ImageSource::open(&self.images, &columns)?;
        scorer.score(&source, &self.device, printer, |images| {
            sink.write(images.ids, &images.scores, scorer.classes())?;
            Ok(ControlFlow::Continue(()))
        })
    }
}

/// Where predictions go: a Parquet file, or lines on stdout.
struct Sink<'a> {
    writer: Option<PredictionWriter>,
    /// Whether lines have their heading already: a command that fails at once prints none.
    has_heading: bool,
    top: usize,
    printer: &'a Printer,
}

impl<'a> Sink<'a> {
    fn new(output: Option<&Path>, top: usize, printer: &'a Printer) -> Result<Sink<'a>> {
        let writer = output.map(PredictionWriter::create).transpose()?;
        Ok(Sink { writer, has_heading: false, top, printer })
    }

    fn heading(&mut self) -> Result<()> {
        if self.writer.is_none() && !self.has_heading {
            self.printer.stream("id\trank\tclass\tscore")?;
        }
        self.has_heading = true;
        Ok(())
    }

    fn write(&mut self, ids: Vec<String>, scores: &Scores, classes: &[String]) -> Result<()> {
        self.heading()?;
        let mut predictions = Vec::with_capacity(ids.len() * self.top);
        for (id, scores) in ids.iter().zip(scores.rows()) {
            predictions.extend(best(scores, self.top).into_iter().enumerate().map(|(rank, c)| {
                PredictionRow {
                    id: id.clone(),
                    rank: rank as u32 + 1,
                    class: classes[c].clone(),
                    score: scores[c],
                }
            }));
        }
        match &mut self.writer {
            Some(writer) => writer.write(&predictions)?,
            None => {
                for row in &predictions {
                    let line = format!("{}\t{}\t{}\t{:.6}", row.id, row.rank, row.class, row.score);
                    self.printer.stream(&line)?;
                }
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        self.heading()?;
        Ok(self.writer.map_or(Ok(()), PredictionWriter::finish)?)
    }
}

/// The `count` classes of highest score, best first; equal scores by lower class, as in the evaluation.
fn best(scores: &[f32], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
    order.truncate(count);
    order
}
