//! Attention trained at every instruction level of the machine: how far the results may differ.

#[path = "../../labelsieve/tests/every_level/mod.rs"]
mod every_level;

use labelsieve::classifier::{WeightMatrix, WeightedClass, prototypes};
use labelsieve::synthetic::{Noise, Recipe};
use labelsieve::{Classifier, Features};
use labelsieve_bench::classifier::AttentionTraining;

#[test]
fn attention_agrees_to_rounding() {
    let recipe = Recipe {
        dim: 67,
        n_classes: 4,
        n_clean: 3,
        largest_pool: 500,
        noise: Noise::Clusters(3),
        ..Recipe::default()
    };
    let task = recipe.generate(5);
    let ones: Vec<Vec<f32>> = task.classes.iter().map(|class| vec![0.5; class.noisy.len()]).collect();
    let classes: Vec<WeightedClass> = task
        .classes
        .iter()
        .zip(&ones)
        .map(|(class, ones)| WeightedClass::new(&class.clean, &class.noisy, ones).unwrap())
        .collect();
    let scores = |classifier: &WeightMatrix| classifier.scores(&task.test).values;
    let sets: Vec<Features> = task.classes.iter().map(|class| class.noisy.clone()).collect();
    let base = prototypes(&classes, 67, 10.0).unwrap();
    let settings = AttentionTraining { steps: 20, posing: 2, ..AttentionTraining::default() };
    let attention = || {
        let learned = settings.train(&base, &sets, 3, |_, _| ()).unwrap();
        scores(&learned.weights(&classes).unwrap())
    };
    assert!(every_level::difference("scores with attention", attention) < 1e-4);
}
