//! The interface to a network on a device.

use std::ops::Range;

use labelsieve_numerics::random::Stream;

use crate::embedder::Embedder;
use crate::error::{Error, Result};
use crate::network::{Network, Parameter, Role};

/// Where the scale s of the classifier starts.
const INITIAL_SCALE: f32 = 10.0;

/// Makes the learners of a device.
pub trait Learners: Send + Sync {
    /// A learner for `network` that starts from `snapshot`.
    fn learner(&self, network: &Network, snapshot: &Snapshot) -> Result<Box<dyn Learner>>;
}

/// A network with its weights on a device, and the cosine classifier on top.
///
/// As an [`Embedder`] it uses the running statistics of its normalisations. The same calls give the same numbers on the same
/// kind of device, at any number of threads.
pub trait Learner: Embedder {
    /// One step of gradient descent on the weighted loss of the cosine classifier (eq. 6 to 8):
    ///
    /// ```text
    /// L = - Σ_i u_i ln softmax(s Ŵᵀ ĝ(x_i))_{c_i}
    /// ```
    ///
    /// with u the weights in `targets`. The loss stays on the device until [`Learner::tally`] asks for it.
    fn step(&mut self, images: &Batch, targets: Targets, sgd: &Sgd) -> Result<()>;

    /// One step of gradient descent on a loss of the features alone, for a network without a classifier.
    fn step_on_features(&mut self, images: &Batch, objective: &dyn FeatureObjective, sgd: &Sgd)
    -> Result<()>;

    /// The totals of all steps since the last call.
    fn tally(&mut self) -> Result<Tally>;

    /// Everything needed to resume later as if uninterrupted.
    fn snapshot(&mut self) -> Result<Snapshot>;
}

/// A loss of the features of a batch, whatever device made them.
pub trait FeatureObjective: Sync {
    /// The loss of N×d features, with its gradient.
    fn loss(&self, features: &[f32], dim: usize) -> Result<FeatureLoss>;
}

/// The loss and the gradient of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureLoss {
    /// The loss.
    pub loss: f64,
    /// Images that were classified correctly.
    pub correct: u64,
    /// Images that were classified.
    pub counted: u64,
    /// N×d: the gradient by the features.
    pub by_features: Vec<f32>,
}

/// Rejects a network with a classifier, which a loss of the features alone would not train.
#[doc(hidden)] // for the learner of our own crate
pub fn check_no_classifier(n_classes: usize) -> Result<()> {
    match n_classes {
        0 => Ok(()),
        _ => Err(Error::Shape {
            what: "classifier".to_owned(),
            expected: "none on top of a network that learns from its features alone".to_owned(),
            found: format!("{n_classes} classes"),
        }),
    }
}

/// Images of one size, 8 bits per channel: row by row, pixel by pixel, red green blue.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    height: usize,
    width: usize,
    pixels: Vec<u8>,
}

impl Batch {
    /// Wraps `pixels`, a whole number of images of `height` × `width`.
    pub fn new(height: usize, width: usize, pixels: Vec<u8>) -> Result<Batch> {
        let image = height * width * 3;
        if image == 0 || !pixels.len().is_multiple_of(image) {
            return Err(Error::Shape {
                what: "bytes of a batch".to_owned(),
                expected: format!("a multiple of {height}×{width}×3"),
                found: pixels.len().to_string(),
            });
        }
        Ok(Batch { height, width, pixels })
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.pixels.len() / (self.height * self.width * 3)
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.pixels.is_empty()
    }

    /// Height and width of each image.
    pub fn size(&self) -> (usize, usize) {
        (self.height, self.width)
    }

    /// All bytes.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// Checks that the images have the size of the network's input.
    pub fn check(&self, network: &Network) -> Result<()> {
        let input = network.input();
        if self.size() == (input.height, input.width) {
            return Ok(());
        }
        Err(Error::Shape {
            what: "images".to_owned(),
            expected: format!("{}×{}", input.height, input.width),
            found: format!("{}×{}", self.height, self.width),
        })
    }
}

/// The class of each image of a batch and its weight u in the loss.
#[derive(Clone, Copy, Debug)]
pub struct Targets<'a> {
    /// Class numbers, from 0.
    pub classes: &'a [u32],
    /// Weights. A plain mean over the batch is 1/n for each.
    pub weights: &'a [f32],
    /// Eq. (8) is the sum of two losses, each with a softmax of its own: classes below `split` compete among
    /// themselves, and so do the others. 0 when all compete with all.
    pub split: usize,
}

impl Targets<'_> {
    /// Checks that there are targets for `images` images, and classes below `n_classes`.
    pub fn check(&self, images: usize, n_classes: usize) -> Result<()> {
        let wrong = |what: &str, expected: String, found: String| {
            Err(Error::Shape { what: what.to_owned(), expected, found })
        };
        if self.classes.len() != images || self.weights.len() != images {
            let found = format!("{} classes and {} weights", self.classes.len(), self.weights.len());
            return wrong("targets", format!("{images} of each"), found);
        }
        if let Some(class) = self.classes.iter().find(|&&class| class as usize >= n_classes) {
            return wrong("class", format!("a number below {n_classes}"), class.to_string());
        }
        if self.split > n_classes {
            return wrong("split", format!("at most {n_classes}"), self.split.to_string());
        }
        Ok(())
    }
}

/// How a step is taken: stochastic gradient descent with Nesterov momentum.
///
/// ```text
/// g ← ∂L/∂θ + decay θ;   v ← momentum v + g;   θ ← θ - rate (g + momentum v)
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sgd {
    /// Learning rate.
    pub rate: f32,
    /// Momentum.
    pub momentum: f32,
    /// Weight decay, added to the gradient of every learned parameter but the scale.
    pub decay: f32,
    /// Whether the scale s learns too (eq. 7) or stays as it is (eq. 6 and 8).
    pub scale: ScaleRule,
}

impl Sgd {
    /// One step of a tensor with its own weight decay.
    pub fn update(&self, decay: f32, gradient: &[f32], momentum: &mut [f32], values: &mut [f32]) {
        for ((value, velocity), gradient) in values.iter_mut().zip(momentum).zip(gradient) {
            let gradient = gradient + decay * *value;
            *velocity = self.momentum * *velocity + gradient;
            *value -= self.rate * (gradient + self.momentum * *velocity);
        }
    }
}

/// Whether the scale s of the classifier is trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleRule {
    /// It is trained.
    Learned,
    /// It stays fixed.
    Fixed,
}

/// The totals of some steps.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// Sum of the losses of the steps.
    pub loss: f64,
    /// Images whose class had the largest score.
    pub correct: u64,
    /// Images in all.
    pub images: u64,
    /// Steps.
    pub steps: u64,
}

/// The numbers of a network and its classifier: those of [`Network::parameters`], one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// Classes of the classifier; 0 for a network alone.
    pub n_classes: usize,
    /// All parameters, in the layouts that their shapes say.
    pub values: Vec<f32>,
    /// The momentum of each, zeros at the start and for what is not learned.
    pub momentum: Vec<f32>,
}

impl Snapshot {
    /// An untrained network: convolutions from N(0, 2/(kernel² · outputs)), identity normalisations, class weights from N(0,
    /// 2/d) and s = 10.
    pub fn initial(network: &Network, n_classes: usize, seed: u64) -> Snapshot {
        let stream = Stream::new(seed);
        let mut values = Vec::new();
        for (position, parameter) in network.parameters(n_classes).iter().enumerate() {
            let stream = stream.branch(position as u64);
            let normal =
                |variance: f32| (0..parameter.len()).map(move |i| variance.sqrt() * stream.normal(i as u64));
            let shape = &parameter.shape;
            match parameter.role {
                Role::Convolution => values.extend(normal(2.0 / (shape[0] * shape[2] * shape[3]) as f32)),
                Role::Depthwise => values.extend(normal(2.0 / (shape[2] * shape[3]) as f32)),
                Role::ClassWeights => values.extend(normal(2.0 / network.dim() as f32)),
                Role::Scale | Role::RunningVariance => values.extend(vec![1.0; parameter.len()]),
                Role::Shift | Role::RunningMean => values.extend(vec![0.0; parameter.len()]),
                Role::ClassScale => values.push(INITIAL_SCALE),
            }
        }
        Snapshot { n_classes, momentum: vec![0.0; values.len()], values }
    }

    /// Each tensor of `network` with its place in the numbers; an error if the numbers are not those of this network.
    pub fn tensors(&self, network: &Network) -> Result<Vec<(Parameter, Range<usize>)>> {
        let mut end = 0;
        let tensors: Vec<_> = network
            .parameters(self.n_classes)
            .into_iter()
            .map(|parameter| {
                let range = end..end + parameter.len();
                end = range.end;
                (parameter, range)
            })
            .collect();
        if self.values.len() != end || self.momentum.len() != end {
            return Err(Error::Shape {
                what: "numbers of a snapshot".to_owned(),
                expected: end.to_string(),
                found: format!("{} with {} momenta", self.values.len(), self.momentum.len()),
            });
        }
        Ok(tensors)
    }
}
