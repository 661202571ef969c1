//! Classifiers that the paper compares with, from the same examples as the product's.

use std::path::{Path, PathBuf};

use labelsieve::Features;
use labelsieve::classifier::{WeightMatrix, WeightedClass};
use labelsieve_files::inputs::same_network::Origin;
use labelsieve_files::inputs::tables::{Table, load};
use labelsieve_files::work::{Context, Error, Monitor, Result, option, words};
use labelsieve_jobs::train::{ClassifierKind, Learned, LearnedClassifier, TrainingSet};
use serde_json::json;

use crate::classifier::{Attention, Diffusion, EpisodicKind, EpisodicModel, Fusion, Logistic};
use crate::files::{Model, load_attention, load_episodes, settings_of};

/// A classifier to learn from features.
#[derive(Clone, Debug)]
pub enum ComparedClassifier {
    /// The weighted mean plus attention over similar base classes, by the generator in this file.
    Attention(PathBuf),
    /// Labels of clean examples diffused over one graph of all rows; relevance is not used.
    Diffusion {
        /// The settings of the diffusion.
        settings: Diffusion,
        /// Further rows of the graph, without labels.
        background: Option<Table>,
        /// The weight of a logistic regression on the clean examples, if the two are combined.
        logistic: Option<f32>,
    },
    /// Logistic regression on examples and on hallucinations by the system in this file.
    Hallucination(PathBuf),
    /// Prototype matching networks, or whichever episodic system the file holds.
    Matching(PathBuf),
}

/// Models and rows that a classifier is learned with, read from files.
#[derive(Default)]
pub struct Helpers {
    attention: Option<Attention>,
    episodes: Option<EpisodicModel>,
    background: Option<Features>,
    /// The network named by the file of the generator or the system.
    network: Option<String>,
}

impl ComparedClassifier {
    /// The file of the generator or the system.
    fn helper_path(&self) -> Option<&Path> {
        match self {
            ComparedClassifier::Attention(path)
            | ComparedClassifier::Hallucination(path)
            | ComparedClassifier::Matching(path) => Some(path),
            ComparedClassifier::Diffusion { .. } => None,
        }
    }

    /// Rejects a system without a hallucinator where one is needed, and notes when a system ignores the context of classes.
    fn check_system(&self, path: &Path, kind: EpisodicKind, monitor: &dyn Monitor) -> Result<()> {
        if matches!(self, ComparedClassifier::Hallucination(_)) && !kind.hallucinates() {
            return Err(Error::input(
                format!("the system in `{}` has no hallucinator", path.display()),
                "make one with `labelsieve-bench train-episodes --system hallucination`",
            ));
        }
        if matches!(self, ComparedClassifier::Matching(_)) && kind != EpisodicKind::PrototypeMatching {
            let kind = json!(kind);
            let kind = kind.as_str().unwrap_or_default();
            monitor.note(&format!(
                "the system in `{}` is of the kind `{kind}`, which sees classes without their context",
                path.display()
            ));
        }
        Ok(())
    }
}

impl ClassifierKind for ComparedClassifier {
    type Helpers = Helpers;

    fn helper_files(&self) -> Vec<&Path> {
        match self {
            ComparedClassifier::Diffusion { background: Some(table), .. } => table.paths().collect(),
            _ => self.helper_path().into_iter().collect(),
        }
    }

    fn check_extends(&self, base: &Path) -> Result<()> {
        let without_weights = match self {
            ComparedClassifier::Diffusion { .. } => "a diffusion",
            ComparedClassifier::Hallucination(_) => "logistic regression",
            ComparedClassifier::Matching(_) => "a prototype matching network",
            ComparedClassifier::Attention(_) => return Ok(()),
        };
        Err(Error::input(
            format!("{without_weights} has no class weights that could join those in `{}`", base.display()),
            words!["leave out ", option("base"), ", or choose another classifier"],
        ))
    }

    fn helpers(&self, monitor: &dyn Monitor) -> Result<Helpers> {
        Ok(match self {
            ComparedClassifier::Attention(path) => {
                let (attention, network) = load_attention(path)?;
                Helpers { attention: Some(attention), network, ..Helpers::default() }
            }
            ComparedClassifier::Hallucination(path) | ComparedClassifier::Matching(path) => {
                let (episodes, network) = load_episodes(path)?;
                self.check_system(path, episodes.kind(), monitor)?;
                Helpers { episodes: Some(episodes), network, ..Helpers::default() }
            }
            ComparedClassifier::Diffusion { background: Some(table), .. } => {
                let table = table.open(monitor)?;
                let rows: Vec<usize> = (0..table.len()).collect();
                Helpers { background: Some(load(&table, &rows)?), ..Helpers::default() }
            }
            ComparedClassifier::Diffusion { background: None, .. } => Helpers::default(),
        })
    }

    fn origin<'a>(&'a self, helpers: &'a Helpers) -> Option<Origin<'a>> {
        self.helper_path().map(|path| Origin::new(path, helpers.network.as_ref()))
    }

    fn learn(&self, helpers: &Helpers, set: &TrainingSet) -> Result<LearnedClassifier> {
        let TrainingSet { classes, dim, scale, seed, .. } = *set;
        let file = |path: &Path| path.display().to_string();
        let unusable = |path: &Path| format!("cannot use `{}`", path.display());
        let (learned, settings) = match self {
            ComparedClassifier::Attention(path) => {
                let attention = helpers.attention.as_ref().context("the generator was not read")?;
                let generated = attention.weights(classes).with_context(|| unusable(path))?;
                let novel = WeightMatrix::new(generated.weights().clone(), scale)?;
                (Learned::Weights(novel), json!({ "classifier": "attention", "attention": file(path) }))
            }
            ComparedClassifier::Diffusion { settings, logistic, .. } => {
                let model = diffuse(settings, *logistic, helpers.background.as_ref(), classes, dim)?;
                let kept = json!({ "classifier": "diffusion", "diffusion": settings, "logistic": logistic });
                (Learned::Model(Box::new(model)), kept)
            }
            ComparedClassifier::Hallucination(path) => {
                let episodes = helpers.episodes.as_ref().context("the hallucinator was not read")?;
                let logistic = Logistic::default();
                let linear = episodes.logistic(&logistic, classes, seed).with_context(|| unusable(path))?;
                let kept = json!({ "classifier": "hallucination", "episodes": file(path), "logistic": logistic,
                    "seed": seed });
                (Learned::Model(Box::new(Model::Linear(linear))), kept)
            }
            ComparedClassifier::Matching(path) => {
                let episodes = helpers.episodes.as_ref().context("the system was not read")?;
                let matching = episodes.classifier(classes, seed).with_context(|| unusable(path))?;
                let kept = json!({ "classifier": "pmn", "episodes": file(path), "seed": seed,
                    "system": settings_of(episodes) });
                (Learned::Model(Box::new(Model::Matching(matching))), kept)
            }
        };
        Ok(LearnedClassifier::new(learned, settings))
    }
}

/// The diffusion, alone or combined with a logistic regression on the clean examples of weight `share`.
fn diffuse(
    settings: &Diffusion,
    share: Option<f32>,
    background: Option<&Features>,
    classes: &[WeightedClass],
    dim: usize,
) -> Result<Model> {
    let none = Features::empty(dim);
    let diffusion = settings.train(classes, background.unwrap_or(&none))?;
    let Some(share) = share else { return Ok(Model::Diffusion(diffusion)) };
    let clean = classes.iter().map(|class| WeightedClass::new(class.clean(), &none, &[]));
    let clean = clean.collect::<labelsieve::Result<Vec<_>>>()?;
    let linear = Logistic::default().train(&clean, dim)?;
    Ok(Model::Fusion(Fusion::new(diffusion, linear, share)?))
}
