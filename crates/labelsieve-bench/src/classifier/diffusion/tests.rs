//! The diffusion against numpy and on numbers that fit in a head.

use labelsieve::evaluation::accuracy;
use labelsieve::synthetic::Recipe;

use super::*;
use crate::golden::{assert_close, count, features, numbers, read};

#[test]
fn the_diffusion_agrees_with_dense_matrices_in_pytorch_after_every_step() {
    let golden = read("diffusion");
    let list = |name: &str| golden[name].as_array().unwrap().iter().map(features).collect::<Vec<_>>();
    let clean = list("clean");
    let pools = list("pools");
    let background = features(&golden["background"]);
    let test = features(&golden["test"]);
    let neighbours = count(&golden["neighbours"]);
    let pools: Vec<&Features> = pools.iter().collect();
    let clean: Vec<&Features> = clean.iter().collect();
    let collection = Collection::new(&pools, &background, neighbours).unwrap();
    for (rule, name) in [(TextRule::Ignored, "scores_f64"), (TextRule::Kept, "scores_by_text_f64")] {
        let settings = Diffusion { neighbours, text: rule, ..Diffusion::default() };
        let mut spread = settings.start(&collection, &clean).unwrap();
        let reach = spread.reach(&test);
        for expected in golden[name].as_array().unwrap() {
            assert_close(&spread.scores(&reach).values, &numbers(expected), 1e-5);
            spread.step();
        }
    }
}

#[test]
fn an_example_has_the_labels_of_its_nearest_rows() {
    let rows = Features::new(vec![1.0, 0.0, 0.0, 1.0, -1.0, 0.0], 2).unwrap();
    let labels =
        SparseLabels { n_classes: 2, offsets: vec![0, 1, 2, 2], classes: vec![0, 1], masses: vec![0.9, 0.3] };
    let classifier = DiffusionClassifier::new(rows, labels, 2).unwrap();
    let examples = Features::new(vec![1.0, 1.0, -1.0, 0.1], 2).unwrap();
    // The first has both labels, 0.9 and 0.3; the second the row without a label and class 1.
    assert_close(&classifier.scores(&examples).values, &[0.75, 0.25, 0.0, 1.0], 1e-6);
}

#[test]
fn labels_that_do_not_fit_their_rows_are_refused() {
    let rows = Features::new(vec![1.0, 0.0], 2).unwrap();
    let sound = SparseLabels { n_classes: 2, offsets: vec![0, 1], classes: vec![1], masses: vec![1.0] };
    let refused =
        |labels: SparseLabels| DiffusionClassifier::new(rows.clone(), labels, 1).unwrap_err().to_string();
    assert!(DiffusionClassifier::new(rows.clone(), sound.clone(), 1).is_ok());
    assert_eq!(
        refused(SparseLabels { offsets: vec![0], ..sound.clone() }),
        "offsets of labels: expected 2 values, found 1"
    );
    assert_eq!(
        refused(SparseLabels { classes: vec![2], ..sound.clone() }),
        "class of a label: expected a class of the classifier, found 2"
    );
    assert_eq!(
        refused(SparseLabels { masses: vec![f32::NAN], ..sound }),
        "mass of a label: expected a non-negative number, found NaN"
    );
}

#[test]
fn unlabelled_rows_help_where_one_clean_example_says_little() {
    let recipe = Recipe { n_classes: 10, n_clean: 1, largest_pool: 200, ..Recipe::default() };
    let task = recipe.generate(4);
    let weights: Vec<Vec<f32>> = task.classes.iter().map(|class| vec![0.0; class.noisy.len()]).collect();
    let classes: Vec<WeightedClass> = (task.classes.iter().zip(&weights))
        .map(|(class, weights)| WeightedClass::new(&class.clean, &class.noisy, weights).unwrap())
        .collect();
    let reach = |iterations: usize| {
        let settings = Diffusion { neighbours: 10, iterations, ..Diffusion::default() };
        let learned = settings.train(&classes, &Features::empty(recipe.dim)).unwrap();
        accuracy(&learned, &task.test, &task.test_labels).unwrap().top_1
    };
    let before = reach(0);
    let after = reach(4);
    assert!(after > before + 0.2, "{after} after four steps, {before} before");
}
