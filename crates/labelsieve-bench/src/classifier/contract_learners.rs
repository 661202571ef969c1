//! The classifiers that the contract is checked on.

use labelsieve::classifier::{WeightedClass, prototypes};
use labelsieve::{Classifier, Features};
use labelsieve_numerics::Watch;

use super::{AttentionTraining, Diffusion, EpisodicKind, EpisodicSizes, EpisodicTraining, Fusion, Logistic};

pub type Learn = Box<dyn Fn(&[WeightedClass], u64) -> Box<dyn Classifier> + Send + Sync>;

/// Numbers per feature.
pub const DIM: usize = 24;

/// Every way to learn a classifier.
pub fn all(base: &[Features]) -> Vec<(&'static str, Learn)> {
    let none = Features::empty(DIM);
    let sets: Vec<WeightedClass> =
        base.iter().map(|set| WeightedClass::new(set, &none, &[]).unwrap()).collect();
    let base_weights = prototypes(&sets, DIM, 10.0).unwrap();
    let short = AttentionTraining { steps: 5, ..AttentionTraining::default() };
    let attention = short.train(&base_weights, base, 0, |_, _| ()).unwrap();
    let system = |kind| {
        let short = EpisodicTraining { steps: 5, ways: 5, ..EpisodicTraining::default() };
        let sizes = EpisodicSizes { hidden: 16, noise: 4, ..EpisodicSizes::usual(DIM) };
        short.train(kind, sizes, base, 0, &Watch::new(), |_, _| ()).unwrap()
    };
    let prototypical = system(EpisodicKind::Prototypical);
    let hallucinator = system(EpisodicKind::Hallucination);
    let matching = system(EpisodicKind::PrototypeMatching);
    let diffusion = Diffusion { neighbours: 8, ..Diffusion::default() };
    let spread = move |classes: &[WeightedClass]| diffusion.train(classes, &Features::empty(DIM)).unwrap();
    let logistic = |classes: &[WeightedClass]| Logistic::default().train(classes, DIM).unwrap();
    vec![
        ("attention", Box::new(move |classes, _| Box::new(attention.weights(classes).unwrap()))),
        ("logistic", Box::new(move |classes, _| Box::new(logistic(classes)))),
        ("diffusion", Box::new(move |classes, _| Box::new(spread(classes)))),
        (
            "diffusion, logistic",
            Box::new(move |classes, _| {
                Box::new(Fusion::new(spread(classes), logistic(classes), 0.5).unwrap())
            }),
        ),
        (
            "prototypical",
            Box::new(move |classes, seed| Box::new(prototypical.classifier(classes, seed).unwrap())),
        ),
        (
            "hallucination",
            Box::new(move |classes, seed| {
                Box::new(hallucinator.logistic(&Logistic::default(), classes, seed).unwrap())
            }),
        ),
        ("pmn", Box::new(move |classes, seed| Box::new(matching.classifier(classes, seed).unwrap()))),
    ]
}
