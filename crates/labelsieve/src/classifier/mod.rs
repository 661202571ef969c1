//! Learning from weighted examples: prototypes and the cosine classifier of the paper, and a discriminant in closed form.
//!
//! `left_out` classifies clean examples without themselves; by these, `auto` chooses among classifiers and `confidence` turns
//! scores into probabilities.

pub mod auto;
mod confidence;
#[cfg(test)]
mod contract;
#[cfg(test)]
mod contract_learners;
mod cosine;
pub mod discriminant;
mod left_out;
mod prototype;
mod weight_matrix;

use labelsieve_numerics::kernels::add_scaled;

pub use confidence::Confidence;
pub use cosine::{BATCH_SIZES, Cosine, EPOCHS, cosine_loss};
pub use discriminant::{Discriminant, FittedDiscriminant, Shrinkage};
pub use left_out::LeftOut;
pub use prototype::{prototype, prototypes};
pub use weight_matrix::WeightMatrix;
#[doc(hidden)] // for our own crates
pub use weight_matrix::affine_scores;

use crate::error::{Error, Result};
use crate::features::Features;

#[doc(hidden)] // for our own crates
pub use cosine::{length, log_softmax, softmax, through_normalisation};

/// The examples one class is learned from: the extended set of clean and noisy ones, each with its relevance.
#[derive(Clone, Copy)]
pub struct WeightedClass<'a> {
    clean: &'a Features,
    noisy: &'a Features,
    relevance: &'a [f32],
}

impl<'a> WeightedClass<'a> {
    /// `clean` examples have weight 1, `noisy` ones their `relevance`.
    pub fn new(clean: &'a Features, noisy: &'a Features, relevance: &'a [f32]) -> Result<WeightedClass<'a>> {
        if clean.is_empty() {
            return Err(Error::NoCleanExample);
        }
        clean.check_width("the noisy set", noisy, "the clean set")?;
        if relevance.len() != noisy.len() {
            return Err(Error::Length { what: "relevance", expected: noisy.len(), found: relevance.len() });
        }
        Ok(WeightedClass { clean, noisy, relevance })
    }

    /// With other clean examples, perhaps none; `None` if nothing would have any weight.
    pub(crate) fn without(&self, clean: &'a Features) -> Option<WeightedClass<'a>> {
        let rest = WeightedClass { clean, ..*self };
        (rest.total() > 0.0).then_some(rest)
    }

    /// The clean examples, of weight 1.
    pub fn clean(&self) -> &'a Features {
        self.clean
    }

    /// The noisy examples.
    pub fn noisy(&self) -> &'a Features {
        self.noisy
    }

    /// The weights of the noisy examples.
    pub fn relevance(&self) -> &'a [f32] {
        self.relevance
    }

    /// All examples, clean first, with their weights.
    pub fn examples(&self) -> impl Iterator<Item = (&'a [f32], f32)> + use<'a> {
        let noisy = self.noisy.rows().zip(self.relevance.iter().copied());
        self.clean.rows().map(|row| (row, 1.0)).chain(noisy)
    }

    /// Number of clean examples.
    pub fn n_clean(&self) -> usize {
        self.clean.len()
    }

    /// Σ over clean examples + Σ weight(relevance) over noisy ones, of the features.
    pub fn weighted_sum(&self, weight: impl Fn(f32) -> f32) -> Vec<f32> {
        const CHUNK: usize = 512; // f32 inside a chunk, f64 across: exact enough for a million rows, and fast
        let dim = self.clean.dim();
        let clean = self.clean.rows().map(|row| (row, 1.0));
        let noisy = self.noisy.rows().zip(self.relevance.iter().map(|&relevance| weight(relevance)));
        let examples: Vec<(&[f32], f32)> = clean.chain(noisy).filter(|(_, weight)| *weight > 0.0).collect();
        let mut sum = vec![0f64; dim];
        let mut part = vec![0f32; dim];
        for examples in examples.chunks(CHUNK) {
            part.fill(0.0);
            examples.iter().for_each(|(row, weight)| add_scaled(&mut part, *weight, row));
            sum.iter_mut().zip(&part).for_each(|(sum, &part)| *sum += f64::from(part));
        }
        sum.iter().map(|&sum| sum as f32).collect()
    }

    /// r(X): the sum of all weights.
    pub fn total(&self) -> f64 {
        self.clean.len() as f64 + self.relevance.iter().map(|&r| f64::from(r)).sum::<f64>()
    }
}
