//! The two-layer network behind GCN and MLP, forward and backward, and its training.
//!
//! Shapes: N examples, d numbers each, m = 16 hidden units. Dropout sits behind the hidden layer, so X = Ã V never
//! changes during training and is made once. The second layer's product with Θ₂ comes before its propagation, so
//! both sparse products of an iteration have a single column. What is left are two passes over X:
//!
//! ```text
//! forward   H = X Θ₁ + b₁          N×m     backward  ∂Θ₁ = Xᵀ ∂H                d×m
//!           R = dropout [H]+       N×m               ∂H  = ∂s Θ₂ᵀ where R > 0   N×m
//!           s = R Θ₂               N×1               ∂Θ₂ = Rᵀ ∂s                m×1
//!           p = σ(Ã s + b₂)        N×1               ∂s  = Ãᵀ ∂a                N×1
//! ```

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::adam::Adam;
use super::loss::loss_gradient;
use crate::error::{Result, check};
use crate::features::Features;
use crate::graph::Propagation;
use crate::kernels::{COLUMNS, add_at, for_this_machine, thin_product, thin_transposed_product};
use crate::level::Level;
use crate::random::{Stream, row_key};
use crate::watch::Watch;

/// Hidden units m.
pub(super) const HIDDEN: usize = COLUMNS;

/// How the network is trained; the defaults are the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Training {
    /// Full-batch steps.
    pub iterations: usize,
    /// Adam's learning rate at the start.
    pub learning_rate: f32,
    /// Iterations after which the learning rate falls to a tenth, again and again.
    pub decay_every: usize,
    /// L2 penalty on all parameters, added to the gradient.
    pub weight_decay: f32,
    /// Probability that a hidden unit is left out in a step.
    pub dropout: f32,
}

impl Default for Training {
    fn default() -> Training {
        Training { iterations: 100, learning_rate: 0.1, decay_every: 30, weight_decay: 5e-4, dropout: 0.5 }
    }
}

impl Training {
    pub(super) fn checked(self) -> Result<Training> {
        check(self.iterations >= 1, "iterations", "at least 1", self.iterations)?;
        check(self.decay_every >= 1, "decay_every", "at least 1", self.decay_every)?;
        let positive = self.learning_rate > 0.0 && self.learning_rate.is_finite();
        check(positive, "learning_rate", "a positive number", self.learning_rate)?;
        let sensible = self.weight_decay >= 0.0 && self.weight_decay.is_finite();
        check(sensible, "weight_decay", "a non-negative number", self.weight_decay)?;
        check((0.0..1.0).contains(&self.dropout), "dropout", "a number in [0, 1)", self.dropout)?;
        Ok(self)
    }
}

/// The key of every row, clean rows first.
pub(super) fn row_keys(clean: &Features, noisy: &Features) -> Vec<u64> {
    let k = clean.len();
    let row = |i: usize| if i < k { clean.row(i) } else { noisy.row(i - k) };
    (0..k + noisy.len()).into_par_iter().with_min_len(256).map(|i| row_key(row(i))).collect()
}

/// Θ₁ (d×m), b₁ (m), Θ₂ (m) and b₂, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Weights(pub Vec<f32>);

impl Weights {
    pub fn len(dim: usize) -> usize {
        dim * HIDDEN + 2 * HIDDEN + 1
    }

    /// Uniform in ±1/√(out width) for each layer's weights and biases: widths 16 and 1.
    pub fn random(dim: usize, stream: Stream) -> Weights {
        let first_layer = (dim + 1) * HIDDEN;
        let bound = |i: usize| if i < first_layer { 1.0 / (HIDDEN as f32).sqrt() } else { 1.0 };
        let draw = |i: usize| bound(i) * (2.0 * stream.uniform(i as u64) - 1.0);
        Weights((0..Weights::len(dim)).map(draw).collect())
    }

    /// Θ₁, b₁, Θ₂, b₂.
    fn parts(&self) -> (&[f32], &[f32; HIDDEN], &[f32; HIDDEN], f32) {
        let (theta_1, rest) = self.0.split_at(self.0.len() - 2 * HIDDEN - 1);
        let (rest, bias_2) = rest.split_at(2 * HIDDEN);
        let (layers, _) = rest.as_chunks::<HIDDEN>();
        (theta_1, &layers[0], &layers[1], bias_2[0])
    }
}

/// One class's network and the buffers of its training.
pub(super) struct Network<'a> {
    level: Level,
    /// Ã V, N×d.
    x: &'a [f32],
    dim: usize,
    /// What each row is, which decides on its dropout ([`row_key`]).
    keys: &'a [u64],
    propagation: &'a Propagation,
    /// What each row adds to the loss ([`loss_weights`](super::loss::loss_weights)).
    loss_weights: &'a [f32],
    /// Rows per unit of work; depends on N alone, so that sums are the same at any number of threads.
    chunk: usize,
    /// R, N×m, and s.
    hidden: Vec<f32>,
    support: Vec<f32>,
    probabilities: Vec<f32>,
    /// D⁻¹ ∂L/∂a.
    gradient_over_degree: Vec<f32>,
    /// Each chunk's share of the gradient.
    partial: Vec<f32>,
    gradient: Vec<f32>,
}

impl<'a> Network<'a> {
    pub fn new(
        x: &'a [f32],
        keys: &'a [u64],
        propagation: &'a Propagation,
        loss_weights: &'a [f32],
    ) -> Network<'a> {
        let n = propagation.len();
        let dim = x.len() / n;
        let chunk = n.div_ceil(64).next_multiple_of(8).max(128);
        let n_parameters = Weights::len(dim);
        Network {
            level: Level::current(),
            x,
            dim,
            keys,
            propagation,
            loss_weights,
            chunk,
            hidden: vec![0.0; n * HIDDEN],
            support: vec![0.0; n],
            probabilities: vec![0.0; n],
            gradient_over_degree: vec![0.0; n],
            partial: vec![0.0; n.div_ceil(chunk) * n_parameters],
            gradient: vec![0.0; n_parameters],
        }
    }

    /// Trains from `weights` until done or stopped, and returns p of all rows, clean first, in evaluation mode (no
    /// dropout).
    pub fn train(
        mut self,
        mut weights: Weights,
        training: &Training,
        stream: Stream,
        watch: &Watch,
    ) -> Vec<f32> {
        let mut adam = Adam::new(self.level, weights.0.len());
        for iteration in 0..training.iterations {
            if watch.is_stopped() {
                break;
            }
            let dropout = Dropout::new(training.dropout, stream.branch(iteration as u64));
            self.forward(&weights, dropout);
            self.backward(&weights, dropout);
            let rate = training.learning_rate * 0.1f32.powi((iteration / training.decay_every) as i32);
            adam.step(&mut weights.0, &self.gradient, rate, training.weight_decay);
            watch.advance(iteration, training.iterations, self.probabilities.len());
        }
        self.forward(&weights, Dropout::none());
        self.probabilities
    }

    /// **Eq. (2)**: the relevance of every example.
    ///
    /// ```text
    /// F(Ã, V) = σ(Ã [Ã V Θ₁ + b₁]+ Θ₂ + b₂)
    /// ```
    ///
    /// Rows are examples here, so each layer of **eq. (1)**, h(Θᵀ Z Ã), reads h(Ã Z Θ).
    pub fn forward(&mut self, weights: &Weights, dropout: Dropout) -> &[f32] {
        let (theta_1, bias_1, theta_2, bias_2) = weights.parts();
        let (level, chunk, dim) = (self.level, self.chunk, self.dim);
        self.hidden
            .par_chunks_mut(chunk * HIDDEN)
            .zip(self.support.par_chunks_mut(chunk))
            .zip(self.x.par_chunks(chunk * dim))
            .zip(self.keys.par_chunks(chunk))
            .for_each(|(((hidden, support), x), keys)| {
                thin_product(level, x, theta_1, hidden, dim);
                activate(level, hidden, support, bias_1, theta_2, dropout, keys);
            });
        let (propagation, support) = (self.propagation, &self.support);
        self.probabilities.par_chunks_mut(chunk).enumerate().for_each(|(c, probabilities)| {
            for (i, p) in probabilities.iter_mut().enumerate() {
                *p = sigmoid(propagation.average(support, c * chunk + i) + bias_2);
            }
        });
        &self.probabilities
    }

    /// The gradient of eq. (3) at the last forward pass, in the order of [`Weights`].
    pub fn backward(&mut self, weights: &Weights, dropout: Dropout) -> &[f32] {
        let bias_2_gradient = self.gradients_of_loss();
        let (_, _, theta_2, _) = weights.parts();
        let (level, chunk, dim) = (self.level, self.chunk, self.dim);
        let (propagation, gradients) = (self.propagation, &self.gradient_over_degree);
        // Last chunk first: the end of X is what the forward pass left in the cache.
        self.partial
            .par_chunks_exact_mut(self.gradient.len())
            .zip(self.hidden.par_chunks_mut(chunk * HIDDEN))
            .zip(self.x.par_chunks(chunk * dim))
            .enumerate()
            .rev()
            .for_each(|(c, ((partial, hidden), x))| {
                let (theta_1_gradient, rest) = partial.split_at_mut(dim * HIDDEN);
                let n_rows = hidden.len() / HIDDEN;
                let support_gradients: Vec<f32> =
                    (c * chunk..c * chunk + n_rows).map(|i| propagation.gather(gradients, i)).collect();
                hidden_gradients(level, hidden, &support_gradients, theta_2, dropout.scale, rest);
                thin_transposed_product(level, x, hidden, theta_1_gradient, dim);
            });
        let n_parameters = self.gradient.len();
        let (gradient, partial) = (&mut self.gradient, &self.partial);
        gradient.fill(0.0);
        partial.chunks_exact(n_parameters).for_each(|partial| add_at(level, gradient, partial));
        gradient[n_parameters - 1] = bias_2_gradient;
        gradient
    }

    /// Fills D⁻¹ ∂L/∂a and returns Σ ∂L/∂a, the gradient of b₂.
    fn gradients_of_loss(&mut self) -> f32 {
        let (propagation, probabilities) = (self.propagation, &self.probabilities);
        let mut sum = 0f64;
        for (i, out) in self.gradient_over_degree.iter_mut().enumerate() {
            let gradient = loss_gradient(probabilities[i], self.loss_weights[i]);
            sum += f64::from(gradient);
            *out = propagation.over_degree(gradient, i);
        }
        sum as f32
    }
}

/// Which hidden units sit out a step: inverted dropout, drawn by what a row is and not by where it stands, so that the order
/// of rows decides nothing. Equal rows sit out together.
#[derive(Clone, Copy)]
pub(super) struct Dropout {
    stream: Stream,
    /// Units whose 16 random bits lie below this are left out.
    threshold: u32,
    /// What the others are multiplied by.
    scale: f32,
}

impl Dropout {
    pub fn new(probability: f32, stream: Stream) -> Dropout {
        Dropout { stream, threshold: (probability * 65536.0) as u32, scale: 1.0 / (1.0 - probability) }
    }

    pub fn none() -> Dropout {
        Dropout::new(0.0, Stream::new(0))
    }

    /// The factor of each hidden unit of one example: four draws of 64 bits hold sixteen of 16.
    #[inline(always)]
    fn factors(&self, key: u64) -> [f32; HIDDEN] {
        let mut factors = [self.scale; HIDDEN];
        for (q, factors) in factors.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let bits = self.stream.bits(key.wrapping_add(q as u64));
            for (b, factor) in factors.iter_mut().enumerate() {
                let kept = ((bits >> (16 * b)) & 0xffff) as u32 >= self.threshold;
                *factor = if kept { self.scale } else { 0.0 };
            }
        }
        factors
    }
}

for_this_machine! {
/// In place: R = dropout [H + b₁]+, and s = R Θ₂.
fn activate(
    hidden: &mut [f32],
    support: &mut [f32],
    bias_1: &[f32; HIDDEN],
    theta_2: &[f32; HIDDEN],
    dropout: Dropout,
    keys: &[u64],
) {
    let rows = hidden.as_chunks_mut::<HIDDEN>().0;
    for ((row, support), &key) in rows.iter_mut().zip(support).zip(keys) {
        let factors = if dropout.threshold == 0 { [1.0; HIDDEN] } else { dropout.factors(key) };
        let mut terms = [0f32; HIDDEN];
        for u in 0..HIDDEN {
            row[u] = (row[u] + bias_1[u]).max(0.0) * factors[u];
            terms[u] = row[u] * theta_2[u];
        }
        *support = sum_16(terms);
    }
}
}

for_this_machine! {
/// In place: R becomes ∂H; writes the gradients of b₁ and Θ₂ to `gradients`.
fn hidden_gradients(
    hidden: &mut [f32],
    support_gradients: &[f32],
    theta_2: &[f32; HIDDEN],
    scale: f32,
    gradients: &mut [f32],
) {
    let (mut bias_1_gradient, mut theta_2_gradient) = ([0f32; HIDDEN], [0f32; HIDDEN]);
    for (row, &gradient) in hidden.as_chunks_mut::<HIDDEN>().0.iter_mut().zip(support_gradients) {
        for u in 0..HIDDEN {
            theta_2_gradient[u] += gradient * row[u];
            row[u] = if row[u] > 0.0 { gradient * theta_2[u] * scale } else { 0.0 };
            bias_1_gradient[u] += row[u];
        }
    }
    gradients[..HIDDEN].copy_from_slice(&bias_1_gradient);
    gradients[HIDDEN..2 * HIDDEN].copy_from_slice(&theta_2_gradient);
}
}

#[inline(always)]
fn sum_16(mut terms: [f32; HIDDEN]) -> f32 {
    for width in [8, 4, 2, 1] {
        for u in 0..width {
            terms[u] += terms[u + width];
        }
    }
    terms[0]
}

#[inline(always)]
fn sigmoid(a: f32) -> f32 {
    1.0 / (1.0 + (-a).exp())
}
