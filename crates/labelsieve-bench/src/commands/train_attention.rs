//! `labelsieve-bench train-attention`: the second training stage of class weights with attention to base classes.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use labelsieve_cli::arguments::{ColumnArguments, JsonArguments, MixedArguments, SeedArguments};
use labelsieve_cli::{Given, Printer};
use labelsieve_files::work::Monitor;

use crate::classifier::AttentionTraining;
use crate::jobs::{TrainAttention as Job, TrainingSummary};
use crate::output::full_name;

/// Train a generator of class weights from few examples and similar base classes
#[derive(Args)]
pub struct TrainAttention {
    /// Examples of the base classes: .npz, .npy, .parquet or a clip-retrieval folder
    #[arg(long, value_name = "FILE")]
    base: PathBuf,

    /// Their classes, for .npy: integers in .npy, or text with one class per line
    #[arg(long, value_name = "FILE")]
    base_labels: Option<PathBuf>,

    /// Classifier of the base classes, e.g. the one trained with the backbone [default: their prototypes]
    #[arg(long, value_name = "FILE")]
    base_classifier: Option<PathBuf>,

    /// SGD steps
    #[arg(long, value_name = "N", default_value_t = AttentionTraining::default().steps)]
    steps: usize,

    /// Base classes treated as novel per episode
    #[arg(long, value_name = "N", default_value_t = AttentionTraining::default().posing)]
    posing: usize,

    /// Maximum number of examples of such a class
    #[arg(long, value_name = "K", default_value_t = AttentionTraining::default().most_shots)]
    most_shots: usize,

    /// Name of the backbone, stored in the file
    #[arg(long, value_name = "NAME")]
    backbone: Option<String>,

    /// Output file (.safetensors)
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    #[command(flatten)]
    mixed: MixedArguments,

    #[command(flatten)]
    columns: ColumnArguments,

    #[command(flatten)]
    seed: SeedArguments,

    #[command(flatten)]
    json: JsonArguments,
}

impl TrainAttention {
    pub fn check_options(&self, given: &Given) -> Result<()> {
        given.refuse_columns([self.base.as_path()])
    }

    pub fn run(&self, printer: &Printer) -> Result<()> {
        let job = Job {
            base: self.columns.table(&self.base, self.base_labels.as_deref()),
            base_classifier: self.base_classifier.clone(),
            mixed: self.mixed.mixed(),
            training: AttentionTraining {
                steps: self.steps,
                posing: self.posing,
                most_shots: self.most_shots,
                ..AttentionTraining::default()
            },
            backbone: self.backbone.clone(),
            seed: self.seed.seed,
            output: self.output.clone(),
        };
        let trained = job.run(printer)?;
        if self.json.json {
            return printer.json(&full_name("train-attention"), &trained);
        }
        let TrainingSummary { n_base, first_loss, last_loss } = trained;
        printer.note(&format!(
            "attention over {n_base} base classes written to `{}`; loss {first_loss:.3} at the start, {last_loss:.3} at the end",
            self.output.display()
        ));
        Ok(())
    }
}
