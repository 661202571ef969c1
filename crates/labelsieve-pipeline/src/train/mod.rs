//! From relevance to a classifier: clean examples, and candidates that count by their relevance.

mod examples;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use labelsieve::classifier::{Attention, Cosine, WeightMatrix, WeightedClass};
use labelsieve::engine::Engine;
use labelsieve::evaluation::{CheckedClass, LeaveOneOut, leave_one_out};
use labelsieve::{Classifier as _, Features};
use labelsieve_cuda::Device;
use labelsieve_data::{AtomicFile, SavedClassifier};
use serde::Serialize;
use serde_json::{Value, json};

use self::examples::{ClassExamples, Examples};
use crate::device;
use crate::error::{Context, Error, Result};
use crate::inputs::attention::load_attention;
use crate::inputs::decisions::{DecisionCounts, Decisions};
use crate::inputs::pools::PoolFiles;
use crate::inputs::same_network::Origin;
use crate::monitor::Monitor;
use crate::outputs::{Files, OutputKind};
use crate::table::percent;

/// Learns a classifier of features.
#[derive(Clone, Debug)]
pub struct Train {
    /// The examples; who is a candidate of what is for the relevance file to say.
    pub files: PoolFiles,
    /// The relevance of the candidates.
    pub relevance: PathBuf,
    /// What people decided about candidates, if not what the relevance file says.
    pub decisions: Option<PathBuf>,
    /// What to learn.
    pub classifier: Classifier,
    /// A classifier of base classes to extend: W_A = [W_B, W].
    pub base: Option<PathBuf>,
    /// Scale of the logits, if not that of the base classes or the usual one.
    pub scale: Option<f32>,
    /// The name of the backbone that made the features, kept in the file.
    pub backbone: Option<String>,
    /// Where it is learned.
    pub device: Device,
    /// Random seed; the same seed gives the same result.
    pub seed: u64,
    /// The file to write (`.safetensors`).
    pub output: PathBuf,
}

/// What to learn from features.
#[derive(Clone, Debug)]
pub enum Classifier {
    /// The weighted mean of each class.
    Prototype,
    /// The weighted mean, and what the base classes it resembles add by the generator in this file.
    Attention(PathBuf),
    /// A cosine classifier, starting from the prototypes.
    Cosine {
        /// Examples per step, if not the usual number.
        batch_size: Option<usize>,
        /// Passes over all examples, if not the usual number.
        epochs: Option<usize>,
    },
}

/// What was learned.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trained {
    /// All classes, base classes included.
    pub n_classes: usize,
    /// Base classes among them.
    pub n_base: usize,
    /// Numbers per feature.
    pub dim: usize,
    /// How prototypes do on clean examples that are left out in turn.
    pub left_out: LeaveOneOut,
    /// Candidates that people decided about, where decisions were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decisions: Option<DecisionCounts>,
}

impl Train {
    /// Learns the classifier and writes it.
    pub fn run(&self, monitor: &dyn Monitor) -> Result<Trained> {
        OutputKind::Weights.target(&self.output)?;
        let others = self.attention_path().into_iter().chain(self.base.as_deref()).chain([&*self.relevance]);
        let decisions = self.decisions.as_deref().map(Decisions::files);
        let inputs = Files::default().reads(self.files.paths()).reads(others);
        inputs.reads(decisions.into_iter().flatten()).writes([&self.output]).check()?;
        let base = self.base.as_deref().map(SavedClassifier::load).transpose()?;
        let scale = self.scale.or(base.as_ref().map(|base| base.scale)).unwrap_or(Cosine::default().scale);
        let attention = self.attention_path().map(load_attention).transpose()?;
        let others = [
            self.base.as_deref().zip(base.as_ref().map(|base| base.network.as_ref())),
            self.attention_path().zip(attention.as_ref().map(|(_, network)| network.as_ref())),
        ];
        let others = others.into_iter().flatten().map(|(path, network)| Origin::new(path, network));
        let given = self.decisions.as_deref().map(Decisions::open).transpose()?;
        let weights = (self.relevance.as_path(), given.as_ref());
        let Examples { classes, network, decisions } =
            examples::read(&self.files, weights, others.collect(), monitor)?;
        let dim = classes[0].clean.dim();
        if let Some(base) = &base {
            self.check_base(base, &classes, dim)?;
        }
        drop(AtomicFile::create(&self.output)?);
        let weighted = classes
            .iter()
            .map(|class| WeightedClass::new(&class.clean, &class.noisy, &class.relevance))
            .collect::<labelsieve::Result<Vec<_>>>()?;
        let opened = device::open(self.device, monitor)?;
        let attention = attention.as_ref().map(|(attention, _)| attention);
        let (novel, settings) = self.learn(opened.engine(), &weighted, dim, scale, attention, monitor)?;
        let checked = weighted.iter().zip(&classes);
        let checked: Vec<CheckedClass> = checked
            .map(|(&learned, class)| CheckedClass { learned, irrelevant: &class.irrelevant })
            .collect();
        let left_out = leave_one_out(&checked)?;
        tell_whether_relevance_helps(&left_out, decisions, monitor);
        let names = classes.iter().map(|class| class.name.clone()).collect();
        let saved = SavedClassifier { network, ..self.extend(base, novel, names, settings)? };
        saved.save(&self.output)?;
        Ok(Trained { n_classes: saved.classes.len(), n_base: saved.n_base, dim, left_out, decisions })
    }

    fn attention_path(&self) -> Option<&Path> {
        match &self.classifier {
            Classifier::Attention(path) => Some(path),
            Classifier::Prototype | Classifier::Cosine { .. } => None,
        }
    }

    /// The weights of the new classes, and the settings that made them.
    fn learn(
        &self,
        engine: &dyn Engine,
        classes: &[WeightedClass],
        dim: usize,
        scale: f32,
        attention: Option<&Attention>,
        monitor: &dyn Monitor,
    ) -> Result<(WeightMatrix, Value)> {
        monitor.watch().check()?;
        Ok(match &self.classifier {
            Classifier::Prototype => {
                (engine.prototypes(classes, dim, scale)?, json!({ "classifier": "prototype" }))
            }
            Classifier::Attention(path) => {
                let attention = attention.context("the generator was not read")?;
                let generated =
                    attention.weights(classes).with_context(|| format!("cannot use `{}`", path.display()))?;
                let novel = WeightMatrix::new(generated.weights().clone(), scale)?;
                (novel, json!({ "classifier": "attention", "attention": path.display().to_string() }))
            }
            Classifier::Cosine { batch_size, epochs } => {
                let usual = Cosine::default();
                let cosine = Cosine {
                    batch_size: batch_size.unwrap_or(usual.batch_size),
                    epochs: epochs.unwrap_or(usual.epochs),
                    scale,
                    ..usual
                };
                let settings = json!({ "classifier": "cosine", "cosine": cosine, "seed": self.seed });
                (engine.cosine(&cosine, classes, dim, self.seed)?, settings)
            }
        })
    }

    /// Whether the new classes can stand beside the base classes; better asked before the training.
    fn check_base(&self, base: &SavedClassifier, classes: &[ClassExamples], dim: usize) -> Result<()> {
        let path = self.base.as_deref().unwrap_or(Path::new("")).display();
        if base.dim != dim {
            return Err(Error::input(
                format!(
                    "the clean examples in `{}` have {dim} columns, but the base classes in `{path}` have {}",
                    self.files.clean_path().display(),
                    base.dim
                ),
                "extract all features with the same backbone",
            ));
        }
        let base_names: HashSet<&String> = base.classes.iter().collect();
        match classes.iter().find(|class| base_names.contains(&class.name)) {
            None => Ok(()),
            Some(twice) => Err(Error::input(
                format!("class `{}` is both a base class in `{path}` and a new class", twice.name),
                "rename the new class, or remove it from one of the two",
            )),
        }
    }

    /// W_A = [W_B, W].
    fn extend(
        &self,
        base: Option<SavedClassifier>,
        novel: WeightMatrix,
        names: Vec<String>,
        settings: Value,
    ) -> Result<SavedClassifier> {
        let (all, classes, n_base, backbone) = match base {
            None => (novel, names, 0, None),
            Some(base) => {
                let base_weights = WeightMatrix::new(Features::new(base.weight, base.dim)?, base.scale)?;
                let n_base = base_weights.n_classes();
                let classes = base.classes.into_iter().chain(names).collect();
                (base_weights.with_novel(&novel)?, classes, n_base, base.backbone)
            }
        };
        let weights = all.weights();
        Ok(SavedClassifier {
            classes,
            dim: weights.dim(),
            weight: weights.block(0..weights.len()).to_vec(),
            scale: all.scale(),
            backbone: self.backbone.clone().or(backbone),
            network: None,
            n_base,
            settings,
        })
    }
}

/// Nobody should end up below "all candidates alike" or "clean only" without being told.
fn tell_whether_relevance_helps(
    check: &LeaveOneOut,
    decisions: Option<DecisionCounts>,
    monitor: &dyn Monitor,
) {
    let Some(weighted) = check.weighted else { return };
    let say = |name: &str, share: Option<f64>| share.map(|share| format!("{name} {} %", percent(share)));
    let parts: Vec<String> = [
        say("by relevance", Some(weighted)),
        say("all candidates alike", check.untreated),
        say("clean only", check.clean_only),
    ]
    .into_iter()
    .flatten()
    .collect();
    let what = match decisions {
        Some(DecisionCounts { n_accept: 1.., .. }) => "clean and accepted examples",
        _ => "clean examples",
    };
    monitor.note(&format!(
        "leave-one-out check on your {} {what} (prototypes): {}",
        check.n,
        parts.join(", ")
    ));
    let best_other = check.untreated.unwrap_or(0.0).max(check.clean_only.unwrap_or(0.0));
    if weighted < best_other {
        monitor.warning("relevance does worse than a simpler method on this check");
        monitor.hint(
            "try another --lambda or --method in `labelsieve clean`; with few clean examples this check is unreliable",
        );
    }
}
