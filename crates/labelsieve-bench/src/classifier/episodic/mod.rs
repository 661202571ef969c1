//! Networks on features that learn from episodes of base classes, which pose as novel ones: prototypical networks (Snell, Swersky and
//! Zemel, NIPS 2017), a hallucinator of examples, and prototype matching networks with one (Wang, Girshick, Hebert and Hariharan,
//! *Low-shot learning from imaginary data*, CVPR 2018).
//!
//! `network` is the forward pass, written on the `tape` that differentiates it; `training` learns from episodes; `classify` makes
//! classifiers of novel classes.

mod classify;
mod network;
mod tape;
mod training;

use labelsieve::{Error, Result, check};
use labelsieve_numerics::random::Stream;
use serde::{Deserialize, Serialize};

pub use classify::EpisodicClassifier;
pub use training::EpisodicTraining;

/// The kind of a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EpisodicKind {
    /// An embedding in which a class is the mean of its examples.
    Prototypical,
    /// A hallucinator, which makes further examples of a class from its examples. The classifier that learns from them is chosen later; in
    /// episodes, classes are means.
    Hallucination,
    /// Prototype matching networks with hallucination: embedding, hallucinator, and classes and queries in the context of all classes.
    PrototypeMatching,
}

/// The sizes of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EpisodicSizes {
    /// Numbers per feature, d.
    pub dim: usize,
    /// Units of hidden layers, h.
    pub hidden: usize,
    /// Numbers of noise that a hallucination is made from, m.
    pub noise: usize,
    /// Examples that are hallucinated per class.
    pub generated: usize,
    /// How often a query attends to the classes.
    pub readings: usize,
}

/// A system and its learned parameters.
///
/// ```text
/// embedding      φ(x) = unit(x + E₂ relu(E₁ x))                                (biases everywhere)
/// hallucinator   G(x, z) = unit(x + H₃ relu(H₂ relu(H₁ [x, z])))               z ~ N(0, I)
/// class          p_c = unit of the weighted mean of φ over its examples and hallucinations
/// context        g_c = p_c + →h_c + ←h_c: two LSTMs over the classes, from the first and from the last
/// query          h₀ = φ(x);  r = Σ_c softmax_c(h·g_c) g_c;  ĥ, c = LSTM(φ(x), [h, r], c);  h = ĥ + φ(x)
/// score          s cos(h, g_c)
/// ```
///
/// Prototypical networks consist of φ, p_c and the score; the hallucinator by itself of G, p_c with φ = x, and the score; prototype
/// matching networks of all parts. All parts are trained jointly, on the cross entropy of the queries of episodes.
///
/// Decisions where the papers leave details open or assume other features:
/// - Wang et al. start the layers of the hallucinator as identity matrices, so that it begins by copying; this assumes
///   non-negative features. Ours are signed and of unit length: the copy is a shortcut, and the last layer starts at
///   zero. The embedding starts the same way, at the features themselves.
/// - They train a hallucinator with each classifier. Logistic regression cannot be differentiated through at every step, so ours
///   learns with means of classes, and logistic regression uses what it learned.
/// - Scores are cosines with a learned scale, as everywhere in this crate.
/// - Which example a hallucination starts from: each clean example of the class in turn.
#[derive(Clone, Debug, PartialEq)]
pub struct EpisodicModel {
    kind: EpisodicKind,
    sizes: EpisodicSizes,
    tensors: Vec<Tensor>,
}

/// A named matrix of parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// Rows and columns.
    pub shape: [usize; 2],
    /// Row by row.
    pub values: Vec<f32>,
}

/// The initialisation of a tensor.
#[derive(Clone, Copy)]
enum Start {
    /// N(0, 2/columns), before a ReLU.
    Normal,
    /// Uniform in ±1/√d, as LSTMs do.
    Uniform,
    Zero,
    /// The scale of cosines.
    Ten,
}

/// Larger sizes are typos: a square matrix of this size takes 4 GiB.
const MAX_SIZE: usize = 1 << 15;

impl EpisodicSizes {
    /// The default sizes for features of `dim` numbers.
    pub fn usual(dim: usize) -> EpisodicSizes {
        EpisodicSizes { dim, hidden: 256, noise: 64, generated: 5, readings: 2 }
    }

    fn checked(&self) -> Result<()> {
        for (name, value) in [
            ("dim", self.dim),
            ("hidden", self.hidden),
            ("noise", self.noise),
            ("generated", self.generated),
            ("readings", self.readings),
        ] {
            check((1..=MAX_SIZE).contains(&value), name, "1 to 32768", value)?;
        }
        Ok(())
    }
}

impl EpisodicKind {
    pub(super) fn embeds(self) -> bool {
        self != EpisodicKind::Hallucination
    }

    /// Whether it has a hallucinator.
    pub fn hallucinates(self) -> bool {
        self != EpisodicKind::Prototypical
    }

    pub(super) fn has_context(self) -> bool {
        self == EpisodicKind::PrototypeMatching
    }

    /// The names, shapes and initialisation of its tensors.
    fn layout(self, sizes: &EpisodicSizes) -> Vec<(&'static str, [usize; 2], Start)> {
        let EpisodicSizes { dim, hidden, noise, .. } = *sizes;
        let mut layout = Vec::new();
        if self.embeds() {
            layout.extend([
                ("embedding.first", [hidden, dim], Start::Normal),
                ("embedding.first_bias", [1, hidden], Start::Zero),
                ("embedding.second", [dim, hidden], Start::Zero),
                ("embedding.second_bias", [1, dim], Start::Zero),
            ]);
        }
        if self.hallucinates() {
            layout.extend([
                ("hallucinator.first", [hidden, dim + noise], Start::Normal),
                ("hallucinator.first_bias", [1, hidden], Start::Zero),
                ("hallucinator.second", [hidden, hidden], Start::Normal),
                ("hallucinator.second_bias", [1, hidden], Start::Zero),
                ("hallucinator.third", [dim, hidden], Start::Zero),
                ("hallucinator.third_bias", [1, dim], Start::Zero),
            ]);
        }
        if self.has_context() {
            layout.extend([
                ("onward.input", [4 * dim, dim], Start::Uniform),
                ("onward.state", [4 * dim, dim], Start::Uniform),
                ("onward.bias", [1, 4 * dim], Start::Zero),
                ("backward.input", [4 * dim, dim], Start::Uniform),
                ("backward.state", [4 * dim, dim], Start::Uniform),
                ("backward.bias", [1, 4 * dim], Start::Zero),
                ("reader.input", [4 * dim, dim], Start::Uniform),
                ("reader.state", [4 * dim, 2 * dim], Start::Uniform),
                ("reader.bias", [1, 4 * dim], Start::Zero),
            ]);
        }
        layout.push(("scale", [1, 1], Start::Ten));
        layout
    }
}

impl EpisodicModel {
    /// An untrained system. Except for the context of its classes, it classifies by the means of the features.
    pub fn initial(kind: EpisodicKind, sizes: EpisodicSizes, seed: u64) -> Result<EpisodicModel> {
        sizes.checked()?;
        let stream = Stream::new(seed);
        let tensor = |(place, (name, shape, start)): (usize, (&str, [usize; 2], Start))| {
            let stream = stream.branch(place as u64);
            let value = |i: usize| match start {
                Start::Normal => (2.0 / shape[1] as f32).sqrt() * stream.normal(i as u64),
                Start::Uniform => (2.0 * stream.uniform(i as u64) - 1.0) / (sizes.dim as f32).sqrt(),
                Start::Zero => 0.0,
                Start::Ten => 10.0,
            };
            let values = (0..shape[0] * shape[1]).map(value).collect();
            Tensor { name: name.to_owned(), shape, values }
        };
        let tensors = kind.layout(&sizes).into_iter().enumerate().map(tensor).collect();
        Ok(EpisodicModel { kind, sizes, tensors })
    }

    /// A system from saved tensors, in any order; rejects tensors that do not fit the kind and its sizes.
    pub fn new(kind: EpisodicKind, sizes: EpisodicSizes, mut given: Vec<Tensor>) -> Result<EpisodicModel> {
        sizes.checked()?;
        let mut tensors = Vec::new();
        for (name, shape, _) in kind.layout(&sizes) {
            let Some(place) = given.iter().position(|tensor| tensor.name == name) else {
                return Err(Error::Setting {
                    name,
                    expected: "a tensor of this name",
                    found: "none".to_owned(),
                });
            };
            let tensor = given.swap_remove(place);
            let expected = shape[0] * shape[1];
            let found = tensor.values.len();
            if tensor.shape != shape || expected != found {
                return Err(Error::Length { what: name, expected, found });
            }
            check(tensor.values.iter().all(|value| value.is_finite()), name, "finite numbers", "others")?;
            tensors.push(tensor);
        }
        Ok(EpisodicModel { kind, sizes, tensors })
    }

    /// The kind of the system.
    pub fn kind(&self) -> EpisodicKind {
        self.kind
    }

    /// The sizes of the network.
    pub fn sizes(&self) -> &EpisodicSizes {
        &self.sizes
    }

    /// The learned parameters.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// The same system with another number of hallucinations per class.
    pub fn with_generated(mut self, generated: usize) -> Result<EpisodicModel> {
        self.sizes.generated = generated;
        self.sizes.checked()?;
        Ok(self)
    }
}

#[cfg(test)]
mod tests;
