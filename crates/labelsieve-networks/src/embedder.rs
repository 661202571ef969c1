//! What embedding needs of a network.

use crate::error::Result;
use crate::learner::Batch;

/// Turns images into features: all that embedding needs of a network, whatever it is made of.
pub trait Embedder: Send {
    /// Numbers per feature.
    fn dim(&self) -> usize;

    /// N×d features of a batch, not yet of unit length.
    fn features(&mut self, images: &Batch) -> Result<Vec<f32>>;
}
