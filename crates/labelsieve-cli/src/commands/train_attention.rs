//! `labelsieve train-attention`: the second training stage, for class weights with attention to base classes.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use labelsieve::Features;
use labelsieve::classifier::{AttentionTraining, Cosine, WeightMatrix, WeightedClass, prototypes};
use labelsieve_data::SavedClassifier;
use serde_json::json;

use crate::attention::saved_attention;
use crate::hint::user_error;
use crate::inputs::{Columns, labels_of, load, rows_by_class};
use crate::lock::OutputLock;
use crate::options::Given;
use crate::outputs::{Files, OutputKind};
use crate::printer::Printer;
use crate::same_network::{MixedArguments, Origin, common_network};

/// Learn to generate class weights from few examples and from the base classes they resemble
#[derive(Args)]
pub struct TrainAttention {
    /// Examples of the base classes: .npz, .npy, .parquet or a clip-retrieval folder
    #[arg(long, value_name = "FILE")]
    base: PathBuf,

    /// Their classes, for .npy: integers in .npy, or text with one class per line
    #[arg(long, value_name = "FILE")]
    base_labels: Option<PathBuf>,

    /// Classifier of the base classes, e.g. the one learned with the backbone [default: their prototypes]
    #[arg(long, value_name = "FILE")]
    base_classifier: Option<PathBuf>,

    #[command(flatten)]
    columns: Columns,

    #[command(flatten)]
    mixed: MixedArguments,

    /// Steps of gradient descent
    #[arg(long, value_name = "N", default_value_t = AttentionTraining::default().steps)]
    steps: usize,

    /// Base classes that pose as novel in an episode
    #[arg(long, value_name = "N", default_value_t = AttentionTraining::default().posing)]
    posing: usize,

    /// Most examples of a posing class
    #[arg(long, value_name = "K", default_value_t = AttentionTraining::default().most_shots)]
    most_shots: usize,

    /// Name of the backbone that made the features, kept in the file
    #[arg(long, value_name = "NAME")]
    backbone: Option<String>,

    /// The same seed gives the same result
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// File to write (.safetensors)
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

impl TrainAttention {
    pub fn check_options(&self, given: &Given) -> Result<()> {
        given.refuse_columns([self.base.as_path()])
    }

    pub fn run(&self, printer: &Printer) -> Result<()> {
        OutputKind::Weights.target(&self.output)?;
        let inputs = [&self.base_labels, &self.base_classifier].into_iter().flatten().chain([&self.base]);
        Files::default()
            .reads(inputs)
            .writes([&self.output])
            .writes_beside(&self.output, &[".lock"])
            .check()?;
        let _lock = OutputLock::beside(&self.output)?;
        let table = self.columns.open(&self.base, self.base_labels.as_deref(), printer)?;
        let (mut classes, mut sets) = (Vec::new(), Vec::new());
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
        drop(labelsieve_data::AtomicFile::create(&self.output)?);
        let settings = AttentionTraining {
            steps: self.steps,
            posing: self.posing,
            most_shots: self.most_shots,
            ..AttentionTraining::default()
        };
        let progress = printer.progress(settings.steps as u64, "steps");
        let (mut first, mut last, tenth) = (0.0, 0.0, (settings.steps / 10).max(1));
        let generator = settings.train(&weights, &sets, self.seed, |step, loss| {
            first += if step <= tenth { loss / tenth as f64 } else { 0.0 };
            last += if step + tenth > settings.steps { loss / tenth as f64 } else { 0.0 };
            progress.inc(1);
        });
        let generator = generator.with_context(|| format!("cannot use `{}`", self.base.display()))?;
        progress.finish_and_clear();
        let kept = json!({ "training": settings, "seed": self.seed });
        let n_base = classes.len();
        saved_attention(&generator, classes, (self.backbone.clone(), network), kept).save(&self.output)?;
        printer.note(&format!(
            "attention over {n_base} base classes in `{}`; loss {first:.3} at the start, {last:.3} at the end",
            self.output.display()
        ));
        Ok(())
    }

    /// The given weights, with classes and sets brought into their order; else prototypes.
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
        let mut by_name: std::collections::HashMap<String, Features> =
            classes.drain(..).zip(sets.drain(..)).collect();
        for class in &saved.classes {
            sets.push(by_name.remove(class).ok_or_else(|| {
                user_error(
                    format!("`{}` has no examples of the base class `{class}`", self.base.display()),
                    format!("every class of `{}` needs examples", path.display()),
                )
            })?);
        }
        *classes = saved.classes;
        Ok(WeightMatrix::new(Features::new(saved.weight, saved.dim)?, saved.scale)?)
    }
}
