//! From relevance to a classifier: clean examples, and candidates that count by their relevance.
//!
//! `examples` reads the examples of every class with their relevance.

mod examples;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use labelsieve::classifier::{Cosine, WeightMatrix, WeightedClass};
use labelsieve::engine::Engine;
use labelsieve::evaluation::{CheckedClass, LeaveOneOut, leave_one_out};
use labelsieve::{Classifier as _, Features};
use labelsieve_files::inputs::decisions::{DecisionCounts, Decisions};
use labelsieve_files::inputs::same_network::Origin;
use labelsieve_files::work::outputs::{Files, OutputKind};
use labelsieve_files::work::table::percent;
use labelsieve_files::work::{Error, Monitor, Result, command, option, words};
use labelsieve_files::{AtomicFile, SavedClassifier};
use labelsieve_numerics::Device;
use serde::Serialize;
use serde_json::{Value, json};

use self::examples::{ClassExamples, Examples};
use crate::device;
use crate::inputs::pools::PoolFiles;

/// Learns a classifier of features; of the kind `K`.
#[derive(Clone, Debug)]
pub struct Train<K = Classifier> {
    /// The examples; who is a candidate of what is for the relevance file to say.
    pub files: PoolFiles,
    /// The relevance of the candidates.
    pub relevance: PathBuf,
    /// Decisions of people about candidates, if not those of the relevance file.
    pub decisions: Option<PathBuf>,
    /// The kind of classifier.
    pub classifier: K,
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

/// Classifiers of features.
#[derive(Clone, Debug)]
pub enum Classifier {
    /// The weighted mean of each class.
    Prototype,
    /// A cosine classifier, starting from the prototypes.
    Cosine {
        /// Examples per step, if not the usual number.
        batch_size: Option<usize>,
        /// Passes over all examples, if not the usual number.
        epochs: Option<usize>,
    },
}

/// A kind of classifier that [`Train`] can learn: those of [`Classifier`], and those that benchmarks compare them with.
pub trait ClassifierKind {
    /// The inputs of training besides the examples, read from files.
    type Helpers;

    /// The files of its helpers.
    fn helper_files(&self) -> Vec<&Path>;

    /// Refuses to extend the base classes in a file, where it has no class weights.
    fn check_extends(&self, base: &Path) -> Result<()>;

    /// Reads its helpers.
    fn helpers(&self, monitor: &dyn Monitor) -> Result<Self::Helpers>;

    /// The helper that must have learned from features of the same network as the examples.
    fn origin<'a>(&'a self, helpers: &'a Self::Helpers) -> Option<Origin<'a>>;

    /// The new classes as learned, and the settings that made them.
    fn learn(&self, helpers: &Self::Helpers, set: &TrainingSet) -> Result<(Learned, Value)>;
}

/// The examples and weights a classifier learns from.
pub struct TrainingSet<'a> {
    /// Where it is learned.
    pub engine: &'a dyn Engine,
    /// The examples of each class.
    pub classes: &'a [WeightedClass<'a>],
    /// Numbers per feature.
    pub dim: usize,
    /// Scale of the logits.
    pub scale: f32,
    /// Random seed.
    pub seed: u64,
}

/// A classifier of the new classes.
pub enum Learned {
    /// Class weights, which can join those of base classes.
    Weights(WeightMatrix),
    /// Anything else, with a file format of its own.
    Model(Box<dyn LearnedModel>),
}

/// A classifier that is not made of class weights.
pub trait LearnedModel {
    /// Writes it to `path`.
    fn save(&self, description: ModelDescription, path: &Path) -> Result<()>;
}

/// The header of a [`LearnedModel`] file.
pub struct ModelDescription {
    /// Its classes, in the order of scores.
    pub classes: Vec<String>,
    /// Numbers per feature.
    pub dim: usize,
    /// The network that made the features, as the user calls it.
    pub backbone: Option<String>,
    /// The network that made the features: what it is and a digest of it.
    pub network: Option<String>,
    /// The settings that made it.
    pub settings: Value,
}

/// Summary of a trained classifier.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrainSummary {
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

impl<K: ClassifierKind> Train<K> {
    /// Learns the classifier and writes it.
    pub fn run(&self, monitor: &dyn Monitor) -> Result<TrainSummary> {
        OutputKind::Weights.target(&self.output)?;
        if let Some(base) = &self.base {
            self.classifier.check_extends(base)?;
        }
        let others = self.base.as_deref().into_iter().chain([&*self.relevance]);
        let decisions = self.decisions.as_deref().map(Decisions::files);
        let inputs = Files::default().reads(self.files.paths()).reads(self.classifier.helper_files());
        let inputs = inputs.reads(others).reads(decisions.into_iter().flatten());
        inputs.writes([&self.output]).check()?;
        let base = self.base.as_deref().map(SavedClassifier::load).transpose()?;
        let scale = self.scale.or(base.as_ref().map(|base| base.scale)).unwrap_or(Cosine::default().scale);
        let helpers = self.classifier.helpers(monitor)?;
        let base_origin = self.base.as_deref().zip(base.as_ref());
        let base_origin = base_origin.map(|(path, base)| Origin::new(path, base.network.as_ref()));
        let others = base_origin.into_iter().chain(self.classifier.origin(&helpers));
        let given = self.decisions.as_deref().map(Decisions::open).transpose()?;
        let Examples { classes, network, decisions } =
            examples::read(&self.files, &self.relevance, given.as_ref(), others.collect(), monitor)?;
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
        monitor.watch().check()?;
        let set = TrainingSet { engine: opened.engine(), classes: &weighted, dim, scale, seed: self.seed };
        let (learned, settings) = self.classifier.learn(&helpers, &set)?;
        let checked = weighted.iter().zip(&classes);
        let checked: Vec<CheckedClass> = checked
            .map(|(&learned, class)| CheckedClass { learned, irrelevant: &class.irrelevant })
            .collect();
        let left_out = leave_one_out(&checked)?;
        tell_whether_relevance_helps(&left_out, decisions, monitor);
        let names: Vec<String> = classes.iter().map(|class| class.name.clone()).collect();
        let (n_classes, n_base) = match learned {
            Learned::Weights(novel) => {
                let saved = SavedClassifier { network, ..self.extend(base, novel, names, settings)? };
                saved.save(&self.output)?;
                (saved.classes.len(), saved.n_base)
            }
            Learned::Model(model) => {
                let n_classes = names.len();
                let backbone = self.backbone.clone();
                let description = ModelDescription { classes: names, dim, backbone, network, settings };
                model.save(description, &self.output)?;
                (n_classes, 0)
            }
        };
        Ok(TrainSummary { n_classes, n_base, dim, left_out, decisions })
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

impl ClassifierKind for Classifier {
    type Helpers = ();

    fn helper_files(&self) -> Vec<&Path> {
        Vec::new()
    }

    fn check_extends(&self, _base: &Path) -> Result<()> {
        Ok(())
    }

    fn helpers(&self, _monitor: &dyn Monitor) -> Result<()> {
        Ok(())
    }

    fn origin<'a>(&'a self, _helpers: &'a ()) -> Option<Origin<'a>> {
        None
    }

    fn learn(&self, _helpers: &(), set: &TrainingSet) -> Result<(Learned, Value)> {
        let TrainingSet { engine, classes, dim, scale, seed } = *set;
        Ok(match self {
            Classifier::Prototype => {
                let weights = engine.prototypes(classes, dim, scale)?;
                (Learned::Weights(weights), json!({ "classifier": "prototype" }))
            }
            Classifier::Cosine { batch_size, epochs } => {
                let usual = Cosine::default();
                let cosine = Cosine {
                    batch_size: batch_size.unwrap_or(usual.batch_size),
                    epochs: epochs.unwrap_or(usual.epochs),
                    scale,
                    ..usual
                };
                let settings = json!({ "classifier": "cosine", "cosine": cosine, "seed": seed });
                (Learned::Weights(engine.cosine(&cosine, classes, dim, seed)?), settings)
            }
        })
    }
}

/// Warns where accuracy is below that of all candidates weighted equally, or of the clean examples alone.
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
        monitor.hint(&words![
            "try another ",
            option("lambda"),
            " or ",
            option("method"),
            " in ",
            command("score"),
            "; with few clean examples this check is unreliable",
        ]);
    }
}
