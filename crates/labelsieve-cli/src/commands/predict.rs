//! `labelsieve predict`: the classes of new examples.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use labelsieve::Classifier;
use labelsieve_data::{PredictionRow, PredictionWriter};

use super::evaluate::load_classifier;
use crate::hint::user_error;
use crate::inputs::{Columns, check_output, load};
use crate::printer::Printer;

/// Name the classes of new examples
#[derive(Args)]
pub struct Predict {
    /// Classifier, as `labelsieve train` writes it
    #[arg(long, value_name = "FILE")]
    model: PathBuf,

    /// Examples: .npz, .npy, .parquet or a clip-retrieval folder
    #[arg(long, value_name = "FILE")]
    features: PathBuf,

    #[command(flatten)]
    columns: Columns,

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
        if let Some(output) = &self.output {
            check_output(output, &[&self.model, &self.features])?;
        }
        let (saved, classifier) = load_classifier(&self.model)?;
        let table = self.columns.open(&self.features, None)?;
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
        let top = self.top.get();
        let mut writer = self.output.as_deref().map(PredictionWriter::create).transpose()?;
        if writer.is_none() {
            printer.data("id\trank\tclass\tscore")?;
        }
        let progress = printer.progress(table.len() as u64, "examples");
        for start in (0..table.len()).step_by(BLOCK) {
            let rows: Vec<usize> = (start..table.len().min(start + BLOCK)).collect();
            let scores = classifier.scores(&load(&table, &rows)?);
            let mut predictions = Vec::with_capacity(rows.len() * top);
            for (&row, scores) in rows.iter().zip(scores.rows()) {
                let id = table.ids.get(row);
                predictions.extend(best(scores, top).into_iter().enumerate().map(|(rank, c)| {
                    PredictionRow {
                        id: id.clone().into_owned(),
                        rank: rank as u32 + 1,
                        class: saved.classes[c].clone(),
                        score: scores[c],
                    }
                }));
            }
            match &mut writer {
                Some(writer) => writer.write(&predictions)?,
                None => {
                    for row in &predictions {
                        printer
                            .data(&format!("{}\t{}\t{}\t{:.6}", row.id, row.rank, row.class, row.score))?;
                    }
                }
            }
            progress.inc(rows.len() as u64);
        }
        progress.finish_and_clear();
        if let Some(writer) = writer {
            writer.finish()?;
        }
        Ok(())
    }
}

/// The `count` classes of highest score, best first; equal scores by lower class, as in the evaluation.
fn best(scores: &[f32], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
    order.truncate(count);
    order
}
