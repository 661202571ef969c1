//! `labelsieve-bench train-episodes`: hallucinators, prototypical and prototype matching networks, trained on episodes of base
//! classes.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};
use labelsieve_cli::arguments::{ColumnArguments, JsonArguments, SeedArguments};
use labelsieve_cli::{Given, Printer};
use labelsieve_files::work::Monitor;

use crate::classifier::{EpisodicKind, EpisodicTraining};
use crate::jobs::{TrainEpisodes as Job, TrainingSummary};
use crate::output::full_name;

/// Train a hallucinator or a matching network on episodes of base classes
#[derive(Args)]
pub struct TrainEpisodes {
    /// Examples of the base classes: .npz, .npy, .parquet or a clip-retrieval folder
    #[arg(long, value_name = "FILE")]
    base: PathBuf,

    /// Their classes, for .npy: integers in .npy, or text with one class per line
    #[arg(long, value_name = "FILE")]
    base_labels: Option<PathBuf>,

    /// System to train
    #[arg(long, value_enum)]
    system: SystemName,

    /// SGD steps
    #[arg(long, value_name = "N", default_value_t = EpisodicTraining::default().steps)]
    steps: usize,

    /// Base classes per episode
    #[arg(long, value_name = "N", default_value_t = EpisodicTraining::default().ways)]
    ways: usize,

    /// Maximum number of examples of a class
    #[arg(long, value_name = "K", default_value_t = EpisodicTraining::default().most_shots)]
    most_shots: usize,

    /// Hallucinated examples per class, for hallucination and pmn [default: 5]
    #[arg(long, value_name = "N")]
    generated: Option<usize>,

    /// Name of the backbone, stored in the file
    #[arg(long, value_name = "NAME")]
    backbone: Option<String>,

    /// Output file (.safetensors)
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    #[command(flatten)]
    columns: ColumnArguments,

    #[command(flatten)]
    seed: SeedArguments,

    #[command(flatten)]
    json: JsonArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SystemName {
    /// A prototypical network: an embedding in which a class is the mean of its examples
    Prototypical,
    /// A hallucinator, which makes further examples of a class
    Hallucination,
    /// A prototype matching network with a hallucinator
    Pmn,
}

impl TrainEpisodes {
    pub fn check_options(&self, given: &Given) -> Result<()> {
        if self.system == SystemName::Prototypical {
            let why = "a prototypical network does not hallucinate";
            given.refuse(&["generated"], "--system prototypical", why)?;
        }
        given.refuse_columns([self.base.as_path()])
    }

    pub fn run(&self, printer: &Printer) -> Result<()> {
        let job = Job {
            base: self.columns.table(&self.base, self.base_labels.as_deref()),
            system: match self.system {
                SystemName::Prototypical => EpisodicKind::Prototypical,
                SystemName::Hallucination => EpisodicKind::Hallucination,
                SystemName::Pmn => EpisodicKind::PrototypeMatching,
            },
            training: EpisodicTraining {
                steps: self.steps,
                ways: self.ways,
                most_shots: self.most_shots,
                ..EpisodicTraining::default()
            },
            generated: self.generated,
            backbone: self.backbone.clone(),
            seed: self.seed.seed,
            output: self.output.clone(),
        };
        let trained = job.run(printer)?;
        if self.json.json {
            return printer.json(&full_name("train-episodes"), &trained);
        }
        let TrainingSummary { n_base, first_loss, last_loss } = trained;
        printer.note(&format!(
            "system of {n_base} base classes written to `{}`; loss {first_loss:.3} at the start, {last_loss:.3} at the end",
            self.output.display()
        ));
        Ok(())
    }
}
