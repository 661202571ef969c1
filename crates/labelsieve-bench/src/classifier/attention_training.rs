//! The second training stage: base classes pose as novel ones, and the generator learns to give their weights back.

use labelsieve::classifier::WeightMatrix;
use labelsieve::{Error, Features, Result, check};
use labelsieve_numerics::random::Stream;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::attention::{Attention, AttentionParameters, Lookup};
use super::attention_gradient::{episode_gradient, sum_gradients};

/// The training of the attention generator: SGD with momentum over episodes, features and base weights frozen, the
/// learning rate annealed by half a cosine.
///
/// In an episode some base classes pose as novel: their own weights leave the attention, and weights generated from a
/// few of their examples stand in for them in the cosine softmax over all base classes, which other examples of
/// posing and remaining classes are classified with.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AttentionTraining {
    /// Steps of gradient descent.
    pub steps: usize,
    /// Episodes per step.
    pub episodes: usize,
    /// Base classes that pose as novel in an episode.
    pub posing: usize,
    /// Largest number of examples of a posing class; each episode draws a number from 1 to this.
    pub most_shots: usize,
    /// Examples classified per posing class; as many of the remaining classes join them.
    pub queries: usize,
    /// Learning rate of the first step.
    pub learning_rate: f32,
    /// Learning rate of the last step.
    pub final_learning_rate: f32,
    /// Momentum of SGD.
    pub momentum: f32,
    /// L2 penalty on everything learned.
    pub decay: f32,
}

/// Upper limit of all counts.
const MAX_COUNT: usize = 1_000_000;

impl Default for AttentionTraining {
    fn default() -> AttentionTraining {
        AttentionTraining {
            steps: 2000,
            episodes: 8,
            posing: 5,
            most_shots: 5,
            queries: 15,
            learning_rate: 0.1,
            final_learning_rate: 0.001,
            momentum: 0.9,
            decay: 5e-4,
        }
    }
}

/// Base classes that pose as novel, and the examples to be classified. Examples are rows of their classes' sets.
pub(super) struct Episode {
    pub(super) posing: Vec<PosingClass>,
    /// Class and row of each.
    pub(super) queries: Vec<(usize, usize)>,
}

/// A base class that poses as a novel one.
pub(super) struct PosingClass {
    pub(super) class: usize,
    pub(super) examples: Vec<usize>,
}

impl AttentionTraining {
    /// Rejects settings outside their range.
    pub fn checked(&self) -> Result<()> {
        for (name, count) in [
            ("steps", self.steps),
            ("episodes", self.episodes),
            ("posing", self.posing),
            ("most_shots", self.most_shots),
            ("queries", self.queries),
        ] {
            check((1..=MAX_COUNT).contains(&count), name, "1 to 1000000", count)?;
        }
        let falling = self.learning_rate >= self.final_learning_rate && self.final_learning_rate > 0.0;
        check(falling, "final_learning_rate", "above 0 and at most learning_rate", self.final_learning_rate)?;
        check(self.learning_rate.is_finite(), "learning_rate", "a finite number", self.learning_rate)?;
        check((0.0..1.0).contains(&self.momentum), "momentum", "a number in [0, 1)", self.momentum)?;
        check(self.decay >= 0.0 && self.decay.is_finite(), "decay", "a non-negative number", self.decay)
    }

    /// Learns a generator from the examples of each base class, in the order of `base`'s rows. `on_step` receives the
    /// number of each step, from 1, and its loss.
    pub fn train(
        &self,
        base: &WeightMatrix,
        sets: &[Features],
        seed: u64,
        mut on_step: impl FnMut(usize, f64),
    ) -> Result<Attention> {
        self.checked()?;
        self.check_sets(base, sets)?;
        let n_base = base.weights().len();
        let start = AttentionParameters::initial(n_base, base.weights().dim(), seed);
        let mut descent = Descent::new(start);
        let sizes: Vec<usize> = sets.iter().map(Features::len).collect();
        for step in 0..self.steps {
            let stream = Stream::new(seed).branch(2).branch(step as u64);
            let episodes: Vec<Episode> =
                (0..self.episodes).map(|e| self.episode(&sizes, stream.branch(e as u64))).collect();
            let progress = step as f32 / (self.steps - 1).max(1) as f32;
            let half_cosine = 0.5 + 0.5 * (std::f32::consts::PI * progress).cos();
            let fall = self.learning_rate - self.final_learning_rate;
            let rate = self.final_learning_rate + fall * half_cosine;
            on_step(step + 1, descent.take(base, sets, &episodes, rate, self));
        }
        Attention::new(descent.parameters, base.clone())
    }

    fn check_sets(&self, base: &WeightMatrix, sets: &[Features]) -> Result<()> {
        let n_base = base.weights().len();
        if sets.len() != n_base {
            return Err(Error::Length { what: "sets of base examples", expected: n_base, found: sets.len() });
        }
        check(n_base > self.posing, "base classes", "more than the posing ones", n_base)?;
        for set in sets {
            base.weights().check_width("a set of base examples", set, "the base classifier")?;
            check(set.len() >= 2, "examples of a base class", "at least 2", set.len())?;
        }
        Ok(())
    }

    /// Draws an episode. The examples and queries of a posing class never overlap, even in a small class.
    fn episode(&self, sizes: &[usize], stream: Stream) -> Episode {
        let order = stream.branch(0).choose(sizes.len(), sizes.len());
        let (posing, remaining) = order.split_at(self.posing);
        let shots = 1 + stream.branch(1).below(0, self.most_shots);
        let mut episode = Episode { posing: Vec::with_capacity(posing.len()), queries: Vec::new() };
        for (p, &class) in posing.iter().enumerate() {
            let n_examples = shots.min(sizes[class] / 2);
            let mut examples =
                stream.branch(2).branch(p as u64).choose(sizes[class], n_examples + self.queries);
            let queries = examples.split_off(n_examples);
            episode.queries.extend(queries.into_iter().map(|row| (class, row)));
            episode.posing.push(PosingClass { class, examples });
        }
        let of_class = stream.branch(3);
        let of_row = stream.branch(4);
        for q in 0..(self.posing * self.queries) as u64 {
            let class = remaining[of_class.below(q, remaining.len())];
            episode.queries.push((class, of_row.below(q, sizes[class])));
        }
        episode
    }
}

/// Numbers per unit of parallel work; φ_q has d×d of them.
const PIECE: usize = 1 << 16;

/// The state of SGD.
pub(super) struct Descent {
    pub(super) parameters: AttentionParameters,
    velocity: AttentionParameters,
}

impl Descent {
    pub(super) fn new(parameters: AttentionParameters) -> Descent {
        Descent { velocity: parameters.zeros_like(), parameters }
    }

    /// Takes a step on the mean loss of some episodes, and returns the loss.
    pub(super) fn take(
        &mut self,
        base: &WeightMatrix,
        sets: &[Features],
        episodes: &[Episode],
        rate: f32,
        settings: &AttentionTraining,
    ) -> f64 {
        let (loss, mut gradient) = mean_gradient(&self.parameters, base, sets, episodes);
        let all = self.parameters.slices_mut().into_iter().zip(self.velocity.slices_mut());
        for ((parameters, velocity), gradient) in all.zip(gradient.slices_mut()) {
            let pieces = parameters.par_chunks_mut(PIECE).zip(velocity.par_chunks_mut(PIECE));
            pieces.zip(gradient.par_chunks_mut(PIECE)).for_each(|((parameters, velocity), gradient)| {
                for ((parameter, velocity), gradient) in parameters.iter_mut().zip(velocity).zip(gradient) {
                    *velocity = settings.momentum * *velocity + *gradient + settings.decay * *parameter;
                    *parameter -= rate * *velocity;
                }
            });
        }
        loss
    }
}

/// The mean loss of some episodes and its gradient, computed in parallel and summed in order.
pub(super) fn mean_gradient(
    parameters: &AttentionParameters,
    base: &WeightMatrix,
    sets: &[Features],
    episodes: &[Episode],
) -> (f64, AttentionParameters) {
    let lookup = Lookup::new(parameters, base);
    let share = 1.0 / episodes.len() as f32;
    let parts = episodes.par_iter().map(|episode| episode_gradient(&lookup, sets, episode, share)).collect();
    let (loss, gradient) = sum_gradients(parameters, parts, base.weights().dim());
    (loss * f64::from(share), gradient)
}

#[cfg(test)]
#[path = "attention_tests.rs"]
mod tests;
