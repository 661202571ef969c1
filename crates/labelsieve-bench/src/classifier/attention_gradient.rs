//! The loss of an episode and its gradient, derived by hand: forwards from examples to class weights to logits, and back.

use labelsieve::Features;
use labelsieve::classifier::{length, log_softmax, softmax, through_normalisation};
use labelsieve_numerics::kernels::{add, add_transposed_product, dot, product, product_with_transposed};
use labelsieve_numerics::unit_rows;
use rayon::prelude::*;

use super::attention::{AttentionParameters, Lookup, Shares};
use super::attention_training::{Episode, PosingClass};

/// The loss of an episode and the gradient of `share` times it.
///
/// ```text
/// L = -1/n Σ_x ln softmax(s Ŵ' x)_c
/// ```
///
/// x: the n queries, of class c; Ŵ': base weights of unit length, with generated ones in the rows of posing classes.
pub(super) fn episode_gradient(
    lookup: &Lookup,
    sets: &[Features],
    episode: &Episode,
    share: f32,
) -> EpisodeGradient {
    let dim = lookup.base.weights().dim();
    let generated = GeneratedWeights::new(lookup, sets, episode);
    let (unit, lengths) = unit_rows(&generated.weights, dim, length);
    let (loss, mut gradient_of_weights) = query_gradient(lookup, sets, episode, &unit, share);
    let rows = gradient_of_weights.chunks_exact_mut(dim).zip(unit.chunks_exact(dim)).zip(&lengths);
    rows.for_each(|((gradient, unit), &length)| through_normalisation(gradient, unit, length));
    generated.gradient(lookup, &gradient_of_weights, loss)
}

/// The contribution of an episode to the gradient of a step.
pub(super) struct EpisodeGradient {
    pub(super) loss: f64,
    /// The gradient except for φ_q, which is d×d and computed once for all episodes; here it is empty.
    pub(super) gradient: AttentionParameters,
    /// The episode's examples, and the gradient with respect to their queries, n×d each.
    rows: Vec<f32>,
    by_query: Vec<f32>,
}

/// Sums the episodes of a step, in order. As q = φ_q z, the gradient of φ_q is Σ (gradient of q) zᵀ: one product for all.
pub(super) fn sum_gradients(
    parameters: &AttentionParameters,
    parts: Vec<EpisodeGradient>,
    dim: usize,
) -> (f64, AttentionParameters) {
    const BLOCK: usize = 64; // rows of φ_q per piece of work
    let mut sum = parameters.zeros_like();
    let mut loss = 0.0;
    let mut rows = Vec::new();
    let mut by_query = Vec::new();
    for part in parts {
        loss += part.loss;
        add(&mut sum.keys, &part.gradient.keys);
        add(&mut sum.average, &part.gradient.average);
        add(&mut sum.attended, &part.gradient.attended);
        sum.gamma += part.gradient.gamma;
        rows.extend(part.rows);
        by_query.extend(part.by_query);
    }
    sum.query.par_chunks_mut(BLOCK * dim).enumerate().for_each(|(block, out)| {
        let start = block * BLOCK;
        let width = out.len() / dim;
        let columns: Vec<f32> =
            by_query.chunks_exact(dim).flat_map(|row| &row[start..start + width]).copied().collect();
        add_transposed_product(&columns, &rows, out, width, dim);
    });
    (loss, sum)
}

/// The loss, and `share` times its gradient with respect to the unit weights of the posing classes.
fn query_gradient(
    lookup: &Lookup,
    sets: &[Features],
    episode: &Episode,
    unit: &[f32],
    share: f32,
) -> (f64, Vec<f32>) {
    let base = lookup.base.weights();
    let n_base = base.len();
    let dim = base.dim();
    let n_posing = episode.posing.len();
    let mut all = base.block(0..n_base).to_vec();
    for (posing, weight) in episode.posing.iter().zip(unit.chunks_exact(dim)) {
        all[posing.class * dim..(posing.class + 1) * dim].copy_from_slice(weight);
    }
    let rows: Vec<f32> = episode.queries.iter().flat_map(|&(c, row)| sets[c].row(row)).copied().collect();
    let mut logits = vec![0f32; episode.queries.len() * n_base];
    product_with_transposed(&rows, &all, &mut logits, dim);
    let scale = lookup.base.scale();
    let n = episode.queries.len() as f32;
    let mut loss = 0f64;
    let mut errors = vec![0f32; episode.queries.len() * n_posing];
    for (q, (logits, &(class, _))) in logits.chunks_exact_mut(n_base).zip(&episode.queries).enumerate() {
        logits.iter_mut().for_each(|logit| *logit *= scale);
        loss -= f64::from(log_softmax(logits, class)) / f64::from(n);
        softmax(logits);
        logits[class] -= 1.0;
        for (p, posing) in episode.posing.iter().enumerate() {
            errors[q * n_posing + p] = logits[posing.class] * scale * share / n;
        }
    }
    let mut gradient = vec![0f32; n_posing * dim];
    add_transposed_product(&errors, &rows, &mut gradient, n_posing, dim);
    (loss, gradient)
}

/// The generated weights of an episode's posing classes, with the intermediate results for the backward pass.
struct GeneratedWeights {
    /// Examples of all posing classes, one class after the other.
    rows: Vec<f32>,
    /// The number of examples of each class.
    counts: Vec<usize>,
    shares: Shares,
    /// Per class: z̄, and the attended base weights.
    means: Vec<f32>,
    attended: Vec<f32>,
    weights: Vec<f32>,
}

impl GeneratedWeights {
    fn new(lookup: &Lookup, sets: &[Features], episode: &Episode) -> GeneratedWeights {
        let n_base = lookup.base.weights().len();
        let dim = lookup.base.weights().dim();
        let absent: Vec<usize> = episode.posing.iter().map(|posing| posing.class).collect();
        let counts: Vec<usize> = episode.posing.iter().map(|posing| posing.examples.len()).collect();
        let of = |posing: &PosingClass| -> Vec<f32> {
            posing.examples.iter().flat_map(|&row| sets[posing.class].row(row)).copied().collect()
        };
        let rows: Vec<f32> = episode.posing.iter().flat_map(of).collect();
        let shares = lookup.shares(&rows, &absent);
        let mut means = Vec::new();
        let mut attended = Vec::new();
        let mut weights = Vec::new();
        let mut start = 0;
        for &count in &counts {
            let mean = mean_row(&rows[start * dim..(start + count) * dim], dim);
            let share = mean_row(&shares.shares[start * n_base..(start + count) * n_base], n_base);
            let brought = lookup.attended(&share);
            weights.extend(lookup.combine(&mean, &brought));
            means.extend(mean);
            attended.extend(brought);
            start += count;
        }
        GeneratedWeights { rows, counts, shares, means, attended, weights }
    }

    /// Backpropagates the gradient of the weights to all parameters.
    fn gradient(self, lookup: &Lookup, gradient_of_weights: &[f32], loss: f64) -> EpisodeGradient {
        let base = lookup.base.weights();
        let n_base = base.len();
        let dim = base.dim();
        let mut gradient = AttentionParameters {
            query: Vec::new(),
            keys: vec![0.0; n_base * dim],
            average: vec![0.0; dim],
            attended: vec![0.0; dim],
            gamma: 0.0,
        };
        let mut by_cosine = Vec::with_capacity(self.shares.shares.len()); // n×B
        let shares = self.shares.shares.chunks_exact(n_base);
        let mut examples = shares.zip(self.shares.cosines.chunks_exact(n_base));
        let classes = gradient_of_weights.chunks_exact(dim);
        let classes = classes.zip(self.means.chunks_exact(dim)).zip(self.attended.chunks_exact(dim));
        for (((by_weight, mean), attended), &count) in classes.zip(&self.counts) {
            add_products(&mut gradient.average, by_weight, mean);
            add_products(&mut gradient.attended, by_weight, attended);
            let by_attended: Vec<f32> = by_weight
                .iter()
                .zip(&lookup.parameters.attended)
                .map(|(gradient, phi)| gradient * phi)
                .collect();
            let by_share: Vec<f32> =
                base.rows().map(|weight| dot(weight, &by_attended) / count as f32).collect();
            for (shares, cosines) in examples.by_ref().take(count) {
                let mean_gradient: f32 =
                    shares.iter().zip(&by_share).map(|(share, gradient)| share * gradient).sum();
                for ((share, cosine), by_share) in shares.iter().zip(cosines).zip(&by_share) {
                    let by_logit = share * (by_share - mean_gradient);
                    gradient.gamma += by_logit * cosine;
                    by_cosine.push(by_logit * lookup.parameters.gamma);
                }
            }
        }
        let by_query = self.add_keys(lookup, &by_cosine, &mut gradient.keys);
        EpisodeGradient { loss, gradient, rows: self.rows, by_query }
    }

    /// cos = q̂·k̂: back through both lengths. Adds to the gradient of the keys and returns that of the queries.
    fn add_keys(&self, lookup: &Lookup, by_cosine: &[f32], by_key: &mut [f32]) -> Vec<f32> {
        let n_base = lookup.base.weights().len();
        let dim = lookup.base.weights().dim();
        let Shares { unit_queries, query_lengths, .. } = &self.shares;
        add_transposed_product(by_cosine, unit_queries, by_key, n_base, dim);
        let keys = by_key.chunks_exact_mut(dim).zip(lookup.unit_keys.chunks_exact(dim));
        keys.zip(&lookup.key_lengths).for_each(|((s, unit), &length)| through_normalisation(s, unit, length));

        let mut by_query = vec![0f32; unit_queries.len()];
        product(by_cosine, &lookup.unit_keys, &mut by_query, n_base, dim);
        let queries = by_query.chunks_exact_mut(dim).zip(unit_queries.chunks_exact(dim));
        queries.zip(query_lengths).for_each(|((s, unit), &length)| through_normalisation(s, unit, length));
        by_query
    }
}

fn mean_row(rows: &[f32], width: usize) -> Vec<f32> {
    let n = rows.len() / width;
    let mut sum = vec![0f32; width];
    rows.chunks_exact(width).for_each(|row| add(&mut sum, row));
    sum.iter_mut().for_each(|value| *value /= n as f32);
    sum
}

fn add_products(out: &mut [f32], a: &[f32], b: &[f32]) {
    out.iter_mut().zip(a.iter().zip(b)).for_each(|(out, (a, b))| *out += a * b);
}
