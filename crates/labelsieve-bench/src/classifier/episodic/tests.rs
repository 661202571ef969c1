//! Systems that learn from episodes against PyTorch, against finite differences, and against themselves.

use labelsieve::classifier::{WeightedClass, prototypes};
use labelsieve::evaluation::accuracy;
use labelsieve::synthetic::Recipe;
use labelsieve::{Classifier, Features};
use labelsieve_numerics::Watch;

use super::training::{Descent, Episode, EpisodeClass, mean_gradient};
use super::*;
use crate::classifier::Logistic;
use crate::golden::{assert_close, count, features, numbers, read};

const KINDS: [(EpisodicKind, &str); 3] = [
    (EpisodicKind::Prototypical, "prototypical"),
    (EpisodicKind::Hallucination, "hallucination"),
    (EpisodicKind::PrototypeMatching, "prototype-matching"),
];

struct Golden {
    json: serde_json::Value,
    sizes: EpisodicSizes,
    sets: Vec<Features>,
    /// By step.
    steps: Vec<Vec<Episode>>,
}

fn golden() -> Golden {
    let json = read("episodic");
    let list = |value: &serde_json::Value| value.as_array().unwrap().clone();
    let places = |value: &serde_json::Value| -> Vec<usize> { list(value).iter().map(count).collect() };
    let class = |value: &serde_json::Value| EpisodeClass {
        class: count(&value["class"]),
        examples: places(&value["examples"]),
        queries: places(&value["queries"]),
    };
    let episode = |value: &serde_json::Value| Episode {
        classes: list(&value["classes"]).iter().map(class).collect(),
        noise: numbers(&value["noise"]),
    };
    Golden {
        sizes: serde_json::from_value(json["sizes"].clone()).unwrap(),
        sets: list(&json["sets"]).iter().map(features).collect(),
        steps: list(&json["steps"]).iter().map(|s| list(s).iter().map(episode).collect()).collect(),
        json,
    }
}

impl Golden {
    fn start(&self, kind: EpisodicKind) -> EpisodicModel {
        let tensors = kind.layout(&self.sizes).into_iter().map(|(name, shape, _)| Tensor {
            name: name.to_owned(),
            shape,
            values: numbers(&self.json["start"][name]),
        });
        EpisodicModel::new(kind, self.sizes, tensors.collect()).unwrap()
    }
}

#[test]
fn loss_gradient_and_steps_agree_with_pytorch() {
    let golden = golden();
    let settings = EpisodicTraining { momentum: 0.9, decay: 5e-4, ..EpisodicTraining::default() };
    for (kind, name) in KINDS {
        let expected = &golden.json["systems"][name];
        let start = golden.start(kind);
        let (loss, gradients) = mean_gradient(&start, &golden.sets, &golden.steps[0]);
        assert!((loss - expected["loss_f64"].as_f64().unwrap()).abs() < 2e-5, "{name}: {loss}");
        for (tensor, gradient) in start.tensors.iter().zip(&gradients) {
            assert_close(gradient, &numbers(&expected["gradient_f64"][&tensor.name]), 1e-5);
        }
        let mut descent = Descent::new(start);
        for episodes in &golden.steps {
            descent.take(&golden.sets, episodes, 0.05, &settings);
        }
        for tensor in &descent.model.tensors {
            assert_close(&tensor.values, &numbers(&expected["after_f64"][&tensor.name]), 5e-5);
        }
    }
}

#[test]
fn the_gradient_is_what_finite_differences_say() {
    let golden = golden();
    const STEP: f32 = 1e-3; // small enough to stay on one side of most ReLUs
    for (kind, name) in KINDS {
        let start = golden.start(kind);
        let (_, gradients) = mean_gradient(&start, &golden.sets, &golden.steps[0]);
        for (t, gradient) in gradients.iter().enumerate() {
            for i in (0..gradient.len()).step_by((gradient.len() / 5).max(1)) {
                let loss_at = |shift: f32| {
                    let mut moved = start.clone();
                    moved.tensors[t].values[i] += shift;
                    mean_gradient(&moved, &golden.sets, &golden.steps[0]).0
                };
                let expected = (loss_at(STEP) - loss_at(-STEP)) / f64::from(2.0 * STEP);
                let found = f64::from(gradient[i]);
                let tensor = &start.tensors[t].name;
                assert!((found - expected).abs() < 2e-3, "{name}, {tensor}, {i}: {found}, {expected}");
            }
        }
    }
}

#[test]
fn scores_by_relevance_agree_with_pytorch() {
    let golden = golden();
    let model = golden.start(EpisodicKind::Prototypical);
    let relevance = numbers(&golden.json["relevance"]);
    let none = Features::empty(golden.sizes.dim);
    let first = golden.sets[0].select(&[0, 1]);
    let second = &golden.sets[1];
    let classes = [
        WeightedClass::new(&first, second, &relevance).unwrap(),
        WeightedClass::new(&golden.sets[2], &none, &[]).unwrap(),
    ];
    let found = model.classifier(&classes, 0).unwrap().scores(&golden.sets[3]);
    assert_close(&found.values, &numbers(&golden.json["scores_f64"]), 1e-4);
}

/// Base classes, and new ones with one clean example each, of the same kind.
fn generated_task() -> (Vec<Features>, Vec<Features>, Features, Vec<usize>) {
    let recipe =
        Recipe { dim: 32, n_classes: 30, n_clean: 40, largest_pool: 0, n_test: 30, ..Recipe::default() };
    let task = recipe.generate(5);
    let sets: Vec<Features> = task.classes.into_iter().map(|class| class.clean).collect();
    let novel = sets[20..].iter().map(|set| set.select(&[0])).collect();
    let rows: Vec<usize> = (0..task.test.len()).filter(|&row| task.test_labels[row] >= 20).collect();
    let labels = rows.iter().map(|&row| task.test_labels[row] - 20).collect();
    (sets[..20].to_vec(), novel, task.test.select(&rows), labels)
}

#[test]
fn an_untrained_system_classifies_by_means_and_copies_its_examples() {
    let (_, novel, test, _) = generated_task();
    let none = Features::empty(32);
    let classes: Vec<WeightedClass> =
        novel.iter().map(|clean| WeightedClass::new(clean, &none, &[]).unwrap()).collect();
    let expected: Vec<f32> = prototypes(&classes, 32, 1.0)
        .unwrap()
        .scores(&test)
        .values
        .iter()
        .map(|cosine| 10.0 * cosine)
        .collect();
    for kind in [EpisodicKind::Prototypical, EpisodicKind::Hallucination] {
        let model = EpisodicModel::initial(kind, EpisodicSizes::usual(32), 1).unwrap();
        assert_close(&model.classifier(&classes, 0).unwrap().scores(&test).values, &expected, 1e-4);
    }
    let model = EpisodicModel::initial(EpisodicKind::Hallucination, EpisodicSizes::usual(32), 1).unwrap();
    for (hallucinated, clean) in model.hallucinations(&classes, 7).unwrap().iter().zip(&novel) {
        assert_eq!(hallucinated.len(), 5);
        hallucinated.rows().for_each(|row| assert_close(row, clean.row(0), 1e-6));
    }
}

#[test]
fn training_lowers_the_loss_and_repeats_itself_at_any_number_of_threads() {
    let (sets, novel, test, labels) = generated_task();
    let none = Features::empty(32);
    let classes: Vec<WeightedClass> =
        novel.iter().map(|clean| WeightedClass::new(clean, &none, &[]).unwrap()).collect();
    let settings = EpisodicTraining { steps: 60, episodes: 2, ways: 8, ..EpisodicTraining::default() };
    let sizes = EpisodicSizes { hidden: 24, noise: 8, generated: 3, ..EpisodicSizes::usual(32) };
    let counts: Vec<usize> = sets.iter().map(Features::len).collect();
    let fresh: Vec<Episode> =
        (0..40).map(|i| settings.episode(&sizes, &counts, Stream::new(99).branch(i))).collect();
    for (kind, name) in KINDS {
        let train = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut losses = Vec::new();
            let trained = pool.install(|| {
                settings.train(kind, sizes, &sets, 1, &Watch::new(), |_, loss| losses.push(loss)).unwrap()
            });
            (trained, losses)
        };
        let (trained, losses) = train(1);
        assert_eq!((trained.clone(), losses.clone()), train(3), "{name}");
        let start = EpisodicModel::initial(kind, sizes, 1).unwrap();
        let before = mean_gradient(&start, &sets, &fresh).0;
        let after = mean_gradient(&trained, &sets, &fresh).0;
        assert!(after < before, "{name}: {after} after, {before} before");
        let learned = trained.classifier(&classes, 3).unwrap();
        assert_eq!(learned, trained.classifier(&classes, 3).unwrap());
        let reached = accuracy(&learned, &test, &labels).unwrap().top_1;
        assert!(reached > 0.3, "{name}: {reached}"); // one in ten by chance
        if kind.hallucinates() {
            let linear = trained.logistic(&Logistic::default(), &classes, 3).unwrap();
            assert!(accuracy(&linear, &test, &labels).unwrap().top_1 > 0.3, "{name}");
        }
    }
}

#[test]
fn tensors_that_do_not_fit_and_systems_without_a_hallucinator_are_refused() {
    let golden = golden();
    let sound = golden.start(EpisodicKind::Prototypical);
    let kind = EpisodicKind::PrototypeMatching;
    let error = EpisodicModel::new(kind, golden.sizes, sound.tensors.clone()).unwrap_err().to_string();
    assert_eq!(error, "hallucinator.first: expected a tensor of this name, found none");
    let mut short = sound.tensors.clone();
    short[0].values.pop();
    let error = EpisodicModel::new(sound.kind, golden.sizes, short).unwrap_err().to_string();
    assert!(error.starts_with("embedding.first: expected "), "{error}");
    let none = Features::empty(golden.sizes.dim);
    let class = WeightedClass::new(&golden.sets[0], &none, &[]).unwrap();
    let error = sound.logistic(&Logistic::default(), &[class], 0).unwrap_err().to_string();
    assert_eq!(error, "hallucinations: expected a system that makes some, found none");
    let train = |settings: EpisodicTraining| {
        let on_step = |_: usize, _: f64| ();
        settings
            .train(sound.kind, golden.sizes, &golden.sets, 0, &Watch::new(), on_step)
            .unwrap_err()
            .to_string()
    };
    let error = train(EpisodicTraining { ways: 1, ..EpisodicTraining::default() });
    assert!(error.starts_with("ways: expected ") && error.ends_with("found 1"), "{error}");
}
