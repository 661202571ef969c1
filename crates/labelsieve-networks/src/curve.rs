//! The pictures of a training. Drawing them is left to the report, through [`Curves`].

use std::path::{Path, PathBuf};

use labelsieve_files::work::Result;

use crate::training::Epoch;

/// Draws how a training went.
pub trait Curves: Sync {
    /// Refuses to replace pictures that somebody else made; asked before the training.
    fn check(&self, output: &Path) -> Result<()>;

    /// Draws accuracy and loss per epoch beside `output`, and returns where.
    fn draw(&self, output: &Path, title: &str, epochs: &[Epoch]) -> Result<[PathBuf; 2]>;
}

/// The curves of accuracy and of loss beside the file of a trained network.
pub fn paths(output: &Path) -> [PathBuf; 2] {
    ["accuracy", "loss"].map(|id| output.with_extension(format!("{id}.svg")))
}
