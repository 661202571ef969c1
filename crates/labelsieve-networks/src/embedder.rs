//! The interface between networks and embedding.

use crate::error::Result;
use crate::learner::Batch;

/// Turns images into features.
pub trait Embedder: Send {
    /// Numbers per feature.
    fn dim(&self) -> usize;

    /// N×d features of a batch, not yet of unit length.
    fn features(&mut self, images: &Batch) -> Result<Vec<f32>>;
}
