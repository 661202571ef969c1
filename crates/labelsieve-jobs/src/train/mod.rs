//! From relevance to a classifier: clean examples, and candidates that count by their relevance.
//!
//! `examples` reads the examples of every class with their relevance, `classifiers` learns from them.

mod classifiers;
mod examples;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use labelsieve::classifier::auto::ClassifierChoice;
use labelsieve::classifier::discriminant::ClassSums;
use labelsieve::classifier::{
    Confidence, Cosine, FittedDiscriminant, Shrinkage, WeightMatrix, WeightedClass,
};
use labelsieve::engine::Engine;
use labelsieve::evaluation::{CheckedClass, LeaveOneOut, LeaveOneOutCheck};
use labelsieve::{Classifier as _, Features};
use labelsieve_files::inputs::decisions::{DecisionCounts, Decisions};
use labelsieve_files::inputs::same_network::Origin;
use labelsieve_files::work::outputs::{Files, OutputKind};
use labelsieve_files::work::table::percent;
use labelsieve_files::work::{Error, Monitor, Result, command, option, words};
use labelsieve_files::{AtomicFile, SavedClassifier};
use labelsieve_numerics::{Device, Watch};
use serde::Serialize;
use serde_json::Value;

use self::examples::{ClassExamples, ExampleReader};
use crate::device;
use crate::inputs::classifier::{discriminant_of, saved_confidence, saved_discriminant};
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
    /// The one that does best on left-out clean examples.
    Auto {
        /// How the shrinkage of the discriminant is chosen.
        shrinkage: Shrinkage,
    },
    /// Gaussian classes that share one covariance.
    Discriminant {
        /// How its shrinkage is chosen.
        shrinkage: Shrinkage,
    },
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

    /// Whether it learns from all of `n_rows` examples at once, rather than from sums over each class.
    fn reads_all_examples(&self, _n_rows: usize) -> bool {
        true
    }

    /// Whether it uses the covariance within classes.
    fn uses_covariance(&self) -> bool {
        false
    }

    /// Learns the new classes.
    fn learn(&self, helpers: &Self::Helpers, set: &TrainingSet) -> Result<LearnedClassifier>;
}

/// The examples and weights a classifier learns from.
pub struct TrainingSet<'a> {
    /// Where it is learned.
    pub engine: &'a dyn Engine,
    /// The examples of each class with their relevance; none for a classifier that learns from sums.
    pub classes: &'a [WeightedClass<'a>],
    /// The sums over the examples of each class, weighted by relevance.
    pub by_relevance: &'a ClassSums,
    /// The sums and the covariance, weighted by probability, for classifiers that use them.
    pub by_probability: Option<&'a ClassSums>,
    /// The base classes that it extends.
    pub base: Option<&'a SavedClassifier>,
    /// Numbers per feature.
    pub dim: usize,
    /// Scale of the logits.
    pub scale: f32,
    /// Random seed.
    pub seed: u64,
    /// Stops the work early on request.
    pub watch: &'a Watch,
}

/// A classifier of the new classes.
pub enum Learned {
    /// Class weights, which can join those of base classes.
    Weights(WeightMatrix),
    /// A discriminant of base classes and new ones.
    Discriminant(Box<FittedDiscriminant>),
    /// Anything else, with a file format of its own.
    Model(Box<dyn LearnedModel>),
}

/// A classifier of the new classes, and what is known of it.
pub struct LearnedClassifier {
    /// The classifier.
    pub learned: Learned,
    /// The settings that made it.
    pub settings: Value,
    /// How sure its scores are, where examples were left out to see.
    pub confidence: Option<Confidence>,
    /// Why this one, where there was a choice.
    pub choice: Option<ClassifierChoice>,
}

impl LearnedClassifier {
    /// A classifier and its settings, of which nothing else is known.
    pub fn new(learned: Learned, settings: Value) -> LearnedClassifier {
        LearnedClassifier { learned, settings, confidence: None, choice: None }
    }
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
    /// The kind of classifier.
    pub classifier: Option<String>,
    /// γ of a discriminant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shrinkage: Option<f64>,
    /// How classifiers do on clean examples that are left out in turn, and which was chosen, where there was a choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<ClassifierChoice>,
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
        let mut reader =
            ExampleReader::open(&self.files, &self.relevance, given.as_ref(), others.collect(), monitor)?;
        let dim = reader.dim();
        if let Some(base) = &base {
            self.check_base(base, &reader)?;
        }
        drop(AtomicFile::create(&self.output)?);
        let opened = device::open(self.device, monitor)?;
        monitor.watch().check()?;
        let names: Vec<String> = reader.names().map(str::to_owned).collect();
        let n_rows = reader.n_rows();
        let reads_all = self.classifier.reads_all_examples(n_rows);
        let mut kept: Vec<ClassExamples> = Vec::new();
        let mut by_relevance = ClassSums::of_means(dim, names.len());
        let mut by_probability =
            self.classifier.uses_covariance().then(|| ClassSums::new(dim, names.len(), n_rows));
        let mut check = LeaveOneOutCheck::default();
        let progress = monitor.progress(names.len() as u64, "classes");
        for class in 0..names.len() {
            monitor.watch().check()?;
            let class = reader.read(class)?;
            let learned = WeightedClass::new(&class.clean, &class.noisy, &class.relevance)?;
            check.add(&CheckedClass { learned, irrelevant: &class.irrelevant });
            by_relevance.add(&learned)?;
            if let Some(sums) = &mut by_probability {
                sums.add(&WeightedClass::new(&class.clean, &class.noisy, &class.probability)?)?;
            }
            kept.extend(reads_all.then_some(class));
            progress.inc(1);
        }
        progress.finish();
        reader.say_copies(monitor);
        let weighted = kept
            .iter()
            .map(|class| WeightedClass::new(&class.clean, &class.noisy, &class.relevance))
            .collect::<labelsieve::Result<Vec<_>>>()?;
        let set = TrainingSet {
            engine: opened.engine(),
            classes: &weighted,
            by_relevance: &by_relevance,
            by_probability: by_probability.as_ref(),
            base: base.as_ref(),
            dim,
            scale,
            seed: self.seed,
            watch: monitor.watch(),
        };
        let LearnedClassifier { learned, settings, confidence, choice } =
            self.classifier.learn(&helpers, &set)?;
        let left_out = check.finish()?;
        let decisions = reader.decisions;
        tell_whether_relevance_helps(&left_out, decisions, monitor);
        let network = reader.network;
        let classifier = settings["classifier"].as_str().map(str::to_owned);
        let shrinkage = match &learned {
            Learned::Discriminant(model) => Some(model.gamma()),
            _ => None,
        };
        let (n_classes, n_base) = match learned {
            Learned::Model(model) => {
                let n_classes = names.len();
                let backbone = self.backbone.clone();
                let description = ModelDescription { classes: names, dim, backbone, network, settings };
                model.save(description, &self.output)?;
                (n_classes, 0)
            }
            learned => {
                let confidence = confidence.as_ref().map(saved_confidence);
                let extended = self.extend(base, learned, names, settings)?;
                let saved = SavedClassifier { network, confidence, ..extended };
                saved.save(&self.output)?;
                (saved.classes.len(), saved.n_base)
            }
        };
        Ok(TrainSummary { n_classes, n_base, dim, classifier, shrinkage, choice, left_out, decisions })
    }

    /// Whether the new classes can stand beside the base classes; better asked before the training.
    fn check_base(&self, base: &SavedClassifier, reader: &ExampleReader) -> Result<()> {
        let dim = reader.dim();
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
        let base_names: HashSet<&str> = base.classes.iter().map(String::as_str).collect();
        match reader.names().find(|name| base_names.contains(name)) {
            None => Ok(()),
            Some(twice) => Err(Error::input(
                format!("class `{twice}` is both a base class in `{path}` and a new class"),
                "rename the new class, or remove it from one of the two",
            )),
        }
    }

    /// W_A = [W_B, W]; a discriminant has its base classes already.
    fn extend(
        &self,
        base: Option<SavedClassifier>,
        learned: Learned,
        names: Vec<String>,
        settings: Value,
    ) -> Result<SavedClassifier> {
        let (n_base, base_classes, backbone, base_weights) = match base {
            None => (0, Vec::new(), None, None),
            Some(base) => {
                let weights = WeightMatrix::new(Features::new(base.weight, base.dim)?, base.scale)?;
                (base.classes.len(), base.classes, base.backbone, Some(weights))
            }
        };
        let classes: Vec<String> = base_classes.into_iter().chain(names).collect();
        let (weight, scale, discriminant) = match learned {
            Learned::Discriminant(model) => {
                let means: Vec<f32> = model.means().iter().map(|&value| value as f32).collect();
                let scale = self.scale.or(base_weights.map(|base| base.scale()));
                (means, scale.unwrap_or(Cosine::default().scale), Some(saved_discriminant(&model)))
            }
            Learned::Weights(novel) => {
                let all = match &base_weights {
                    None => novel,
                    Some(base) => base.with_novel(&novel)?,
                };
                (all.weights().block(0..all.n_classes()).to_vec(), all.scale(), None)
            }
            Learned::Model(_) => unreachable!("it has a file format of its own"),
        };
        let dim = weight.len() / classes.len().max(1);
        Ok(SavedClassifier {
            classes,
            dim,
            weight,
            scale,
            backbone: self.backbone.clone().or(backbone),
            network: None,
            n_base,
            settings,
            discriminant,
            confidence: None,
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
