//! Networks from weight files.

use std::path::Path;

use labelsieve_data::{DataError, NamedTensor, NetworkFile, NetworkMetadata};
use labelsieve_vision::images::View;
use labelsieve_vision::{Architecture, Network, Pca, Snapshot, Stem, weights};
use serde::de::DeserializeOwned;

use crate::error::{Context, Error, Result};

/// A network that is ready for a device.
pub struct OpenedNetwork {
    /// Its layers.
    pub network: Network,
    /// Its weights.
    pub snapshot: Snapshot,
    /// What it sees of an image.
    pub view: View,
    /// What its file says of it.
    pub metadata: NetworkMetadata,
    /// The PCA that came with it.
    pub pca: Option<Pca>,
    /// The scale s of its classifier; 10, where training starts, if it has none.
    pub scale: f32,
}

/// Which part of a weight file is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The network without its classifier.
    Features,
    /// The network with its classifier, which must be there.
    Classifier,
}

/// Reads a network of ours, or one with torchvision's names and nothing else, which is then taken to be for photos of
/// the usual size. `image_size` replaces the size in the file.
pub fn open_network(
    path: &Path,
    wanted: Wanted,
    image_size: Option<(usize, usize)>,
) -> Result<OpenedNetwork> {
    let file = NetworkFile::load(path)?;
    let mut metadata = match file.metadata {
        Some(metadata) => metadata,
        None => guess(&file.tensors).ok_or_else(|| {
            Error::input(
                format!("`{}` does not contain a supported network", path.display()),
                "use a network from `labelsieve pretrain`, or a ResNet-18 or -50 with torchvision's tensor names",
            )
        })?,
    };
    if metadata.architecture.is_empty() {
        return Err(Error::input(
            format!("`{}` does not contain a network", path.display()),
            "pass a PCA file with --pca",
        ));
    }
    metadata.check(path)?;
    metadata.image_size = image_size.unwrap_or(metadata.image_size);
    let (height, width) = metadata.image_size;
    let in_file = || format!("`{}`", path.display());
    let architecture: Architecture = metadata.architecture.parse().with_context(in_file)?;
    let stem =
        named(&metadata.stem).with_context(in_file)?.unwrap_or_else(|| Stem::for_images(height, width));
    let view =
        named(&metadata.view).with_context(in_file)?.unwrap_or_else(|| View::for_images(height, width));
    let mut network = architecture.network(height, width, stem).with_context(in_file)?;
    network.mean = metadata.channel_mean;
    network.deviation = metadata.channel_deviation;
    let pca = Pca::from_tensors(&file.tensors).with_context(in_file)?;
    let n_classes = match wanted {
        Wanted::Features => 0,
        Wanted::Classifier => metadata.classes.len(),
    };
    if wanted == Wanted::Classifier && n_classes == 0 {
        return Err(Error::input(
            format!("`{}` is a network without a classifier", path.display()),
            "`labelsieve pretrain` and `labelsieve finetune` write networks with one",
        ));
    }
    let scale = file.tensors.iter().find(|(name, _, _)| name == "classifier.scale");
    let scale = scale.and_then(|(_, _, values)| values.first().copied()).unwrap_or(10.0);
    if !(scale.is_finite() && scale > 0.0) {
        let place = "tensor `classifier.scale`, number 0";
        return Err(DataError::malformed(path, place, "a positive number", scale.to_string()).into());
    }
    let snapshot = weights::from_tensors(&network, n_classes, file.tensors).with_context(in_file)?;
    Ok(OpenedNetwork { network, snapshot, view, metadata, pca, scale })
}

/// The value of this name; none for an empty name.
fn named<T: DeserializeOwned>(name: &str) -> Result<Option<T>> {
    if name.is_empty() {
        return Ok(None);
    }
    Ok(Some(serde_json::from_value(serde_json::Value::String(name.to_owned()))?))
}

/// What a file without a description is, by the names in it.
fn guess(tensors: &[NamedTensor]) -> Option<NetworkMetadata> {
    let has = |name: &str| tensors.iter().any(|(found, _, _)| found == name);
    let architecture = match () {
        () if has("layer1.0.conv3.weight") => Architecture::ResNet50,
        () if has("layer1.1.conv1.weight") => Architecture::ResNet18,
        () if has("layer1.0.conv1.weight") => Architecture::ResNet10,
        () if has("block0.conv.weight") => Architecture::ConvNet128,
        () => return None,
    };
    // A first convolution of 3×3 is that of the small stem, whose networks see small images.
    let kernel =
        tensors.iter().find(|(name, _, _)| name == "conv1.weight").and_then(|(_, shape, _)| shape.last());
    let (stem, size) = match kernel {
        Some(3) => (Stem::Small, 64),
        _ => (Stem::Photo, architecture.usual_size()),
    };
    let usual = Network::for_images(size, size);
    Some(NetworkMetadata {
        architecture: architecture.to_string(),
        stem: stem.to_string(),
        image_size: (size, size),
        channel_mean: usual.mean,
        channel_deviation: usual.deviation,
        ..NetworkMetadata::default()
    })
}
