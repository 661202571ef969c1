//! `labelsieve predict`: the classes of new examples.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{ArgGroup, Args};
use labelsieve::{Classifier, Scores};
use labelsieve_data::images::{ImageColumns, ImageSource, RowFilter};
use labelsieve_data::{Ids, PredictionRow, PredictionWriter, TableFormat};

use super::evaluate::load_classifier;
use super::image_scores::ImageScorer;
use crate::device::DeviceArguments;
use crate::hint::user_error;
use crate::image_inputs::DamageArguments;
use crate::inputs::{Columns, load};
use crate::options::Given;
use crate::outputs::{Files, OutputKind, Target, on_stdout};
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

    /// Stop at the first image that cannot be read or decoded, and at the first damaged .parquet or .tar file
    #[arg(long, requires = "images")]
    strict: bool,

    #[command(flatten)]
    columns: Columns,

    #[command(flatten)]
    mixed: MixedArguments,

    #[command(flatten)]
    device: DeviceArguments,

    /// Guesses per example, best first; no more than there are classes
    #[arg(long, value_name = "N", default_value_t = NonZeroUsize::MIN)]
    top: NonZeroUsize,

    /// File to write, .parquet, .csv or .tsv; - writes CSV to stdout [default: TSV on stdout, in which `\t`, `\n`, `\r`,
    /// `\\` and `\u{1b}` stand for characters that would break its lines]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Examples in memory at a time.
const BLOCK: usize = 8192;

/// Predictions in memory at a time, or those of one example.
const ROWS: usize = 65_536;

impl Predict {
    pub fn check_options(&self, given: &Given) -> Result<()> {
        given.refuse(&["label_column"], "predict", "classes are what it finds out")?;
        match &self.features {
            None => given.refuse(&["embedding_column"], "predict --images", "it belongs to --features"),
            Some(features) => given.refuse_columns([features.as_path()]),
        }
    }

    pub fn run(&self, printer: &Printer) -> Result<()> {
        let target =
            self.output.as_deref().map(|output| OutputKind::Predictions.target(output)).transpose()?;
        let source = match &self.features {
            Some(_) => None,
            None => Some(self.open_images()?),
        };
        let images = source.iter().flat_map(ImageSource::files);
        let files = Files::default().reads([&self.model]).reads(&self.features).reads_images(images);
        files.writes(&self.output).check()?;
        let mut sink = Sink::new(target, self.top.get(), printer)?;
        match (&self.features, source) {
            (Some(features), _) => self.predict_features(features, &mut sink, printer)?,
            (None, Some(source)) => self.predict_images(&source, &mut sink, printer)?,
            (None, None) => (), // the arguments have one of the two
        }
        sink.finish()
    }

    fn open_images(&self) -> Result<ImageSource> {
        let columns = ImageColumns {
            image: self.image_column.clone(),
            id: self.columns.id_column.clone(),
            label: None,
            filters: self.filters.clone(),
        };
        Ok(ImageSource::open(&self.images, &columns)?)
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
        if matches!(table.ids, Ids::RowNumbers(_)) {
            printer.note(&format!("`{}` has no ids: row numbers stand for them", table.path.display()));
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

    fn predict_images(&self, source: &ImageSource, sink: &mut Sink, printer: &Printer) -> Result<()> {
        let scorer = ImageScorer::open(&self.model)?;
        let damage = DamageArguments { strict: self.strict };
        scorer.score(source, damage, &self.device, printer, |images| {
            sink.write(images.ids, &images.scores, scorer.classes())?;
            Ok(ControlFlow::Continue(()))
        })
    }
}

/// Where predictions go.
struct Sink<'a> {
    writer: PredictionWriter,
    target: Target<'a>,
    top: usize,
}

impl<'a> Sink<'a> {
    fn new(target: Option<Target<'a>>, top: usize, printer: &Printer) -> Result<Sink<'a>> {
        let writer = match target {
            Some(Target::File(path)) => PredictionWriter::create(path)?,
            Some(Target::Stdout) => PredictionWriter::to_stream(printer.stream(), TableFormat::Csv),
            None => PredictionWriter::to_stream(printer.stream(), TableFormat::Tsv),
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
