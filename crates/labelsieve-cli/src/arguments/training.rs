//! The options of every training of a classifier.

use std::path::{Path, PathBuf};

use anyhow::Result;
use labelsieve_files::counted;
use labelsieve_files::inputs::decisions;
use labelsieve_files::inputs::tables::Table;
use labelsieve_files::work::Monitor;
use labelsieve_jobs::train::{ClassifierKind, Train};

use super::{DeviceArguments, JsonArguments, PoolArguments, SeedArguments};
use crate::given::Given;
use crate::printer::Printer;

/// The options of a training but for those of the classifier.
#[derive(clap::Args, Clone, Debug)]
pub struct TrainingArguments {
    #[command(flatten)]
    pools: PoolArguments,

    /// Relevance file from `labelsieve score`
    #[arg(long, value_name = "FILE")]
    relevance: PathBuf,

    /// Decisions about candidates: accepted ones count as clean examples, rejected ones not at all [default: those that the
    /// relevance file was made with]
    #[arg(long, value_name = "FILE")]
    decisions: Option<PathBuf>,

    /// Base classifier to extend: W_A = [W_B, W]
    #[arg(long, value_name = "FILE")]
    base: Option<PathBuf>,

    /// Scale of the logits [default with --base: that of the base classifier]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    scale: Option<f32>,

    /// Name of the backbone, stored in the file
    #[arg(long, value_name = "NAME")]
    backbone: Option<String>,

    /// Output file (.safetensors)
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    #[command(flatten)]
    device: DeviceArguments,

    #[command(flatten)]
    seed: SeedArguments,
}

impl TrainingArguments {
    /// Refuses what has no effect on these files.
    pub fn check_options(&self, given: &Given) -> Result<()> {
        given.refuse_columns(self.pools.tables())
    }

    /// A further table of examples without classes, with the same columns.
    pub fn table(&self, path: &Path) -> Table {
        self.pools.table(path)
    }

    /// The job that trains this classifier.
    pub fn job<K: ClassifierKind>(&self, classifier: K) -> Train<K> {
        Train {
            files: self.pools.files(None),
            relevance: self.relevance.clone(),
            decisions: self.decisions.clone(),
            classifier,
            base: self.base.clone(),
            scale: self.scale,
            backbone: self.backbone.clone(),
            device: self.device.device,
            seed: self.seed.seed,
            output: self.output.clone(),
        }
    }

    /// Trains the classifier and prints a summary.
    pub fn train(
        &self,
        classifier: impl ClassifierKind,
        json: JsonArguments,
        printer: &Printer,
    ) -> Result<()> {
        let trained = self.job(classifier).run(printer)?;
        if json.json {
            return printer.json("train", &trained);
        }
        if let Some(counts) = &trained.decisions {
            decisions::say(counts, printer);
        }
        trained.choice.iter().for_each(|choice| printer.note(&choice.to_string()));
        let classes = counted(trained.n_classes, "class");
        let kind = trained.classifier.as_deref().map_or(String::new(), |kind| format!("{kind} "));
        let shrinkage = trained.shrinkage.map_or(String::new(), |gamma| format!(" (shrinkage {gamma:.3})"));
        printer.note(&format!(
            "{kind}classifier of {classes} with {} features written to `{}`{shrinkage}",
            trained.dim,
            self.output.display()
        ));
        Ok(())
    }
}
