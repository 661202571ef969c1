//! A cosine classifier learned from weighted examples.

use labelsieve_numerics::kernels::{add, add_transposed_product, dot, product_with_transposed};
use labelsieve_numerics::random::Stream;
use labelsieve_numerics::{Watch, unit_rows};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{WeightMatrix, WeightedClass, prototypes};
use crate::error::{Result, check};
use crate::features::Features;

/// Batch sizes the paper chooses from on validation classes.
pub const BATCH_SIZES: [usize; 5] = [512, 1024, 2048, 4096, 8192];
/// Numbers of epochs the paper chooses from on validation classes.
pub const EPOCHS: [usize; 4] = [10, 20, 30, 50];

/// A sanity limit: more would take centuries.
const MAX_EPOCHS: usize = 1_000_000;

/// How the cosine classifier is learned: SGD with momentum on **eq. (6)** from the prototypes, the learning rate
/// annealed by half a cosine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cosine {
    /// Examples per step.
    pub batch_size: usize,
    /// Passes over all examples.
    pub epochs: usize,
    /// Learning rate of the first step.
    pub learning_rate: f32,
    /// Learning rate of the last step.
    pub final_learning_rate: f32,
    /// Momentum of SGD.
    pub momentum: f32,
    /// s, fixed to the scale learned with the backbone.
    pub scale: f32,
}

impl Default for Cosine {
    fn default() -> Cosine {
        Cosine {
            batch_size: 512,
            epochs: 30,
            learning_rate: 0.1,
            final_learning_rate: 0.001,
            momentum: 0.9,
            scale: 10.0,
        }
    }
}

impl Cosine {
    /// An error if a setting is out of range.
    pub fn checked(&self) -> Result<()> {
        check(self.batch_size >= 1, "batch_size", "at least 1", self.batch_size)?;
        check((1..=MAX_EPOCHS).contains(&self.epochs), "epochs", "1 to 1000000", self.epochs)?;
        let falling = self.learning_rate >= self.final_learning_rate && self.final_learning_rate > 0.0;
        check(falling, "final_learning_rate", "above 0 and at most learning_rate", self.final_learning_rate)?;
        check(self.learning_rate.is_finite(), "learning_rate", "a finite number", self.learning_rate)?;
        check((0.0..1.0).contains(&self.momentum), "momentum", "a number in [0, 1)", self.momentum)?;
        check(self.scale > 0.0 && self.scale.is_finite(), "scale", "a positive number", self.scale)
    }

    /// Learns W from the examples of all classes.
    ///
    /// A batch estimates eq. (6) divided by K, so that one learning rate suits any number of classes: an example of
    /// class c has weight r(x)/r(X^c) · n/K, which is 1 on average over the n examples.
    pub fn train(&self, classes: &[WeightedClass], dim: usize, seed: u64) -> Result<WeightMatrix> {
        self.train_watched(classes, dim, seed, Watch::unwatched())
    }

    /// As [`Cosine::train`], with progress and cancellation by `watch`; all epochs together count each example once.
    pub fn train_watched(
        &self,
        classes: &[WeightedClass],
        dim: usize,
        seed: u64,
        watch: &Watch,
    ) -> Result<WeightMatrix> {
        self.checked()?;
        let start = prototypes(classes, dim, self.scale)?;
        let examples = weighted_examples(classes);
        if classes.len() < 2 || examples.is_empty() {
            return Ok(start); // nothing to learn
        }
        let mut optimiser = Optimiser::new(start.weights(), self);
        let n_batches = examples.len().div_ceil(self.batch_size);
        let last = (self.epochs * n_batches - 1).max(1) as f32;
        for epoch in 0..self.epochs {
            let order = Stream::new(seed).branch(epoch as u64).choose(examples.len(), examples.len());
            for (b, batch) in order.chunks(self.batch_size).enumerate() {
                watch.check()?;
                let progress = (epoch * n_batches + b) as f32 / last;
                let half_cosine = 0.5 + 0.5 * (std::f32::consts::PI * progress).cos();
                let fall = self.learning_rate - self.final_learning_rate;
                optimiser
                    .step(batch.iter().map(|&i| &examples[i]), self.final_learning_rate + fall * half_cosine);
            }
            watch.advance(epoch, self.epochs, examples.len());
        }
        WeightMatrix::new(Features::new(optimiser.weights, dim)?, self.scale)
    }
}

/// **Eq. (6)**: the weighted cross entropy of a cosine classifier.
///
/// ```text
/// L = - Σ_c 1/r(X^c) Σ_{x ∈ X^c} r(x) ln σ(s Ŵᵀ ĝ(x))_c
/// ```
///
/// σ: softmax over classes; s: scale; Ŵ, ĝ: weights and features of unit length; r: relevance.
pub fn cosine_loss(classes: &[WeightedClass], classifier: &WeightMatrix) -> f32 {
    let weights = classifier.weights();
    let mut loss = 0f64;
    for (c, class) in classes.iter().enumerate() {
        let total = class.total();
        for (row, relevance) in class.examples() {
            let logits: Vec<f32> = weights.rows().map(|w| classifier.scale() * dot(w, row)).collect();
            loss -= f64::from(relevance) / total * f64::from(log_softmax(&logits, c));
        }
    }
    loss as f32
}

struct WeightedExample<'a> {
    row: &'a [f32],
    class: usize,
    weight: f32,
}

fn weighted_examples<'a>(classes: &[WeightedClass<'a>]) -> Vec<WeightedExample<'a>> {
    let mut examples = Vec::new();
    for (class, set) in classes.iter().enumerate() {
        let total = set.total();
        let kept = set.examples().filter(|(_, relevance)| *relevance > 0.0);
        examples.extend(kept.map(|(row, relevance)| WeightedExample {
            row,
            class,
            weight: (f64::from(relevance) / total) as f32,
        }));
    }
    let mean_is_one = examples.len() as f32 / classes.len() as f32;
    examples.iter_mut().for_each(|example| example.weight *= mean_is_one);
    examples
}

/// The state of SGD: W before normalisation, its velocity, and the buffers of a batch.
struct Optimiser {
    dim: usize,
    scale: f32,
    momentum: f32,
    weights: Vec<f32>,
    velocity: Vec<f32>,
    /// Each part's share of ∂L/∂Ŵ; a fixed number of parts, so that sums do not depend on threads.
    partial: Vec<f32>,
}

const PARTS: usize = 8;

impl Optimiser {
    fn new(start: &Features, settings: &Cosine) -> Optimiser {
        let weights = start.block(0..start.len()).to_vec();
        Optimiser {
            dim: start.dim(),
            scale: settings.scale,
            momentum: settings.momentum,
            velocity: vec![0.0; weights.len()],
            partial: vec![0.0; PARTS * weights.len()],
            weights,
        }
    }

    fn step<'e, 'x: 'e>(&mut self, batch: impl Iterator<Item = &'e WeightedExample<'x>>, rate: f32) {
        let batch: Vec<&WeightedExample> = batch.collect();
        let size = self.weights.len();
        let (unit, lengths) = unit_rows(&self.weights, self.dim, length);
        let dim = self.dim;
        let scale = self.scale;
        let n = batch.len() as f32;
        self.partial.par_chunks_exact_mut(size).zip(batch.par_chunks(batch.len().div_ceil(PARTS))).for_each(
            |(partial, part)| {
                partial.fill(0.0);
                add_gradient(part, &unit, dim, scale, n, partial);
            },
        );
        let n_parts = batch.chunks(batch.len().div_ceil(PARTS)).len();
        let mut gradient = self.partial[..size].to_vec();
        for partial in self.partial[size..n_parts * size].chunks_exact(size) {
            add(&mut gradient, partial);
        }
        let rows = gradient.chunks_exact_mut(dim).zip(unit.chunks_exact(dim)).zip(&lengths);
        rows.for_each(|((gradient, unit), &length)| through_normalisation(gradient, unit, length));
        for ((weight, velocity), gradient) in self.weights.iter_mut().zip(&mut self.velocity).zip(&gradient) {
            *velocity = self.momentum * *velocity + gradient;
            *weight -= rate * *velocity;
        }
    }
}

/// Adds the gradient of the batch's mean loss with respect to Ŵ (K×d).
fn add_gradient(
    part: &[&WeightedExample],
    unit: &[f32],
    dim: usize,
    scale: f32,
    n: f32,
    gradient: &mut [f32],
) {
    let k = unit.len() / dim;
    let mut rows = Vec::with_capacity(part.len() * dim);
    part.iter().for_each(|example| rows.extend_from_slice(example.row));
    let mut errors = vec![0f32; part.len() * k]; // B×K: cosines, then gradients of the logits
    product_with_transposed(&rows, unit, &mut errors, dim);
    for (errors, example) in errors.chunks_exact_mut(k).zip(part) {
        errors.iter_mut().for_each(|e| *e *= scale);
        softmax(errors);
        errors[example.class] -= 1.0;
        let weight = example.weight * scale / n;
        errors.iter_mut().for_each(|e| *e *= weight);
    }
    add_transposed_product(&errors, &rows, gradient, k, dim);
}

/// The gradient with respect to w of a function of ŵ = w/‖w‖: the part along ŵ vanishes, the rest shrinks by ‖w‖.
pub fn through_normalisation(gradient: &mut [f32], unit: &[f32], length: f32) {
    let along = dot(gradient, unit);
    let shrink = if length > 0.0 { 1.0 / length } else { 0.0 };
    gradient
        .iter_mut()
        .zip(unit)
        .for_each(|(gradient, unit)| *gradient = (*gradient - along * unit) * shrink);
}

/// ‖row‖ by the similarity of this crate.
pub fn length(row: &[f32]) -> f32 {
    dot(row, row).sqrt()
}

/// Turns logits into probabilities.
pub fn softmax(logits: &mut [f32]) {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    logits.iter_mut().for_each(|l| *l = (*l - largest).exp());
    let total: f32 = logits.iter().sum();
    logits.iter_mut().for_each(|l| *l /= total);
}

/// The logarithm of the probability of a class.
pub fn log_softmax(logits: &[f32], class: usize) -> f32 {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let total: f32 = logits.iter().map(|l| (l - largest).exp()).sum();
    logits[class] - largest - total.ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::{assert_close, numbers, read};

    /// The golden case, one set per label; the examples of relevance 1 are the clean ones.
    struct Case {
        clean: Vec<Features>,
        noisy: Vec<Features>,
        relevance: Vec<Vec<f32>>,
        matrix: WeightMatrix,
        raw_weights: Vec<f32>,
        dim: usize,
    }

    fn golden_case(golden: &serde_json::Value) -> Case {
        let dim = golden["features"][0].as_array().unwrap().len();
        let all = Features::new(numbers(&golden["features"]), dim).unwrap();
        let labels = numbers(&golden["label"]);
        let relevance = numbers(&golden["relevance"]);
        let raw_weights = numbers(&golden["w"]);
        let of = |c: usize, clean: bool| -> Vec<usize> {
            (0..all.len()).filter(|&i| labels[i] as usize == c && (relevance[i] == 1.0) == clean).collect()
        };
        let k = raw_weights.len() / dim;
        Case {
            clean: (0..k).map(|c| all.select(&of(c, true))).collect(),
            noisy: (0..k).map(|c| all.select(&of(c, false))).collect(),
            relevance: (0..k).map(|c| of(c, false).iter().map(|&i| relevance[i]).collect()).collect(),
            matrix: WeightMatrix::new(Features::new(raw_weights.clone(), dim).unwrap(), 10.0).unwrap(),
            raw_weights,
            dim,
        }
    }

    impl Case {
        fn classes(&self) -> Vec<WeightedClass<'_>> {
            (0..self.clean.len())
                .map(|c| WeightedClass::new(&self.clean[c], &self.noisy[c], &self.relevance[c]).unwrap())
                .collect()
        }
    }

    #[test]
    fn eq_6_and_its_gradient_agree_with_pytorch() {
        let golden = read("cosine_loss");
        let case = golden_case(&golden);
        let classes = case.classes();
        let expected = golden["loss_f64"].as_f64().unwrap() as f32;
        assert_close(&[cosine_loss(&classes, &case.matrix)], &[expected], 1e-4);

        // One batch of everything estimates the loss divided by K.
        let examples = weighted_examples(&classes);
        let batch: Vec<&WeightedExample> = examples.iter().collect();
        let (unit, lengths) = unit_rows(&case.raw_weights, case.dim, length);
        let mut gradient = vec![0f32; unit.len()];
        add_gradient(&batch, &unit, case.dim, 10.0, batch.len() as f32, &mut gradient);
        let rows = gradient.chunks_exact_mut(case.dim).zip(unit.chunks_exact(case.dim)).zip(&lengths);
        rows.for_each(|((gradient, unit), &length)| through_normalisation(gradient, unit, length));
        let expected: Vec<f32> =
            numbers(&golden["gradient_f64"]).iter().map(|g| g / classes.len() as f32).collect();
        assert_close(&gradient, &expected, 1e-5);
    }

    #[test]
    fn eq_6_on_two_classes_that_are_told_apart_perfectly() {
        let east = Features::new(vec![1.0, 0.0], 2).unwrap();
        let north = Features::new(vec![0.0, 1.0], 2).unwrap();
        let none = Features::empty(2);
        let classes =
            [WeightedClass::new(&east, &none, &[]).unwrap(), WeightedClass::new(&north, &none, &[]).unwrap()];
        let matrix = prototypes(&classes, 2, 1.0).unwrap();
        // Logits (1, 0) and (0, 1): each class loses ln(1 + 1/e).
        let expected = 2.0 * (1.0 + (-1f32).exp()).ln();
        assert!((cosine_loss(&classes, &matrix) - expected).abs() < 1e-6);
    }

    #[test]
    fn training_lowers_the_loss_and_repeats_itself_at_any_number_of_threads() {
        let case = golden_case(&read("cosine_loss"));
        let classes = case.classes();
        let settings = Cosine { batch_size: 8, ..Cosine::default() };
        let train = |n| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
            pool.install(|| settings.train(&classes, case.dim, 1).unwrap())
        };
        let trained = train(1);
        assert_eq!(trained, train(3));
        let before = cosine_loss(&classes, &prototypes(&classes, case.dim, 10.0).unwrap());
        let after = cosine_loss(&classes, &trained);
        assert!(after < 0.8 * before, "{after} after, {before} before");
    }

    #[test]
    fn a_single_class_stays_at_its_prototype() {
        let case = golden_case(&read("cosine_loss"));
        let one = &case.classes()[..1];
        let trained = Cosine::default().train(one, case.dim, 0).unwrap();
        assert_eq!(trained, prototypes(one, case.dim, 10.0).unwrap());
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let case = golden_case(&read("cosine_loss"));
        let error =
            Cosine { epochs: 0, ..Cosine::default() }.train(&case.classes(), case.dim, 0).unwrap_err();
        assert_eq!(error.to_string(), "epochs: expected 1 to 1000000, found 0");
    }
}
