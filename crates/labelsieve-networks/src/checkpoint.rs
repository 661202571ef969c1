//! Runs a training with a checkpoint after each epoch, a progress bar and a line per epoch.

use std::path::{Path, PathBuf};

use labelsieve_files::work::outputs::beside;
use labelsieve_files::work::table::percent;
use labelsieve_files::work::{Error, Monitor, Progress, Result, SavedWork};
use labelsieve_files::{NetworkFile, NetworkMetadata, Precision, Verified};
use serde_json::json;

use crate::training::{Checkpoint, Epoch, Training, Watcher};
use crate::{Network, Snapshot};

/// The suffix of a checkpoint, after the name of the output.
const SUFFIX: &str = ".checkpoint";

/// Trains from `start`, or from where the same run (by its fingerprint) was killed, with a checkpoint beside `output`
/// after each epoch.
pub fn train(
    training: &Training,
    start: Snapshot,
    output: &Path,
    fingerprint: &str,
    monitor: &dyn Monitor,
) -> Result<Checkpoint> {
    let file = CheckpointFile { path: beside(output, SUFFIX), fingerprint };
    let start = match file.load(training.network, start.n_classes)? {
        ExistingFile::Checkpoint(checkpoint) => {
            let done = checkpoint.epochs.len();
            let epochs = training.recipe.epochs;
            monitor.note(&format!("resuming: {done} of {epochs} epochs done"));
            checkpoint
        }
        ExistingFile::Nothing => Checkpoint::start(start),
        ExistingFile::Other(why) => {
            monitor.note(&format!("`{}` {why}; starting over", file.path.display()));
            Checkpoint::start(start)
        }
    };
    file.announce(&start, training.recipe.epochs, monitor);
    let mut display = Display { monitor, training, bar: None, file: &file, failure: None };
    let done = training.run(start, &mut display);
    match display.failure {
        Some(failure) => Err(failure),
        None => Ok(done?),
    }
}

/// Removes the checkpoint of a finished run.
pub fn forget(output: &Path) {
    // A stale checkpoint is harmless: only the same run would use it.
    let _ = std::fs::remove_file(beside(output, SUFFIX));
}

/// The state after the last finished epoch.
struct CheckpointFile<'a> {
    path: PathBuf,
    fingerprint: &'a str,
}

impl CheckpointFile<'_> {
    /// Tells the monitor which epochs would survive an interrupt.
    fn announce(&self, checkpoint: &Checkpoint, total: usize, monitor: &dyn Monitor) {
        monitor.keep(SavedWork::Epochs { path: self.path.clone(), done: checkpoint.epochs.len(), total });
    }

    fn save(&self, checkpoint: &Checkpoint) -> Result<()> {
        let flat = |name: &str, values: &Vec<f32>| (name.to_owned(), vec![values.len()], values.clone());
        let snapshot = &checkpoint.snapshot;
        let tensors = vec![flat("momentum", &snapshot.momentum), flat("values", &snapshot.values)];
        let recipe = json!({ "fingerprint": self.fingerprint, "epochs": checkpoint.epochs });
        let metadata = Some(NetworkMetadata { recipe, ..NetworkMetadata::default() });
        Ok(NetworkFile { tensors, metadata }.save(&self.path, Precision::F32)?)
    }

    /// The checkpoint of an earlier run. Any other file at its path, or a damaged one, is an error: it may be the user's own.
    fn load(&self, network: &Network, n_classes: usize) -> Result<ExistingFile> {
        if !self.path.exists() {
            return Ok(ExistingFile::Nothing);
        }
        self.read(network, n_classes).map_err(|cause| {
            Error::input(
                format!("`{}` is not a readable checkpoint: {cause}", self.path.display()),
                "move it elsewhere to start over",
            )
        })
    }

    fn read(&self, network: &Network, n_classes: usize) -> Result<ExistingFile> {
        let (file, verified) = NetworkFile::load_verified(&self.path)?;
        let recipe = file.metadata.unwrap_or_default().recipe;
        let fingerprint =
            recipe["fingerprint"].as_str().ok_or_else(|| not_a_checkpoint("not a checkpoint"))?;
        if fingerprint != self.fingerprint {
            return Ok(ExistingFile::Other("was made with different settings or files"));
        }
        if verified == Verified::No {
            return Ok(ExistingFile::Other("was made by an older version without a checksum"));
        }
        let epochs: Vec<Epoch> = serde_json::from_value(recipe["epochs"].clone())?;
        let mut numbers = file.tensors.into_iter().map(|(_, _, values)| values);
        let momentum = numbers.next().ok_or_else(|| not_a_checkpoint("momentum is missing"))?;
        let values = numbers.next().ok_or_else(|| not_a_checkpoint("values are missing"))?;
        let snapshot = Snapshot { n_classes, values, momentum };
        snapshot.tensors(network)?;
        Ok(ExistingFile::Checkpoint(Checkpoint { snapshot, epochs }))
    }
}

/// Becomes part of the error that says what to do.
fn not_a_checkpoint(why: &str) -> Error {
    Error::input(why, "")
}

/// The file at the path of the checkpoint.
enum ExistingFile {
    Nothing,
    Checkpoint(Checkpoint),
    /// A checkpoint that cannot be used, and why.
    Other(&'static str),
}

/// A bar per epoch, a line after it, and a checkpoint.
struct Display<'a> {
    monitor: &'a dyn Monitor,
    training: &'a Training<'a>,
    bar: Option<Progress>,
    file: &'a CheckpointFile<'a>,
    /// Why the training was ended from here.
    failure: Option<Error>,
}

impl Display<'_> {
    /// Keeps the error that ends the training; the error type of the training cannot hold it.
    fn end(&mut self, failure: Error) -> crate::Error {
        let text = failure.to_string();
        self.failure = Some(failure);
        crate::Error::Device(text)
    }
}

impl Watcher for Display<'_> {
    fn epoch_starts(&mut self, epoch: usize, batches: usize) {
        let recipe = self.training.recipe;
        let bar = self.monitor.progress((batches * recipe.batch) as u64, "images");
        bar.set_message(&format!("epoch {epoch}/{}", recipe.epochs));
        self.bar = Some(bar);
    }

    fn batch_done(&mut self, images: usize) -> crate::Result<()> {
        if let Some(bar) = &self.bar {
            bar.inc(images as u64);
        }
        self.monitor.watch().check().map_err(|stopped| self.end(stopped.into()))
    }

    fn epoch_done(&mut self, checkpoint: &Checkpoint) -> crate::Result<()> {
        if let Some(bar) = self.bar.take() {
            bar.finish();
        }
        if let Some(epoch) = checkpoint.epochs.last() {
            let validation =
                epoch.validation.map_or(String::new(), |v| format!("   validation {} %", percent(v)));
            self.monitor.note(&format!(
                "epoch {:>3}/{}   rate {:.4}   loss {:.3}   training {} %{validation}",
                epoch.epoch,
                self.training.recipe.epochs,
                epoch.rate,
                epoch.loss,
                percent(epoch.accuracy),
            ));
        }
        self.file.save(checkpoint).map_err(|error| self.end(error))?;
        self.file.announce(checkpoint, self.training.recipe.epochs, self.monitor);
        Ok(())
    }
}
