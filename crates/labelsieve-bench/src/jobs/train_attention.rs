//! The second training stage of class weights with attention to base classes.

use std::collections::HashMap;
use std::path::PathBuf;

use labelsieve::Features;
use labelsieve::classifier::{Cosine, WeightMatrix, WeightedClass, prototypes};
use labelsieve_files::inputs::same_network::{MixedNetworks, Origin, common_network};
use labelsieve_files::inputs::tables::{Table, labels_of, load, rows_by_class};
use labelsieve_files::work::outputs::{Files, OutputKind};
use labelsieve_files::work::resume::lock::OutputLock;
use labelsieve_files::work::{Context, Error, Monitor, Result};
use labelsieve_files::{AtomicFile, SavedClassifier};
use serde_json::json;

use super::losses::{LossAverages, TrainingSummary};
use crate::classifier::AttentionTraining;
use crate::files::{AttentionDescription, saved_attention};

/// Learns to generate class weights from few examples and from the base classes they resemble.
#[derive(Clone, Debug)]
pub struct TrainAttention {
    /// Examples of the base classes, with their classes.
    pub base: Table,
    /// Classifier of the base classes; by default their prototypes.
    pub base_classifier: Option<PathBuf>,
    /// Whether features and classifier may come from different networks.
    pub mixed: MixedNetworks,
    /// The settings of the training.
    pub training: AttentionTraining,
    /// The name of the backbone that made the features, kept in the file.
    pub backbone: Option<String>,
    /// Random seed; the same seed gives the same result.
    pub seed: u64,
    /// The file to write (`.safetensors`).
    pub output: PathBuf,
}

impl TrainAttention {
    /// Learns the generator and writes it.
    pub fn run(&self, monitor: &dyn Monitor) -> Result<TrainingSummary> {
        OutputKind::Weights.target(&self.output)?;
        let inputs = self.base.paths().chain(self.base_classifier.as_deref());
        Files::default()
            .reads(inputs)
            .writes([&self.output])
            .writes_beside(&self.output, &[".lock"])
            .check()?;
        let _lock = OutputLock::beside(&self.output)?;
        let table = self.base.open(monitor)?;
        let mut classes = Vec::new();
        let mut sets = Vec::new();
        for (name, rows) in rows_by_class(labels_of(&table, "--base-labels")?) {
            sets.push(load(&table, &rows)?);
            classes.push(name);
        }
        let base_classifier = self.base_classifier.as_deref().map(SavedClassifier::load).transpose()?;
        let mut origins = vec![Origin::from(&table)];
        if let (Some(path), Some(saved)) = (&self.base_classifier, &base_classifier) {
            origins.push(Origin::new(path, saved.network.as_ref()));
        }
        self.mixed.check(&origins)?;
        let network = common_network(&origins);
        let weights = self.base_weights(base_classifier, &mut classes, &mut sets)?;
        drop(AtomicFile::create(&self.output)?);
        let settings = &self.training;
        let progress = monitor.progress(settings.steps as u64, "steps");
        let mut losses = LossAverages::new(settings.steps);
        let generator = settings.train(&weights, &sets, self.seed, |step, loss| {
            losses.add(step, loss);
            progress.inc(1);
        });
        let generator = generator.with_context(|| format!("cannot use `{}`", self.base.path.display()))?;
        progress.finish();
        let kept = json!({ "training": settings, "seed": self.seed });
        let summary = losses.summary(classes.len());
        let description =
            AttentionDescription { classes, backbone: self.backbone.clone(), network, settings: kept };
        saved_attention(&generator, description).save(&self.output)?;
        Ok(summary)
    }

    /// The weights of the given classifier, with `classes` and `sets` sorted into its order; prototypes without one.
    fn base_weights(
        &self,
        base_classifier: Option<SavedClassifier>,
        classes: &mut Vec<String>,
        sets: &mut Vec<Features>,
    ) -> Result<WeightMatrix> {
        let (Some(path), Some(saved)) = (&self.base_classifier, base_classifier) else {
            let dim = sets.first().map_or(1, Features::dim);
            let none = Features::empty(dim);
            let examples = sets.iter().map(|set| WeightedClass::new(set, &none, &[]));
            let examples = examples.collect::<labelsieve::Result<Vec<_>>>()?;
            return Ok(prototypes(&examples, dim, Cosine::default().scale)?);
        };
        let mut by_name: HashMap<String, Features> = classes.drain(..).zip(sets.drain(..)).collect();
        for class in &saved.classes {
            sets.push(by_name.remove(class).ok_or_else(|| {
                Error::input(
                    format!("`{}` has no examples of the base class `{class}`", self.base.path.display()),
                    format!("every class of `{}` needs examples", path.display()),
                )
            })?);
        }
        *classes = saved.classes;
        Ok(WeightMatrix::new(Features::new(saved.weight, saved.dim)?, saved.scale)?)
    }
}
