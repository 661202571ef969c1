//! The training curves. The report draws them, through [`Curves`].

use std::path::{Path, PathBuf};

use labelsieve_files::work::Result;

use crate::training::Epoch;

/// Draws how a training went.
pub trait Curves: Sync {
    /// Checks, before the training, that no existing file would be overwritten, except curves of our own.
    fn check(&self, output: &Path) -> Result<()>;

    /// Draws accuracy and loss per epoch beside `output`, and returns where.
    fn draw(&self, output: &Path, title: &str, epochs: &[Epoch]) -> Result<[PathBuf; 2]>;
}

/// The curves of accuracy and of loss beside the file of a trained network.
pub fn paths(output: &Path) -> [PathBuf; 2] {
    ["accuracy", "loss"].map(|id| output.with_extension(format!("{id}.svg")))
}
