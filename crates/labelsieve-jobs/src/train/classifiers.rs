//! The kinds of classifiers of features, and the choice among them.

use std::path::Path;

use labelsieve::Features;
use labelsieve::classifier::auto::{ClassifierChoice, Contender, MAX_COMPARED_WITH_COSINE};
use labelsieve::classifier::discriminant::{BaseClasses, ClassSums, DiscriminantFit};
use labelsieve::classifier::{Cosine, Discriminant, LeftOut, Shrinkage, WeightMatrix};
use labelsieve_files::inputs::same_network::Origin;
use labelsieve_files::work::{Context, Monitor, Result};
use serde_json::{Value, json};

use super::{Classifier, ClassifierKind, Learned, LearnedClassifier, TrainingSet, discriminant_of};

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

    fn reads_all_examples(&self, n_rows: usize) -> bool {
        match self {
            Classifier::Auto { .. } => n_rows <= MAX_COMPARED_WITH_COSINE,
            Classifier::Discriminant { .. } => false,
            Classifier::Prototype | Classifier::Cosine { .. } => true,
        }
    }

    fn uses_covariance(&self) -> bool {
        matches!(self, Classifier::Auto { .. } | Classifier::Discriminant { .. })
    }

    fn learn(&self, _helpers: &(), set: &TrainingSet) -> Result<LearnedClassifier> {
        match *self {
            Classifier::Auto { shrinkage } => choose(set, shrinkage),
            Classifier::Discriminant { shrinkage } => Ok(of_discriminant(fit(set, shrinkage)?, shrinkage)),
            Classifier::Prototype => {
                let weights = set.engine.prototypes(set.classes, set.dim, set.scale)?;
                let left_out = LeftOut::of_prototypes(set.by_relevance, directions(set)?.as_ref())?;
                Ok(of_weights(weights, json!({ "classifier": "prototype" }), Some(&left_out)))
            }
            Classifier::Cosine { batch_size, epochs } => {
                let usual = Cosine::default();
                let cosine = Cosine {
                    batch_size: batch_size.unwrap_or(usual.batch_size),
                    epochs: epochs.unwrap_or(usual.epochs),
                    scale: set.scale,
                    ..usual
                };
                let weights = set.engine.cosine(&cosine, set.classes, set.dim, set.seed)?;
                let n_rows: usize =
                    set.classes.iter().map(|class| class.n_clean() + class.noisy().len()).sum();
                let left_out = (n_rows <= MAX_COMPARED_WITH_COSINE).then(|| left_out_of_cosine(set, &cosine));
                Ok(of_weights(weights, cosine_settings(&cosine, set.seed), left_out.transpose()?.as_ref()))
            }
        }
    }
}

/// The discriminant, unless prototypes or, with few examples, a cosine classifier are clearly better.
fn choose(set: &TrainingSet, shrinkage: Shrinkage) -> Result<LearnedClassifier> {
    let discriminant = fit(set, shrinkage)?;
    let prototypes = LeftOut::of_prototypes(set.by_relevance, directions(set)?.as_ref())?;
    let settings = Cosine { scale: set.scale, ..Cosine::default() };
    let is_compared = !set.classes.is_empty() && !discriminant.left_out.is_empty();
    let cosine = is_compared.then(|| left_out_of_cosine(set, &settings)).transpose()?;
    let start = f64::from(set.scale);
    let mut contenders = vec![
        Contender { name: "discriminant", left_out: &discriminant.left_out, start: 1.0 },
        Contender { name: "prototype", left_out: &prototypes, start },
    ];
    contenders.extend(cosine.as_ref().map(|left_out| Contender { name: "cosine", left_out, start }));
    let choice = ClassifierChoice::among(&contenders);
    let learned = match choice.chosen {
        "prototype" => {
            let sums = set.by_relevance;
            let rows = (0..sums.n_classes()).flat_map(|class| sums.direction(class)).collect();
            let weights = WeightMatrix::new(Features::new(rows, set.dim)?, set.scale)?;
            of_weights(weights, json!({ "classifier": "prototype", "chosen_by": "auto" }), Some(&prototypes))
        }
        "cosine" => {
            let weights = set.engine.cosine(&settings, set.classes, set.dim, set.seed)?;
            let mut kept = cosine_settings(&settings, set.seed);
            kept["chosen_by"] = "auto".into();
            of_weights(weights, kept, cosine.as_ref())
        }
        _ => {
            let mut learned = of_discriminant(discriminant, shrinkage);
            learned.settings["chosen_by"] = "auto".into();
            learned
        }
    };
    Ok(LearnedClassifier { choice: Some(choice), ..learned })
}

fn sums<'a>(set: &TrainingSet<'a>) -> Result<&'a ClassSums> {
    set.by_probability.context("the covariance was not measured")
}

fn fit(set: &TrainingSet, shrinkage: Shrinkage) -> Result<DiscriminantFit> {
    let sums = sums(set)?;
    let base = set.base.map(|base| base_classes(base, sums)).transpose()?;
    Ok(Discriminant { shrinkage }.fit(sums, base.as_ref(), set.watch)?)
}

/// The base classes of a discriminant as they are; class weights as means as long as those of the new classes.
fn base_classes(saved: &labelsieve_files::SavedClassifier, sums: &ClassSums) -> Result<BaseClasses> {
    if let Some(model) = discriminant_of(saved)? {
        return Ok(model.as_base());
    }
    let length = sums.mean_length();
    let directions = Features::new(saved.weight.clone(), saved.dim)?;
    let means = directions.rows().flatten().map(|&value| length * f64::from(value)).collect();
    Ok(BaseClasses { means, within: None })
}

fn directions(set: &TrainingSet) -> Result<Option<Features>> {
    let of = |base: &labelsieve_files::SavedClassifier| Features::new(base.weight.clone(), base.dim);
    Ok(set.base.map(of).transpose()?)
}

fn left_out_of_cosine(set: &TrainingSet, settings: &Cosine) -> Result<LeftOut> {
    let base = directions(set)?;
    Ok(LeftOut::of_cosine(settings, set.engine, set.classes, base.as_ref(), set.seed, set.watch)?)
}

fn of_discriminant(fit: DiscriminantFit, shrinkage: Shrinkage) -> LearnedClassifier {
    let settings = json!({
        "classifier": "discriminant",
        "shrinkage": fit.model.gamma(),
        "shrinkage_by": shrinkage.to_string(),
    });
    let confidence = (!fit.left_out.is_empty()).then(|| fit.left_out.confidence(1.0));
    let learned = Learned::Discriminant(Box::new(fit.model));
    LearnedClassifier { confidence, ..LearnedClassifier::new(learned, settings) }
}

fn of_weights(weights: WeightMatrix, settings: Value, left_out: Option<&LeftOut>) -> LearnedClassifier {
    let start = f64::from(weights.scale());
    let known = left_out.filter(|left_out| !left_out.is_empty());
    let confidence = known.map(|left_out| left_out.confidence(start));
    LearnedClassifier { confidence, ..LearnedClassifier::new(Learned::Weights(weights), settings) }
}

fn cosine_settings(cosine: &Cosine, seed: u64) -> Value {
    json!({ "classifier": "cosine", "cosine": cosine, "seed": seed })
}
