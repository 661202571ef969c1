//! Hallucinators, prototypical and prototype matching networks, from episodes of base classes.

use std::path::PathBuf;

use labelsieve_files::AtomicFile;
use labelsieve_files::inputs::same_network::{Origin, common_network};
use labelsieve_files::inputs::tables::{Table, labels_of, load, rows_by_class};
use labelsieve_files::work::outputs::{Files, OutputKind};
use labelsieve_files::work::resume::lock::OutputLock;
use labelsieve_files::work::{Context, Error, Monitor, Result};
use serde::Serialize;
use serde_json::json;

use crate::classifier::{EpisodicKind, EpisodicSizes, EpisodicTraining};
use crate::files::{KIND, SavedModel, settings_of, tensors_of};

/// Learns a system from episodes in which base classes pose as new ones.
#[derive(Clone, Debug)]
pub struct TrainEpisodes {
    /// Examples of the base classes, with their classes.
    pub base: Table,
    /// Which system.
    pub system: EpisodicKind,
    /// How it is learned.
    pub training: EpisodicTraining,
    /// Hallucinated examples per class, if not the usual number.
    pub generated: Option<usize>,
    /// The name of the backbone that made the features, kept in the file.
    pub backbone: Option<String>,
    /// Random seed; the same seed gives the same result.
    pub seed: u64,
    /// The file to write (`.safetensors`).
    pub output: PathBuf,
}

/// What was learned.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TrainedEpisodes {
    /// Base classes that posed.
    pub n_base: usize,
    /// Mean loss of the first tenth of the steps.
    pub first_loss: f64,
    /// Mean loss of the last tenth.
    pub last_loss: f64,
}

impl TrainEpisodes {
    /// Learns the system and writes it.
    pub fn run(&self, monitor: &dyn Monitor) -> Result<TrainedEpisodes> {
        OutputKind::Weights.target(&self.output)?;
        let files = Files::default().reads(self.base.paths()).writes([&self.output]);
        files.writes_beside(&self.output, &[".lock"]).check()?;
        let _lock = OutputLock::beside(&self.output)?;
        let table = self.base.open(monitor)?;
        let classes = rows_by_class(labels_of(&table, "--base-labels")?);
        if classes.len() < self.training.ways {
            return Err(Error::input(
                format!(
                    "`{}` has {} base classes, but an episode takes {}",
                    table.path.display(),
                    classes.len(),
                    self.training.ways
                ),
                "lower --ways",
            ));
        }
        let sets = classes.iter().map(|(_, rows)| load(&table, rows)).collect::<Result<Vec<_>>>()?;
        drop(AtomicFile::create(&self.output)?);
        let (settings, usual) = (&self.training, EpisodicSizes::usual(table.features.cols()));
        let sizes = EpisodicSizes { generated: self.generated.unwrap_or(usual.generated), ..usual };
        let progress = monitor.progress(settings.steps as u64, "steps");
        let (mut first, mut last, tenth) = (0.0, 0.0, (settings.steps / 10).max(1));
        let learned = settings.train(self.system, sizes, &sets, self.seed, monitor.watch(), |step, loss| {
            first += if step <= tenth { loss / tenth as f64 } else { 0.0 };
            last += if step + tenth > settings.steps { loss / tenth as f64 } else { 0.0 };
            progress.inc(1);
        });
        let learned = learned.with_context(|| format!("cannot learn from `{}`", self.base.path.display()))?;
        progress.finish();
        let saved = SavedModel {
            kind: KIND.to_owned(),
            classes: Vec::new(),
            dim: sizes.dim,
            backbone: self.backbone.clone(),
            network: common_network(&[Origin::from(&table)]),
            settings: json!({ "system": settings_of(&learned), "training": settings, "seed": self.seed }),
            tensors: tensors_of(&learned),
        };
        saved.save(&self.output)?;
        Ok(TrainedEpisodes { n_base: sets.len(), first_loss: first, last_loss: last })
    }
}
