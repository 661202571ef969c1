//! Multinomial logistic regression on weighted examples, the classifier of several compared systems.

use labelsieve::classifier::{WeightedClass, affine_scores, softmax};
use labelsieve::{Classifier, Error, Features, Result, Scores, check};
use labelsieve_numerics::kernels::{add, add_transposed_product, product_with_transposed};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Settings of logistic regression, the minimiser of
///
/// ```text
/// L = - 1/K Σ_c 1/r(X^c) Σ_{x ∈ X^c} r(x) ln softmax(W g(x) + b)_c  +  decay/2 ‖W‖²
/// ```
///
/// r: relevance, 1 for clean examples; g(x): unit features; the biases b are free. Every class weighs the same, as it does
/// where examples are drawn class by class (the published code of Douze et al. does so). The loss is convex, so the
/// settings only decide how close to the minimum the result is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Logistic {
    /// L2 penalty on the weights.
    pub decay: f32,
    /// Iterations, at most.
    pub max_iterations: usize,
}

impl Default for Logistic {
    fn default() -> Logistic {
        Logistic { decay: 1e-3, max_iterations: 500 }
    }
}

/// L2 penalties to choose from on validation classes.
pub const DECAYS: [f32; 4] = [1e-4, 1e-3, 1e-2, 1e-1];

/// A linear classifier with biases: scores W g(x) + b.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearClassifier {
    /// K×d.
    weights: Vec<f32>,
    /// K.
    biases: Vec<f32>,
    dim: usize,
}

impl Logistic {
    /// Rejects settings outside their range.
    pub fn checked(&self) -> Result<()> {
        check(self.decay > 0.0 && self.decay.is_finite(), "decay", "a positive number", self.decay)?;
        check(self.max_iterations >= 1, "max_iterations", "at least 1", self.max_iterations)
    }

    /// Learns from the examples of all classes. The result is deterministic.
    ///
    /// Accelerated gradient descent: the curvature of the loss is at most ½‖(g, 1)‖² + decay ≤ 1 + decay, so the step
    /// needs no tuning; momentum restarts where it leads uphill.
    pub fn train(&self, classes: &[WeightedClass], dim: usize) -> Result<LinearClassifier> {
        const FLAT: f32 = 1e-6;
        self.checked()?;
        let examples = Examples::new(classes, dim);
        let step = 1.0 / (1.0 + self.decay);
        let n_weights = classes.len() * dim;
        let mut point = vec![0f32; n_weights + classes.len()]; // W, then b
        let mut ahead = point.clone();
        let mut age = 1f32; // the t of Nesterov's momentum
        for _ in 0..self.max_iterations {
            let mut gradient = examples.gradient(&ahead);
            let weights = gradient[..n_weights].iter_mut().zip(&ahead);
            weights.for_each(|(gradient, weight)| *gradient += self.decay * weight);
            if gradient.iter().all(|g| g.abs() < FLAT) {
                break;
            }
            let next: Vec<f32> = ahead.iter().zip(&gradient).map(|(at, g)| at - step * g).collect();
            let moved = next.iter().zip(&point).map(|(next, point)| next - point);
            let uphill: f32 = gradient.iter().zip(moved).map(|(g, moved)| g * moved).sum();
            let older = if uphill > 0.0 { 1.0 } else { 0.5 + (0.25 + age * age).sqrt() };
            let momentum = if uphill > 0.0 { 0.0 } else { (age - 1.0) / older };
            for ((ahead, next), point) in ahead.iter_mut().zip(&next).zip(&point) {
                *ahead = next + momentum * (next - point);
            }
            point = next;
            age = older;
        }
        let biases = point.split_off(n_weights);
        LinearClassifier::new(point, biases, dim)
    }
}

impl LinearClassifier {
    /// K×d weights and K biases; rejects wrong shapes and non-finite numbers.
    pub fn new(weights: Vec<f32>, biases: Vec<f32>, dim: usize) -> Result<LinearClassifier> {
        if weights.len() != biases.len() * dim {
            let expected = biases.len() * dim;
            let found = weights.len();
            return Err(Error::Length { what: "weights of a linear classifier", expected, found });
        }
        let finite = |numbers: &[f32]| numbers.iter().all(|value| value.is_finite());
        check(finite(&weights), "weights of a linear classifier", "finite numbers", "others")?;
        check(finite(&biases), "biases of a linear classifier", "finite numbers", "others")?;
        Ok(LinearClassifier { weights, biases, dim })
    }

    /// W, K×d.
    pub fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// b.
    pub fn biases(&self) -> &[f32] {
        &self.biases
    }

    /// The softmax of the scores.
    pub fn probabilities(&self, features: &Features) -> Scores {
        let mut scores = self.scores(features);
        scores.values.chunks_exact_mut(self.biases.len().max(1)).for_each(softmax);
        scores
    }
}

impl Classifier for LinearClassifier {
    fn n_classes(&self) -> usize {
        self.biases.len()
    }

    fn scores(&self, features: &Features) -> Scores {
        affine_scores(features, &self.weights, &self.biases)
    }
}

/// All examples, with their classes and weights, which add up to 1.
struct Examples {
    rows: Vec<f32>,
    classes: Vec<usize>,
    weights: Vec<f32>,
    n_classes: usize,
    dim: usize,
}

/// A fixed number of parts, so that sums do not depend on threads.
const PARTS: usize = 8;

impl Examples {
    fn new(classes: &[WeightedClass], dim: usize) -> Examples {
        let n_classes = classes.len();
        let mut all = Examples { rows: Vec::new(), classes: Vec::new(), weights: Vec::new(), n_classes, dim };
        for (c, class) in classes.iter().enumerate() {
            let total = class.total() * n_classes as f64;
            for (row, relevance) in class.examples().filter(|(_, relevance)| *relevance > 0.0) {
                all.rows.extend_from_slice(row);
                all.classes.push(c);
                all.weights.push((f64::from(relevance) / total) as f32);
            }
        }
        all
    }

    /// The gradient of the loss without its penalty at `point`: by W, then by b.
    fn gradient(&self, point: &[f32]) -> Vec<f32> {
        let per_part = self.classes.len().div_ceil(PARTS).max(1);
        let parts: Vec<Vec<f32>> = self
            .classes
            .par_chunks(per_part)
            .enumerate()
            .map(|(part, classes)| self.part_gradient(point, part * per_part, classes))
            .collect();
        let mut sum = vec![0f32; point.len()];
        parts.iter().for_each(|part| add(&mut sum, part));
        sum
    }

    fn part_gradient(&self, point: &[f32], start: usize, classes: &[usize]) -> Vec<f32> {
        let k = self.n_classes;
        let dim = self.dim;
        let (weights, biases) = point.split_at(k * dim);
        let rows = &self.rows[start * dim..(start + classes.len()) * dim];
        let mut errors = vec![0f32; classes.len() * k]; // logits, then gradients by them
        product_with_transposed(rows, weights, &mut errors, dim);
        let mut gradient = vec![0f32; point.len()];
        let (by_weight, by_bias) = gradient.split_at_mut(k * dim);
        for ((errors, &class), weight) in errors.chunks_exact_mut(k).zip(classes).zip(&self.weights[start..])
        {
            add(errors, biases);
            softmax(errors);
            errors[class] -= 1.0;
            errors.iter_mut().for_each(|error| *error *= weight);
            add(by_bias, errors);
        }
        add_transposed_product(&errors, rows, by_weight, k, dim);
        gradient
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::{assert_close, count, features, numbers, read};

    #[test]
    fn the_minimum_is_pytorchs() {
        let golden = read("multinomial");
        let case = |name: &str| golden[name].as_array().unwrap().iter().map(features).collect::<Vec<_>>();
        let clean = case("clean");
        let noisy = case("noisy");
        let relevance: Vec<Vec<f32>> = golden["relevance"].as_array().unwrap().iter().map(numbers).collect();
        let classes: Vec<WeightedClass> = (0..clean.len())
            .map(|c| WeightedClass::new(&clean[c], &noisy[c], &relevance[c]).unwrap())
            .collect();
        let settings = Logistic { decay: golden["decay"].as_f64().unwrap() as f32, ..Logistic::default() };
        let learned = settings.train(&classes, count(&golden["dim"])).unwrap();
        let test = features(&golden["test"]);
        assert_close(&learned.probabilities(&test).values, &numbers(&golden["probabilities_f64"]), 2e-4);
    }

    #[test]
    fn two_classes_on_opposite_sides_are_told_apart_without_a_bias() {
        let east = Features::new(vec![1.0, 0.0], 2).unwrap();
        let west = Features::new(vec![-1.0, 0.0], 2).unwrap();
        let none = Features::empty(2);
        let classes =
            [WeightedClass::new(&east, &none, &[]).unwrap(), WeightedClass::new(&west, &none, &[]).unwrap()];
        let learned = Logistic { decay: 0.1, ..Logistic::default() }.train(&classes, 2).unwrap();
        let weights = learned.weights();
        assert!(weights[0] > 0.0 && (weights[0] + weights[2]).abs() < 1e-6, "{weights:?}");
        assert!(weights[1].abs() < 1e-6 && learned.biases().iter().all(|b| b.abs() < 1e-6));
        // At the minimum the pull of both examples equals the penalty: 1 - p = decay · w, p the probability of each.
        let p = learned.probabilities(&east).values[0];
        assert!((1.0 - p - 0.1 * weights[0]).abs() < 1e-5, "{p}, {weights:?}");
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let error = Logistic { decay: 0.0, ..Logistic::default() }.train(&[], 2).unwrap_err();
        assert_eq!(error.to_string(), "decay: expected a positive number, found 0");
    }
}
