//! From relevance to a classifier: clean examples, and candidates that count by their relevance.
//!
//! `examples` reads the examples of every class with their relevance.

mod examples;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use labelsieve::classifier::{
    Attention, Cosine, Diffusion, EpisodicKind, EpisodicModel, Fusion, Logistic, WeightMatrix, WeightedClass,
};
use labelsieve::engine::Engine;
use labelsieve::evaluation::{CheckedClass, LeaveOneOut, leave_one_out};
use labelsieve::{Classifier as _, Features};
use labelsieve_files::inputs::decisions::{DecisionCounts, Decisions};
use labelsieve_files::inputs::same_network::Origin;
use labelsieve_files::inputs::tables::{Table, load};
use labelsieve_files::work::outputs::{Files, OutputKind};
use labelsieve_files::work::table::percent;
use labelsieve_files::work::{Context, Error, Monitor, Result, command, option, words};
use labelsieve_files::{AtomicFile, SavedClassifier, SavedModel};
use labelsieve_numerics::Device;
use serde::Serialize;
use serde_json::{Value, json};

use self::examples::{ClassExamples, Examples};
use crate::device;
use crate::inputs::attention::load_attention;
use crate::inputs::classifier::{Model, parts_of};
use crate::inputs::episodes::{load_episodes, settings_of};
use crate::inputs::pools::PoolFiles;

/// Learns a classifier of features.
#[derive(Clone, Debug)]
pub struct Train {
    /// The examples; who is a candidate of what is for the relevance file to say.
    pub files: PoolFiles,
    /// The relevance of the candidates.
    pub relevance: PathBuf,
    /// Decisions of people about candidates, if not those of the relevance file.
    pub decisions: Option<PathBuf>,
    /// The classifier to learn.
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

/// Classifiers of features.
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
    /// Labels of clean examples that spread over one graph of everything; relevance is not used.
    Diffusion {
        /// How they spread.
        settings: Diffusion,
        /// Further rows that they spread over.
        background: Option<Table>,
        /// The share of a logistic regression on the clean examples, if one joins in.
        logistic: Option<f32>,
    },
    /// Logistic regression on examples and on what the hallucinator in this file makes of them.
    Hallucination(PathBuf),
    /// Prototype matching networks, or what else is in this file of a system that has learned from episodes.
    Matching(PathBuf),
}

/// Models read from files that a classifier is learned with.
struct Helpers {
    attention: Option<Attention>,
    episodes: Option<EpisodicModel>,
    background: Option<Features>,
}

/// A classifier of the new classes.
enum Learned {
    Weights(WeightMatrix),
    Model(Model),
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

impl Train {
    /// Learns the classifier and writes it.
    pub fn run(&self, monitor: &dyn Monitor) -> Result<TrainSummary> {
        OutputKind::Weights.target(&self.output)?;
        self.check_extends()?;
        let helper = self.helper_path();
        let others = helper.into_iter().chain(self.base.as_deref()).chain([&*self.relevance]);
        let decisions = self.decisions.as_deref().map(Decisions::files);
        let background = self.background().map(|table| table.paths());
        let inputs = Files::default().reads(self.files.paths()).reads(others);
        let inputs = inputs.reads(background.into_iter().flatten());
        inputs.reads(decisions.into_iter().flatten()).writes([&self.output]).check()?;
        let base = self.base.as_deref().map(SavedClassifier::load).transpose()?;
        let scale = self.scale.or(base.as_ref().map(|base| base.scale)).unwrap_or(Cosine::default().scale);
        let (helpers, helper_network) = self.helpers(monitor)?;
        let others = [
            self.base.as_deref().zip(base.as_ref().map(|base| base.network.as_ref())),
            self.helper_path().map(|path| (path, helper_network.as_ref())),
        ];
        let others = others.into_iter().flatten().map(|(path, network)| Origin::new(path, network));
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
        let (learned, settings) = self.learn(opened.engine(), &weighted, dim, scale, &helpers, monitor)?;
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
                let (kind, tensors) = parts_of(&model);
                let kind = kind.to_owned();
                let backbone = self.backbone.clone();
                let saved = SavedModel { kind, classes: names, dim, backbone, network, settings, tensors };
                saved.save(&self.output)?;
                (saved.classes.len(), 0)
            }
        };
        Ok(TrainSummary { n_classes, n_base, dim, left_out, decisions })
    }

    /// The file of what a classifier is learned with.
    fn helper_path(&self) -> Option<&Path> {
        match &self.classifier {
            Classifier::Attention(path) | Classifier::Hallucination(path) | Classifier::Matching(path) => {
                Some(path)
            }
            Classifier::Prototype | Classifier::Cosine { .. } | Classifier::Diffusion { .. } => None,
        }
    }

    fn background(&self) -> Option<&Table> {
        match &self.classifier {
            Classifier::Diffusion { background, .. } => background.as_ref(),
            _ => None,
        }
    }

    /// Rejects extending base classes by what has no class weights.
    fn check_extends(&self) -> Result<()> {
        let without_weights = match &self.classifier {
            Classifier::Diffusion { .. } => "a diffusion",
            Classifier::Hallucination(_) => "logistic regression",
            Classifier::Matching(_) => "a prototype matching network",
            Classifier::Prototype | Classifier::Attention(_) | Classifier::Cosine { .. } => return Ok(()),
        };
        match &self.base {
            None => Ok(()),
            Some(base) => Err(Error::input(
                format!(
                    "{without_weights} has no class weights that could join those in `{}`",
                    base.display()
                ),
                words!["leave out ", option("base"), ", or choose another classifier"],
            )),
        }
    }

    /// Reads what the classifier is learned with, and the network that its file names.
    fn helpers(&self, monitor: &dyn Monitor) -> Result<(Helpers, Option<String>)> {
        let mut helpers = Helpers { attention: None, episodes: None, background: None };
        let network = match &self.classifier {
            Classifier::Attention(path) => {
                let (attention, network) = load_attention(path)?;
                helpers.attention = Some(attention);
                network
            }
            Classifier::Hallucination(path) | Classifier::Matching(path) => {
                let (episodes, network) = load_episodes(path)?;
                let hallucinates = episodes.kind().hallucinates();
                if !hallucinates && matches!(self.classifier, Classifier::Hallucination(_)) {
                    return Err(Error::input(
                        format!("the system in `{}` has no hallucinator", path.display()),
                        words![
                            "make one with ",
                            command("train-episodes").with(option("system").set_to("hallucination"))
                        ],
                    ));
                }
                let kind = episodes.kind();
                if matches!(self.classifier, Classifier::Matching(_))
                    && kind != EpisodicKind::PrototypeMatching
                {
                    let kind = json!(kind);
                    let kind = kind.as_str().unwrap_or_default();
                    monitor.note(&format!(
                        "the system in `{}` is of the kind `{kind}`, which sees classes without their context",
                        path.display()
                    ));
                }
                helpers.episodes = Some(episodes);
                network
            }
            Classifier::Diffusion { background: Some(table), .. } => {
                let table = table.open(monitor)?;
                let rows: Vec<usize> = (0..table.len()).collect();
                helpers.background = Some(load(&table, &rows)?);
                None
            }
            Classifier::Prototype | Classifier::Cosine { .. } | Classifier::Diffusion { .. } => None,
        };
        Ok((helpers, network))
    }

    /// The classifier of the new classes, and the settings that made it.
    fn learn(
        &self,
        engine: &dyn Engine,
        classes: &[WeightedClass],
        dim: usize,
        scale: f32,
        helpers: &Helpers,
        monitor: &dyn Monitor,
    ) -> Result<(Learned, Value)> {
        monitor.watch().check()?;
        let file = |path: &Path| path.display().to_string();
        Ok(match &self.classifier {
            Classifier::Prototype => {
                let weights = engine.prototypes(classes, dim, scale)?;
                (Learned::Weights(weights), json!({ "classifier": "prototype" }))
            }
            Classifier::Diffusion { settings, logistic, .. } => {
                let none = Features::empty(dim);
                let diffusion = settings.train(classes, helpers.background.as_ref().unwrap_or(&none))?;
                let clean = classes.iter().map(|class| WeightedClass::new(class.clean(), &none, &[]));
                let clean = clean.collect::<labelsieve::Result<Vec<_>>>()?;
                let model = match logistic {
                    None => Model::Diffusion(diffusion),
                    Some(share) => {
                        let linear = Logistic::default().train(&clean, dim)?;
                        Model::Fusion(Fusion::new(diffusion, linear, *share)?)
                    }
                };
                let kept = json!({ "classifier": "diffusion", "diffusion": settings, "logistic": logistic });
                (Learned::Model(model), kept)
            }
            Classifier::Hallucination(path) => {
                let episodes = helpers.episodes.as_ref().context("the hallucinator was not read")?;
                let logistic = Logistic::default();
                let linear = episodes
                    .logistic(&logistic, classes, self.seed)
                    .with_context(|| format!("cannot use `{}`", path.display()))?;
                let kept = json!({ "classifier": "hallucination", "episodes": file(path), "logistic": logistic,
                    "seed": self.seed });
                (Learned::Model(Model::Linear(linear)), kept)
            }
            Classifier::Matching(path) => {
                let episodes = helpers.episodes.as_ref().context("the system was not read")?;
                let matching = episodes
                    .classifier(classes, self.seed)
                    .with_context(|| format!("cannot use `{}`", path.display()))?;
                let kept = json!({ "classifier": "pmn", "episodes": file(path), "seed": self.seed,
                    "system": settings_of(episodes) });
                (Learned::Model(Model::Matching(matching)), kept)
            }
            Classifier::Attention(path) => {
                let attention = helpers.attention.as_ref().context("the generator was not read")?;
                let generated =
                    attention.weights(classes).with_context(|| format!("cannot use `{}`", path.display()))?;
                let novel = WeightMatrix::new(generated.weights().clone(), scale)?;
                (Learned::Weights(novel), json!({ "classifier": "attention", "attention": file(path) }))
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
                (Learned::Weights(engine.cosine(&cosine, classes, dim, self.seed)?), settings)
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

/// Warns of results below "all candidates alike" or "clean only".
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
