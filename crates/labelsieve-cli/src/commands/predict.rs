//! `labelsieve predict`: the classes of new examples.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use labelsieve::classifier::WeightMatrix;
use labelsieve::{Classifier, Features, Scores};
use labelsieve_data::images::{ImageColumns, ImageSource, RowFilter};
use labelsieve_data::{PredictionRow, PredictionWriter};
use labelsieve_vision::images::{Cause, DecodeLimits};
use labelsieve_vision::{Preparation, prepare, unit_features};

use super::evaluate::load_classifier;
use crate::device::DeviceArguments;
use crate::hint::user_error;
use crate::image_inputs::{DamageArguments, encoded, warn_of_bad_files};
use crate::inputs::{Columns, check_output, load};
use crate::network::{Wanted, open_network};
use crate::printer::Printer;

/// Name the classes of new examples
#[derive(Args)]
pub struct Predict {
    /// Classifier, as `labelsieve train` writes it; for --images, a network with one, as `train --classifier finetune`
    /// and `pretrain` write it
    #[arg(long, value_name = "FILE")]
    model: PathBuf,

    /// Examples: .npz, .npy, .parquet or a clip-retrieval folder
    #[arg(long, value_name = "FILE", required_unless_present = "images", conflicts_with = "images")]
    features: Option<PathBuf>,

    /// Images instead: folders, .parquet files with image bytes, .tar files, image files
    #[arg(long, value_name = "SOURCE", num_args = 1..)]
    images: Vec<PathBuf>,

    /// Column of the image bytes [default: image, img, jpg or bytes]
    #[arg(long, value_name = "NAME", requires = "images")]
    image_column: Option<String>,

    /// Only images whose column has this value, e.g. split=test; may be repeated
    #[arg(long = "where", value_name = "COLUMN=VALUE", requires = "images")]
    filters: Vec<RowFilter>,

    /// Stop at the first image that cannot be read or decoded, and at the first damaged .parquet or .tar file
    #[arg(long, requires = "images")]
    strict: bool,

    #[command(flatten)]
    columns: Columns,

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

/// Images that go through the network together.
const IMAGES: usize = 64;

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
        let table = self.columns.open(features, None)?;
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
        let opened = open_network(&self.model, Wanted::Classifier, None)?;
        let networks = self.device.open_networks(printer)?;
        let mut learner = networks.networks().learner(&opened.network, &opened.snapshot)?;
        let dim = opened.network.dim();
        let weights = Features::new(opened.snapshot.class_weights(&opened.network)?.to_vec(), dim)?;
        let classifier = WeightMatrix::new(weights, opened.scale)?;
        let columns = ImageColumns {
            image: self.image_column.clone(),
            id: self.columns.id_column.clone(),
            label: None,
            filters: self.filters.clone(),
        };
        let source = ImageSource::open(&self.images, &columns)?;
        let preparation = Preparation {
            size: opened.metadata.image_size,
            view: opened.view,
            limits: DecodeLimits::default(),
            batch: IMAGES,
        };
        let progress = printer.progress(source.len_hint().unwrap_or(0) as u64, "images");
        let mut n_named = 0;
        for prepared in prepare(source.images()?.map(encoded), preparation)? {
            let prepared = prepared?;
            DamageArguments { strict: self.strict }.check(&prepared.skipped)?;
            warn_of_bad_files(&prepared.skipped, printer);
            for skipped in prepared.skipped.iter().filter(|skipped| skipped.cause != Cause::BadFile) {
                printer.warning(&format!("skipped `{}`: {}", skipped.id, skipped.reason));
            }
            if let Some(batch) = &prepared.batch {
                n_named += prepared.ids.len();
                let features = Features::new(unit_features(learner.as_mut(), batch)?, dim)?;
                sink.write(prepared.ids, &classifier.scores(&features), &opened.metadata.classes)?;
            }
            progress.inc(prepared.n_read as u64);
        }
        progress.finish_and_clear();
        if n_named == 0 {
            return Err(user_error(
                "there is no image that can be read",
                "check --images and --where; formats are JPEG, PNG, WebP, GIF, BMP and TIFF",
            ));
        }
        Ok(())
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
            self.printer.data("id\trank\tclass\tscore")?;
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
                    self.printer.data(&line)?;
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
