//! The discriminant against explicit inverses and scikit-learn, and at its edges.

use labelsieve_numerics::Watch;
use serde_json::Value;

use super::*;
use crate::classifier::WeightedClass;
use crate::features::Features;
use crate::golden::{assert_close, features, numbers, read};
use crate::model::Classifier as _;
use crate::synthetic::{Recipe, SyntheticTask};

/// The classes of the golden file.
struct Case {
    clean: Vec<Features>,
    noisy: Vec<Features>,
    weights: Vec<Vec<f32>>,
    golden: Value,
}

impl Case {
    fn read() -> Case {
        let golden = read("discriminant");
        let list = |name: &str| golden[name].as_array().unwrap().clone();
        Case {
            clean: list("clean").iter().map(features).collect(),
            noisy: list("noisy").iter().map(features).collect(),
            weights: list("weights").iter().map(numbers).collect(),
            golden,
        }
    }

    fn sums(&self) -> ClassSums {
        let classes = weighted(&self.clean, &self.noisy, &self.weights);
        ClassSums::of(&classes, self.clean[0].dim()).unwrap()
    }

    fn gamma(&self) -> f64 {
        self.golden["gamma"].as_f64().unwrap()
    }
}

fn weighted<'a>(
    clean: &'a [Features],
    noisy: &'a [Features],
    weights: &'a [Vec<f32>],
) -> Vec<WeightedClass<'a>> {
    let classes = clean.iter().zip(noisy).zip(weights);
    classes.map(|((clean, noisy), weights)| WeightedClass::new(clean, noisy, weights).unwrap()).collect()
}

fn fit(sums: &ClassSums, shrinkage: Shrinkage) -> DiscriminantFit {
    Discriminant { shrinkage }.fit(sums, None, Watch::unwatched()).unwrap()
}

fn row(values: &[f32]) -> Features {
    Features::new(values.to_vec(), values.len()).unwrap()
}

#[test]
fn two_classes_that_fit_in_a_head() {
    // East: (1, 0) and (0.6, 0.8), north: (0, 1) and (0.6, 0.8). Means (0.8, 0.4) and (0.3, 0.9); both have the scatter
    // ±(0.2, −0.4) and ±(0.3, −0.1): Σ = ½ [0.04 + 0.09, −0.08 − 0.03; ·, 0.16 + 0.01] = [0.065 −0.055; −0.055 0.085].
    let none = Features::empty(2);
    let middle = row(&[0.6, 0.8]);
    let east = row(&[1.0, 0.0]).stack(&middle).unwrap();
    let north = row(&[0.0, 1.0]).stack(&middle).unwrap();
    let classes = [&east, &north].map(|clean| WeightedClass::new(clean, &none, &[]).unwrap());
    let sums = ClassSums::of(&classes, 2).unwrap();
    let within = sums.within();
    for (found, expected) in within.matrix().iter().zip([0.065, -0.055, -0.055, 0.085]) {
        assert!((found - expected).abs() < 1e-7, "{found} {expected}");
    }
    // γ = 1 leaves S = 0.075 I: (1, 0) is √((0.04 + 0.16) / 0.075) from the mean of east.
    let model = fit(&sums, Shrinkage::Fixed(1.0)).model;
    let query = row(&[1.0, 0.0]);
    let scores = model.scores(&query);
    assert_eq!(scores.best(0), 0);
    assert!((model.distances(&query, &scores)[0] - (0.2f32 / 0.075).sqrt()).abs() < 1e-5);
    // score = −½ d² up to what is equal for both: ½ (0.49 + 0.81 − 0.2) / 0.075.
    let gap = scores.values[0] - scores.values[1];
    assert!((gap - 0.5 * (1.3 - 0.2) / 0.075).abs() < 1e-4, "{gap}");
}

#[test]
fn distances_and_covariance_agree_with_explicit_inverses() {
    let case = Case::read();
    let fitted = fit(&case.sums(), Shrinkage::Fixed(case.gamma()));
    let within: Vec<f32> = fitted.model.within().matrix().iter().map(|&value| value as f32).collect();
    assert_close(&within, &numbers(&case.golden["within_f64"]), 1e-6);
    let test = features(&case.golden["test"]);
    let scores = fitted.model.scores(&test);
    let squared = numbers(&case.golden["squared_f64"]);
    for (scores, squared) in scores.rows().zip(squared.chunks_exact(3)) {
        let expected: Vec<f32> = squared.iter().map(|d| -0.5 * (d - squared[0])).collect();
        let found: Vec<f32> = scores.iter().map(|score| score - scores[0]).collect();
        assert_close(&found, &expected, 1e-3);
    }
    let nearest: Vec<f32> =
        squared.chunks_exact(3).map(|row| row.iter().copied().fold(f32::INFINITY, f32::min).sqrt()).collect();
    assert_close(&fitted.model.distances(&test, &scores), &nearest, 1e-3);
}

#[test]
fn left_out_examples_agree_with_learning_everything_again_without_them() {
    let case = Case::read();
    let left_out = fit(&case.sums(), Shrinkage::Fixed(case.gamma())).left_out;
    assert_eq!(left_out.labels, [0, 0, 1, 1, 2, 2]);
    let squared: Vec<f32> = left_out.scores.iter().map(|score| -2.0 * score).collect();
    assert_close(&squared, &numbers(&case.golden["left_out_f64"]), 2e-3);
    for (distance, squared) in left_out.distances.iter().zip(squared.chunks_exact(3)) {
        assert!((distance.powi(2) - squared.iter().copied().fold(f32::INFINITY, f32::min)).abs() < 1e-3);
    }
}

#[test]
fn equal_weights_give_the_posteriors_and_the_shrinkage_of_scikit_learn() {
    let mut case = Case::read();
    case.weights.iter_mut().for_each(|weights| weights.fill(1.0));
    let sums = case.sums();
    let spread = sums.spread();
    let expected = |name: &str| case.golden[name].as_f64().unwrap();
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-5, "{a} {b}");
    close(spread.ledoit_wolf(&sums.within()), expected("ledoit_wolf_f64"));
    close(spread.oas(&sums.within()), expected("oas_f64"));
    let model = fit(&sums, Shrinkage::Fixed(case.gamma())).model;
    let scores = model.scores(&features(&case.golden["test"]));
    let found: Vec<f32> =
        scores.rows().flat_map(|row| crate::classifier::left_out::probabilities(row, 1.0)).collect();
    assert_close(&found, &numbers(&case.golden["probabilities_f64"]), 1e-4);
}

fn task(dim: usize, largest_pool: usize) -> SyntheticTask {
    Recipe { dim, n_classes: 5, n_clean: 3, largest_pool, n_test: 10, ..Recipe::default() }.generate(4)
}

fn sums_of(task: &SyntheticTask) -> ClassSums {
    let (clean, noisy): (Vec<Features>, Vec<Features>) =
        task.classes.iter().map(|class| (class.clean.clone(), class.noisy.clone())).unzip();
    let weight = |relevant: &bool| if *relevant { 0.9 } else { 0.1 };
    let weights: Vec<Vec<f32>> =
        task.classes.iter().map(|class| class.truth.iter().map(weight).collect()).collect();
    let classes = weighted(&clean, &noisy, &weights);
    ClassSums::of(&classes, clean[0].dim()).unwrap()
}

#[test]
fn the_span_of_few_rows_gives_what_all_columns_give() {
    let task = task(400, 30);
    let sums = sums_of(&task);
    let within = sums.within();
    assert!(within.basis().is_some() && within.rank() < 200, "{}", within.rank());
    let narrow = fit(&sums, Shrinkage::Fixed(0.05)).model;
    let whole = Within::pooled(&within, 1, &within, 1);
    assert!(whole.basis().is_none());
    let wide = FittedDiscriminant::new(narrow.means().to_vec(), whole, 5, 0.05).unwrap();
    let found = narrow.scores(&task.test);
    let expected = wide.scores(&task.test);
    let relative = |scores: &[f32]| scores.iter().map(|score| score - scores[0]).collect::<Vec<_>>();
    for (found, expected) in found.rows().zip(expected.rows()) {
        assert_close(&relative(found), &relative(expected), 0.02);
    }
    let found = narrow.distances(&task.test, &found);
    assert_close(&found, &wide.distances(&task.test, &expected), 1e-2);
}

#[test]
fn a_model_from_its_parts_and_one_learned_on_other_threads_are_the_same() {
    let task = task(32, 100);
    let with_threads = |n: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
        pool.install(|| fit(&sums_of(&task), Shrinkage::Auto))
    };
    let fitted = with_threads(1);
    let again = with_threads(3);
    assert_eq!(fitted.left_out, again.left_out);
    let model = &fitted.model;
    let scores = model.scores(&task.test);
    assert_eq!(scores, again.model.scores(&task.test));
    let within = model.within().clone();
    let copy = FittedDiscriminant::new(model.means().to_vec(), within, model.n_pooled(), model.gamma());
    assert_eq!(copy.unwrap().scores(&task.test), scores);
}

#[test]
fn base_classes_join_by_their_means_and_share_their_covariance() {
    let task = task(16, 60);
    let sums = sums_of(&task);
    let alone = fit(&sums, Shrinkage::Fixed(0.1)).model;
    let base = alone.as_base();
    let discriminant = Discriminant { shrinkage: Shrinkage::Fixed(0.1) };
    let both = discriminant.fit(&sums, Some(&base), Watch::unwatched()).unwrap();
    assert_eq!((both.model.n_classes(), both.model.n_pooled()), (10, 10));
    // The covariance is that of the same classes twice, so a base class scores as its twin does.
    for (found, expected) in both.model.within().matrix().iter().zip(alone.within().matrix()) {
        assert!((found - expected).abs() < 1e-12);
    }
    let scores = both.model.scores(&task.test);
    assert!(scores.rows().all(|row| (0..5).all(|c| (row[c] - row[c + 5]).abs() < 1e-3)));
    assert!(both.left_out.labels.iter().all(|&label| label >= 5));
    let by_means = BaseClasses { means: base.means, within: None };
    let both = discriminant.fit(&sums, Some(&by_means), Watch::unwatched()).unwrap();
    assert_eq!((both.model.n_classes(), both.model.n_pooled()), (10, 5));
}

#[test]
fn classes_without_spread_and_single_examples_have_finite_scores() {
    let none = Features::empty(3);
    let east = row(&[1.0, 0.0, 0.0]);
    let north = row(&[0.0, 1.0, 0.0]);
    let zero = row(&[0.0, 0.0, 0.0]);
    let class = |clean| WeightedClass::new(clean, &none, &[]).unwrap();
    for classes in [vec![class(&east)], vec![class(&east), class(&north)], vec![class(&zero), class(&east)]] {
        let sums = ClassSums::of(&classes, 3).unwrap();
        let fitted = fit(&sums, Shrinkage::Auto);
        assert_eq!((fitted.model.gamma(), fitted.left_out.len()), (1.0, 0));
        for query in [&east, &north, &zero] {
            let scores = fitted.model.scores(query);
            let distance = fitted.model.distances(query, &scores)[0];
            assert!(
                distance.is_finite() && scores.values.iter().all(|score| score.is_finite()),
                "{scores:?}"
            );
        }
        let scores = fitted.model.scores(&east);
        assert_eq!(classes[scores.best(0)].clean(), &east);
    }
}

#[test]
fn a_candidate_of_weight_zero_and_a_constant_column_change_nothing() {
    let case = Case::read();
    let plain = fit(&case.sums(), Shrinkage::Fixed(0.1)).model;
    let noisy: Vec<Features> =
        case.noisy.iter().map(|noisy| noisy.stack(&row(&[0.0, 0.0, 0.0, 0.0, 0.0, 1.0])).unwrap()).collect();
    let weights: Vec<Vec<f32>> = case.weights.iter().map(|weights| [&weights[..], &[0.0]].concat()).collect();
    let sums = ClassSums::of(&weighted(&case.clean, &noisy, &weights), 6).unwrap();
    let with_zero = fit(&sums, Shrinkage::Fixed(0.1)).model;
    let test = features(&case.golden["test"]);
    assert_eq!(with_zero.scores(&test), plain.scores(&test));
    let flat = task(8, 40);
    let widened = |features: &Features| {
        let rows = features.rows().flat_map(|row| row.iter().copied().chain([0.0]));
        Features::new(rows.collect(), 9).unwrap()
    };
    let clean: Vec<Features> = flat.classes.iter().map(|class| widened(&class.clean)).collect();
    let noisy: Vec<Features> = flat.classes.iter().map(|class| widened(&class.noisy)).collect();
    let weights: Vec<Vec<f32>> = noisy.iter().map(|noisy| vec![0.5; noisy.len()]).collect();
    let sums = ClassSums::of(&weighted(&clean, &noisy, &weights), 9).unwrap();
    let scores = fit(&sums, Shrinkage::Auto).model.scores(&widened(&flat.test));
    assert!(scores.values.iter().all(|score| score.is_finite()));
}

#[test]
fn weights_and_settings_out_of_range_are_refused() {
    let east = row(&[1.0, 0.0]);
    for weight in [f32::NAN, -0.1, 1.5] {
        let weights = [weight];
        let class = WeightedClass::new(&east, &east, &weights).unwrap();
        let error = ClassSums::of(&[class], 2).unwrap_err().to_string();
        assert_eq!(error, format!("weight: expected a number from 0 to 1, found {weight}"));
    }
    let discriminant = Discriminant { shrinkage: Shrinkage::Fixed(0.0) };
    assert!(discriminant.checked().unwrap_err().to_string().contains("shrinkage"));
    let within = Within::of_matrix(vec![f64::NAN], 1);
    assert!(FittedDiscriminant::new(vec![1.0], within, 1, 0.5).is_err());
    for name in ["auto", "ledoit-wolf", "oas", "left-out", "0.25"] {
        assert_eq!(name.parse::<Shrinkage>().unwrap().to_string(), name);
    }
    let error = "0".parse::<Shrinkage>().unwrap_err();
    assert!(error.ends_with("a number above 0 and at most 1, found `0`"), "{error}");
}

#[test]
fn many_clean_examples_are_left_out_in_part() {
    let many = Features::new((0..20_000).map(|i| ((i * 37) % 101) as f32 - 50.0).collect(), 2).unwrap();
    let none = Features::empty(2);
    let classes = [WeightedClass::new(&many, &none, &[]).unwrap(); 2];
    let sums = ClassSums::of(&classes, 2).unwrap();
    let kept = sums.kept_rows(0).len();
    assert!((2_000..=4_096).contains(&kept), "{kept}");
    let two = many.select(&[0, 1]);
    let classes = vec![WeightedClass::new(&two, &none, &[]).unwrap(); 9_000];
    let kept = ClassSums::of(&classes, 2).unwrap().kept_rows(0).len();
    assert!((2_000..=4_096).contains(&kept), "{kept}");
}
