//! A network on a device: what it can be asked.

use crate::error::{Error, Result};
use crate::network::Network;

/// Makes learners: the processor, or a GPU.
pub trait Networks: Send + Sync {
    /// A learner for `network` that starts from `snapshot`.
    fn learner(&self, network: &Network, snapshot: &Snapshot) -> Result<Box<dyn Learner>>;
}

/// A network with its weights on a device, and the cosine classifier on top.
///
/// The same calls give the same numbers on the same kind of device, at any number of threads.
pub trait Learner: Send {
    /// N×d features of a batch, not yet of unit length, with the running statistics of the normalisations.
    fn features(&mut self, images: &Batch) -> Result<Vec<f32>>;

    /// One step of gradient descent on the weighted loss of the cosine classifier (eq. 6 to 8):
    ///
    /// ```text
    /// L = - Σ_i u_i ln softmax(s Ŵᵀ ĝ(x_i))_{c_i}
    /// ```
    ///
    /// with u the weights in `targets`. The loss stays on the device until [`Learner::tally`] asks for it.
    fn step(&mut self, images: &Batch, targets: Targets, sgd: &Sgd) -> Result<()>;

    /// What all steps since the last call added up to.
    fn tally(&mut self) -> Result<Tally>;

    /// Everything needed to go on later as if nothing had happened.
    fn snapshot(&mut self) -> Result<Snapshot>;
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

    /// Whether there is none.
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

/// What happens to the scale s of the classifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleRule {
    /// It learns.
    Learned,
    /// It stays.
    Fixed,
}

/// What steps added up to.
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
