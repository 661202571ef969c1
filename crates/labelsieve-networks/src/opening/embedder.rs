//! Opens a model of any kind as an embedder.

use std::path::{Path, PathBuf};

use labelsieve_files::DataError;
use labelsieve_files::work::{Monitor, Result};
use labelsieve_numerics::Device;
use serde_json::{Value, json};

use crate::devices::Devices;
use crate::images::View;
use crate::opening::built_in::BuiltIn;
use crate::opening::hub_folder::{hub_files, open_hub_folder};
use crate::opening::network::{NetworkPart, no_such_model, open_network};
use crate::opening::network_fingerprint::{Fingerprint, network_fingerprint};
use crate::opening::onnx::{OnnxOptions, files as onnx_files, is_onnx, open as open_onnx};
use crate::{Embedder, Pca};

/// A network that makes features, and how its images are prepared.
pub struct OpenedEmbedder {
    /// The network on its device.
    pub embedder: Box<dyn Embedder>,
    /// Height and width of its images.
    pub size: (usize, usize),
    /// The part of an image that the network sees.
    pub view: View,
    /// Subtracted from features of unit length, which are then scaled to unit length again.
    pub centre: Option<Vec<f32>>,
    /// The PCA that came with it.
    pub pca: Option<Pca>,
    /// Identifies its features.
    pub fingerprint: Fingerprint,
    /// Its name, for people.
    pub name: String,
    /// The settings of its features that are in no file: part of the resume key and stored with the features.
    pub description: Value,
    /// The kind of device it is on, as [`OpenLearners::kind`](crate::devices::OpenLearners::kind) says it.
    pub device: &'static str,
}

/// Opens a built-in network, a folder from the hub, an ONNX file or a weight file. `image_size` replaces the network's own
/// size; `onnx` has the settings that an ONNX file does not contain.
pub fn open_embedder(
    model: &Path,
    image_size: Option<(usize, usize)>,
    onnx: &OnnxOptions,
    device: Device,
    devices: &dyn Devices,
    monitor: &dyn Monitor,
) -> Result<OpenedEmbedder> {
    onnx.check(model)?;
    if is_onnx(model) {
        return open_onnx(model, image_size, onnx, device, monitor);
    }
    // Every other kind of model is a branch here, and has its files in `model_files`.
    if is_hub_folder(model) {
        return open_hub_folder(model, image_size, device, devices, monitor);
    }
    open_weights(model, image_size, device, devices, monitor)
}

/// The files that `model` is read from; none for a built-in network.
pub fn model_files(model: &Path) -> Result<Vec<PathBuf>> {
    Ok(match BuiltIn::named(model) {
        Some(_) => Vec::new(),
        None if is_onnx(model) => onnx_files(model),
        None if is_hub_folder(model) => hub_files(model)?,
        None => {
            let missing = |error| no_such_model(model, DataError::io("read", model)(error));
            std::fs::metadata(model).map_err(missing)?;
            vec![model.to_path_buf()]
        }
    })
}

fn is_hub_folder(model: &Path) -> bool {
    BuiltIn::named(model).is_none() && model.is_dir()
}

/// A network of our own layers.
fn open_weights(
    model: &Path,
    image_size: Option<(usize, usize)>,
    device: Device,
    devices: &dyn Devices,
    monitor: &dyn Monitor,
) -> Result<OpenedEmbedder> {
    let opened = open_network(model, NetworkPart::Features, image_size)?;
    let fingerprint = network_fingerprint(&opened)?;
    let learners = devices.learners(device, monitor)?;
    let embedder = learners.learners().learner(&opened.network, &opened.snapshot)?;
    Ok(OpenedEmbedder {
        embedder,
        size: opened.metadata.image_size,
        view: opened.view,
        centre: opened.centre,
        pca: opened.pca,
        fingerprint,
        description: json!({ "architecture": opened.metadata.architecture }),
        name: opened.metadata.architecture,
        device: learners.kind(),
    })
}
