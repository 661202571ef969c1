//! Trainings of networks that survive a kill, with a display of how they go.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use indicatif::ProgressBar;
use labelsieve_data::{NetworkFile, NetworkMetadata, Precision, Verified};
use labelsieve_vision::training::{Checkpoint, Epoch, Training, Watcher};
use labelsieve_vision::{Network, Snapshot};
use serde_json::json;

use crate::hint::user_error;
use crate::printer::Printer;
use crate::signals::{self, Kept};
use crate::table::percent;

/// Trains from `start`, or from where the same run (by its fingerprint) was killed, with a checkpoint beside `output`
/// after each epoch.
pub fn train(
    training: &Training,
    start: Snapshot,
    output: &Path,
    fingerprint: &str,
    printer: &Printer,
) -> Result<Checkpoint> {
    let file = CheckpointFile { path: beside(output), fingerprint };
    let start = match file.load(training.network, start.n_classes)? {
        Found::Checkpoint(checkpoint) => {
            let (done, epochs) = (checkpoint.epochs.len(), training.recipe.epochs);
            printer.note(&format!("resuming: {done} of {epochs} epochs done"));
            checkpoint
        }
        Found::Nothing => Checkpoint::start(start),
        Found::Other(why) => {
            printer.note(&format!("`{}` {why}; starting over", file.path.display()));
            Checkpoint::start(start)
        }
    };
    file.announce(&start, training.recipe.epochs);
    let mut display = Display { printer, training, bar: None, file: &file, failure: None };
    let done = training.run(start, &mut display);
    match display.failure {
        Some(failure) => Err(failure),
        None => Ok(done?),
    }
}

/// Removes the checkpoint of a run whose output is whole.
pub fn forget(output: &Path) {
    // One left over does no harm: only the same run would use it.
    let _ = std::fs::remove_file(beside(output));
}

fn beside(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".checkpoint");
    PathBuf::from(name)
}

/// The state after the last finished epoch.
struct CheckpointFile<'a> {
    path: PathBuf,
    fingerprint: &'a str,
}

impl CheckpointFile<'_> {
    /// Notes what a signal would leave.
    fn announce(&self, checkpoint: &Checkpoint, total: usize) {
        signals::keep(Kept::Epochs { path: self.path.clone(), done: checkpoint.epochs.len(), total });
    }

    fn save(&self, checkpoint: &Checkpoint) -> Result<()> {
        let flat = |name: &str, values: &Vec<f32>| (name.to_owned(), vec![values.len()], values.clone());
        let snapshot = &checkpoint.snapshot;
        let tensors = vec![flat("momentum", &snapshot.momentum), flat("values", &snapshot.values)];
        let recipe = json!({ "fingerprint": self.fingerprint, "epochs": checkpoint.epochs });
        let metadata = Some(NetworkMetadata { recipe, ..NetworkMetadata::default() });
        Ok(NetworkFile { tensors, metadata }.save(&self.path, Precision::F32)?)
    }

    /// What an earlier run left. A file that is no checkpoint, or a damaged one, is an error: it may be somebody's.
    fn load(&self, network: &Network, n_classes: usize) -> Result<Found> {
        if !self.path.exists() {
            return Ok(Found::Nothing);
        }
        self.read(network, n_classes).map_err(|cause| {
            user_error(
                format!("`{}` is not a readable checkpoint: {cause:#}", self.path.display()),
                "move it elsewhere to start over",
            )
        })
    }

    fn read(&self, network: &Network, n_classes: usize) -> Result<Found> {
        let (file, verified) = NetworkFile::load_verified(&self.path)?;
        let recipe = file.metadata.unwrap_or_default().recipe;
        let fingerprint = recipe["fingerprint"].as_str().context("it is a file of another kind")?;
        if fingerprint != self.fingerprint {
            return Ok(Found::Other("was made with different settings or files"));
        }
        if verified == Verified::No {
            return Ok(Found::Other("is of an older version and has no checksum"));
        }
        let epochs: Vec<Epoch> = serde_json::from_value(recipe["epochs"].clone())?;
        let mut numbers = file.tensors.into_iter().map(|(_, _, values)| values);
        let momentum = numbers.next().context("it holds no momentum")?;
        let values = numbers.next().context("it holds no values")?;
        let snapshot = Snapshot { n_classes, values, momentum };
        snapshot.tensors(network)?;
        Ok(Found::Checkpoint(Checkpoint { snapshot, epochs }))
    }
}

/// What is where the checkpoint should be.
enum Found {
    Nothing,
    Checkpoint(Checkpoint),
    /// One that is of no use, and why.
    Other(&'static str),
}

/// A bar per epoch, a line after it, and a checkpoint.
struct Display<'a> {
    printer: &'a Printer,
    training: &'a Training<'a>,
    bar: Option<ProgressBar>,
    file: &'a CheckpointFile<'a>,
    /// Why the training was ended from here.
    failure: Option<anyhow::Error>,
}

impl Watcher for Display<'_> {
    fn epoch_starts(&mut self, epoch: usize, batches: usize) {
        let recipe = self.training.recipe;
        let bar = self.printer.progress((batches * recipe.batch) as u64, "images");
        bar.set_message(format!("epoch {epoch}/{}", recipe.epochs));
        self.bar = Some(bar);
    }

    fn batch_done(&mut self, images: usize) {
        if let Some(bar) = &self.bar {
            bar.inc(images as u64);
        }
    }

    fn epoch_done(&mut self, checkpoint: &Checkpoint) -> labelsieve_vision::Result<()> {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        if let Some(epoch) = checkpoint.epochs.last() {
            let validation =
                epoch.validation.map_or(String::new(), |v| format!("   validation {} %", percent(v)));
            self.printer.note(&format!(
                "epoch {:>3}/{}   rate {:.4}   loss {:.3}   training {} %{validation}",
                epoch.epoch,
                self.training.recipe.epochs,
                epoch.rate,
                epoch.loss,
                percent(epoch.accuracy),
            ));
        }
        self.file.save(checkpoint).map_err(|error| {
            self.failure = Some(error);
            labelsieve_vision::Error::Device("the checkpoint could not be written".to_owned())
        })?;
        self.file.announce(checkpoint, self.training.recipe.epochs);
        Ok(())
    }
}
