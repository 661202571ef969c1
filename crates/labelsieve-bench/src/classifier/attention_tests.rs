//! The second training stage against finite differences, against PyTorch, and against itself.

use labelsieve::classifier::{WeightedClass, prototypes};
use labelsieve::evaluation::accuracy;
use labelsieve::synthetic::Recipe;

use super::*;
use crate::golden::{assert_close, count, numbers, read};

struct Golden {
    base: WeightMatrix,
    sets: Vec<Features>,
    start: AttentionParameters,
    /// By step.
    episodes: Vec<Vec<Episode>>,
    settings: AttentionTraining,
    json: serde_json::Value,
}

fn parameters(json: &serde_json::Value) -> AttentionParameters {
    AttentionParameters {
        query: numbers(&json["query"]),
        keys: numbers(&json["keys"]),
        average: numbers(&json["average"]),
        attended: numbers(&json["attended"]),
        gamma: json["gamma"].as_f64().unwrap() as f32,
    }
}

fn golden() -> Golden {
    let json = read("attention");
    let dim = count(&json["dim"]);
    let list = |value: &serde_json::Value| value.as_array().unwrap().clone();
    let posing = |value: &serde_json::Value| PosingClass {
        class: count(&value["class"]),
        examples: list(&value["examples"]).iter().map(count).collect(),
    };
    let episode = |value: &serde_json::Value| Episode {
        posing: list(&value["posing"]).iter().map(posing).collect(),
        queries: list(&value["queries"]).iter().map(|q| (count(&q[0]), count(&q[1]))).collect(),
    };
    Golden {
        base: WeightMatrix::new(Features::new(numbers(&json["base"]), dim).unwrap(), 8.0).unwrap(),
        sets: list(&json["sets"]).iter().map(|set| Features::new(numbers(set), dim).unwrap()).collect(),
        start: parameters(&json["start"]),
        episodes: list(&json["steps"]).iter().map(|s| list(s).iter().map(episode).collect()).collect(),
        settings: AttentionTraining { momentum: 0.9, decay: 5e-4, ..AttentionTraining::default() },
        json,
    }
}

#[track_caller]
fn assert_parameters_close(
    mut found: AttentionParameters,
    mut expected: AttentionParameters,
    tolerance: f32,
) {
    for (found, expected) in found.slices_mut().into_iter().zip(expected.slices_mut()) {
        assert_close(found, expected, tolerance);
    }
}

#[test]
fn loss_and_gradient_of_a_step_agree_with_pytorch() {
    let Golden { base, sets, start, episodes, json, .. } = golden();
    let (loss, gradient) = mean_gradient(&start, &base, &sets, &episodes[0]);
    assert!((loss - json["loss_f64"].as_f64().unwrap()).abs() < 1e-5, "{loss}");
    assert_parameters_close(gradient, parameters(&json["gradient_f64"]), 2e-6);
}

#[test]
fn several_steps_agree_with_pytorch() {
    let Golden { base, sets, start, episodes, settings, json } = golden();
    let mut descent = Descent::new(start);
    for episodes in &episodes {
        descent.take(&base, &sets, episodes, 0.1, &settings);
    }
    assert_parameters_close(descent.parameters, parameters(&json["after_f64"]), 2e-5);
}

#[test]
fn generated_weights_agree_with_pytorch_when_examples_are_weighted() {
    let Golden { base, sets, start, json, .. } = golden();
    let generator = Attention::new(start, base).unwrap();
    let clean = sets[0].select(&[0, 1]);
    let noisy = sets[1].clone();
    let relevance = numbers(&json["relevance"]);
    let class = WeightedClass::new(&clean, &noisy, &relevance).unwrap();
    let weights = generator.weights(&[class]).unwrap();
    assert_close(weights.weights().row(0), &numbers(&json["generated_f64"]), 1e-6);
}

#[test]
fn the_gradient_is_what_finite_differences_say() {
    let Golden { base, sets, start, episodes, .. } = golden();
    let (_, mut gradient) = mean_gradient(&start, &base, &sets, &episodes[0]);
    const STEP: f32 = 4e-3; // f32 losses: smaller steps drown in rounding
    for part in 0..5 {
        let len = gradient.slices_mut()[part].len();
        for i in (0..len).step_by((len / 12).max(1)) {
            let loss_at = |shift: f32| {
                let mut moved = start.clone();
                moved.slices_mut()[part][i] += shift;
                mean_gradient(&moved, &base, &sets, &episodes[0]).0
            };
            let expected = (loss_at(STEP) - loss_at(-STEP)) / f64::from(2.0 * STEP);
            let found = f64::from(gradient.slices_mut()[part][i]);
            assert!((found - expected).abs() < 3e-4, "part {part}, number {i}: {found}, {expected}");
        }
    }
}

/// Base classes, and novel ones with one clean example each, of the same kind.
fn generated_task() -> (WeightMatrix, Vec<Features>, Vec<Features>, Features, Vec<usize>) {
    let recipe =
        Recipe { dim: 32, n_classes: 30, n_clean: 40, largest_pool: 0, n_test: 30, ..Recipe::default() };
    let task = recipe.generate(5);
    let sets: Vec<Features> = task.classes.into_iter().map(|class| class.clean).collect();
    let none = Features::empty(32);
    let base_sets = sets[..20].to_vec();
    let novel = &sets[20..];
    let classes: Vec<WeightedClass> =
        base_sets.iter().map(|set| WeightedClass::new(set, &none, &[]).unwrap()).collect();
    let base = prototypes(&classes, 32, 10.0).unwrap();
    let novel = novel.iter().map(|set| set.select(&[0])).collect();
    let rows: Vec<usize> = (0..task.test.len()).filter(|&row| task.test_labels[row] >= 20).collect();
    let labels = rows.iter().map(|&row| task.test_labels[row] - 20).collect();
    (base, base_sets, novel, task.test.select(&rows), labels)
}

#[test]
fn training_lowers_the_loss_and_repeats_itself_at_any_number_of_threads() {
    let (base, sets, novel, test, labels) = generated_task();
    let settings = AttentionTraining { steps: 150, episodes: 4, ..AttentionTraining::default() };
    let train = |n| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
        let mut losses = Vec::new();
        let trained = pool.install(|| settings.train(&base, &sets, 1, |_, loss| losses.push(loss)).unwrap());
        (trained, losses)
    };
    let (trained, losses) = train(1);
    assert_eq!((trained.clone(), losses.clone()), train(3));
    let mean = |losses: &[f64]| losses.iter().sum::<f64>() / losses.len() as f64;
    let before = mean(&losses[..20]);
    let after = mean(&losses[130..]);
    assert!(after < 0.98 * before, "{after} after, {before} before");

    // On classes it never saw, the trained generator must at least not lose to a generator as it starts.
    let none = Features::empty(32);
    let classes: Vec<WeightedClass> =
        novel.iter().map(|clean| WeightedClass::new(clean, &none, &[]).unwrap()).collect();
    let reach = |generator: &Attention| {
        accuracy(&generator.weights(&classes).unwrap(), &test, &labels).unwrap().top_1
    };
    let start = Attention::new(AttentionParameters::initial(20, 32, 1), base.clone()).unwrap();
    assert!(reach(&trained) >= reach(&start), "{} trained, {} at the start", reach(&trained), reach(&start));
}

#[test]
fn episodes_never_classify_the_examples_that_made_a_weight() {
    let settings = AttentionTraining { posing: 2, most_shots: 9, queries: 4, ..AttentionTraining::default() };
    for seed in 0..200 {
        let episode = settings.episode(&[2, 3, 50, 7], Stream::new(seed));
        assert_eq!(episode.posing.len(), 2);
        for posing in &episode.posing {
            assert!(!posing.examples.is_empty());
            let queries = episode.queries.iter().filter(|(class, _)| *class == posing.class);
            assert!(queries.clone().count() >= 1);
            assert!(queries.clone().all(|(_, row)| !posing.examples.contains(row)));
        }
    }
}

#[test]
fn base_classes_that_cannot_pose_are_refused() {
    let Golden { base, sets, .. } = golden();
    let train = |settings: AttentionTraining, sets: &[Features]| {
        settings.train(&base, sets, 0, |_, _| ()).unwrap_err().to_string()
    };
    let usual = AttentionTraining { posing: 2, steps: 1, ..AttentionTraining::default() };
    assert_eq!(
        train(AttentionTraining { posing: 7, ..usual }, &sets),
        "base classes: expected more than the posing ones, found 7"
    );
    assert_eq!(train(usual, &sets[1..]), "sets of base examples: expected 7 values, found 6");
    let mut short = sets.clone();
    short[3] = short[3].select(&[0]);
    assert_eq!(train(usual, &short), "examples of a base class: expected at least 2, found 1");
    assert_eq!(
        train(AttentionTraining { learning_rate: f32::NAN, ..usual }, &sets),
        "final_learning_rate: expected above 0 and at most learning_rate, found 0.001"
    );
}
