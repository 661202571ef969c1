//! Hallucinators, prototypical and prototype matching networks, from episodes of base classes.

use std::path::PathBuf;

use labelsieve_files::AtomicFile;
use labelsieve_files::inputs::same_network::{Origin, common_network};
use labelsieve_files::inputs::tables::{Table, labels_of, load, rows_by_class};
use labelsieve_files::work::outputs::{Files, OutputKind};
use labelsieve_files::work::resume::lock::OutputLock;
use labelsieve_files::work::{Context, Error, Monitor, Result, option, words};
use serde_json::json;

use super::losses::{LossAverages, TrainingSummary};
use crate::classifier::{EpisodicKind, EpisodicSizes, EpisodicTraining};
use crate::files::{KIND, SavedModel, settings_of, tensors_of};

/// Learns a system from episodes in which base classes pose as novel ones.
#[derive(Clone, Debug)]
pub struct TrainEpisodes {
    /// Examples of the base classes, with their classes.
    pub base: Table,
    /// The system to learn.
    pub system: EpisodicKind,
    /// The settings of the training.
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

impl TrainEpisodes {
    /// Learns the system and writes it.
    pub fn run(&self, monitor: &dyn Monitor) -> Result<TrainingSummary> {
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
                words!["lower ", option("ways")],
            ));
        }
        let sets = classes.iter().map(|(_, rows)| load(&table, rows)).collect::<Result<Vec<_>>>()?;
        drop(AtomicFile::create(&self.output)?);
        let settings = &self.training;
        let usual = EpisodicSizes::usual(table.features.cols());
        let sizes = EpisodicSizes { generated: self.generated.unwrap_or(usual.generated), ..usual };
        let progress = monitor.progress(settings.steps as u64, "steps");
        let mut losses = LossAverages::new(settings.steps);
        let learned = settings.train(self.system, sizes, &sets, self.seed, monitor.watch(), |step, loss| {
            losses.add(step, loss);
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
        Ok(losses.summary(sets.len()))
    }
}
